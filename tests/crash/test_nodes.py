"""Engines on PostgreSQL die, and so does the server: nothing is lost, repeated or overlapping.

`make soak` does it often, and waits until the runs of a node that stays away are taken over.
"""

from soak.audits import sound_database
from soak.sending import Sender
from soak.standing import TWO, Killer, until
from soak.witness import agent
from wakeful.testing.postgres import PostgresServer

KILLS = 2
AGENTS = 4
# In tenths of a second.
SHORT = (1, 2, 3)


def test_no_run_is_lost_repeated_or_overlapping_where_the_store_is_on_a_server(place, database):
    here = place(agents=AGENTS, agent=agent(SHORT), store=database)
    here.up()
    killer = Killer(here, seed=5)
    for _ in range(KILLS):
        killer.kill_one()
    until(lambda: len(here.begun()) > 2 * AGENTS, "a few runs")
    here.drain()
    assert here.check() == []


def test_both_nodes_run_what_is_due_and_go_on_through_a_restart_of_the_database(place):
    with PostgresServer(durable=True) as server, sound_database(server.dsn):
        here = place(agents=AGENTS, agent=agent(SHORT), store=server.dsn, more={TWO: server.dsn})
        for node in here.nodes:
            node.up()
        engines = [node.machine.engine for node in here.nodes]
        with Sender(here.nodes, AGENTS, rate=10) as sender:
            until(lambda: len({sign.node for sign in here.witness()}) == 2, "runs on both")
            until(lambda: sender.accepted, "a message to be accepted")
            server.kill()
            until(lambda: sender.refused, "a refusal")
            server.start()
            accepted, begun = len(sender.accepted), len(here.begun())
            until(lambda: len(sender.accepted) > accepted, "a message to be accepted", 10)
            until(lambda: len(here.begun()) > begun, "a run", 10)
        assert [node.machine.engine for node in here.nodes] == engines, "an engine has ended"
        for node in here.nodes:
            node.drain()
        with here.store() as store:
            kept = {item.id: item.body for item in store.items(limit=100_000)}
        assert [each for each in sender.accepted if kept.get(each.id) != each.body] == []
        assert here.check() == []
