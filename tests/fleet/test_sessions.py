"""A tmux session that agents share: each would type while another is at work."""

import pytest


def agent(name, *properties):
    return "\n".join([f"* {name}", ":PROPERTIES:", *properties, ":END:", ""])


@pytest.fixture
def told(desk, said):
    def told(*parts):
        loaded = desk.org("".join(parts))
        assert loaded.fleet is not None
        return said(loaded)

    return told


def test_two_agents_with_one_session_are_a_warning_at_the_second(told):
    (line,) = told(agent("moss", ":TMUX: main"), agent("wren", ":TMUX: main"))
    assert "7:8: warning: moss and wren share the tmux session 'main': each would type while another is at work" in line
    assert line.endswith("(give each a session of its own)")


def test_replicas_share_the_session_of_their_address(told):
    (line,) = told(agent("moss", ":TMUX: main", ":REPLICAS: 3"))
    assert "3:8: warning: moss-1, moss-2 and 1 more share the tmux session 'main'" in line
    assert line.endswith("(remove REPLICAS, or declare agents with a session each)")


def test_a_session_of_the_fleet_is_told_at_the_last_agent_that_shares_it(told):
    (line,) = told("#+TMUX: main\n", agent("moss", ":RUN: true"), agent("wren", ":INTERVAL: 2h"), agent("finn"))
    assert "10:3: warning: wren and finn share the tmux session 'main'" in line


def test_each_session_is_told_once(told):
    assert len(told(*(agent(f"agent-{number}", f":TMUX: s{number % 2}") for number in range(8)))) == 2


def test_one_replica_another_session_another_window_or_an_agent_that_is_off_shares_nothing(told):
    assert not told(
        agent("moss", ":TMUX: main", ":REPLICAS: 1"),
        agent("wren", ":TMUX: main:1"),
        agent("finn", ":TMUX: other"),
        agent("iris", ":TMUX: other", ":ENABLED: no"),
    )
