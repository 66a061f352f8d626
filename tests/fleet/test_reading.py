"""Files that cannot be read are told like any other mistake."""

import os

import pytest

from wakeful.fleet import find_fleet, load_fleet


def test_a_missing_file_is_told(desk, said):
    assert said(load_fleet(desk.folder / "none.org")) == [
        "1:1: cannot be read: no such file or directory (name a file that exists and may be read)"
    ]


def test_a_folder_is_told(desk, said):
    assert said(load_fleet(desk.folder)) == ["1:1: expected a file, found a folder (name the file itself)"]


def test_a_pipe_is_told_and_not_waited_for(desk, said):
    os.mkfifo(desk.folder / "fleet.org")
    assert "not a regular file" in said(load_fleet(desk.folder / "fleet.org"))[0]


def test_a_file_without_permission_is_told(desk, said, monkeypatch):
    def refuse(path, flags):
        raise PermissionError(13, "Permission denied")

    path = desk.write("fleet.org", "* wren\n")
    monkeypatch.setattr(os, "open", refuse)
    assert "cannot be read: permission denied" in said(load_fleet(path))[0]


def test_a_definition_without_permission_is_told(desk, said, monkeypatch):
    desk.write("writer.org", "You write.")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    loaded = desk.org("#+RUN: true\n* wren\n:PROPERTIES:\n:DEF: writer.org\n:END:\n")
    assert said(loaded)[0].startswith("4:7: DEF: the file 'writer.org' may not be read")


@pytest.mark.parametrize("name", ["a\0b.org", "x" * 5_000])
def test_a_path_that_no_file_can_have_is_told(name):
    assert load_fleet(name).broken


def test_a_file_of_another_name_is_recognised_by_its_first_line(desk):
    org = load_fleet(desk.write("desk.txt", "#+RUN: true\n* wren\n"))
    yml = load_fleet(desk.write("desk.conf", "run: 'true'\nagents:\n  wren:\n"))
    json = load_fleet(desk.write("desk.json", '{"run": "true", "agents": {"wren": {}}}'))
    assert org.fleet == yml.fleet == json.fleet


def test_the_fleet_of_a_folder_is_fleet_org_before_fleet_yml(desk):
    assert find_fleet(desk.folder) is None
    desk.write("fleet.yml", "")
    assert find_fleet(desk.folder) == desk.folder / "fleet.yml"
    desk.write("fleet.org", "")
    assert find_fleet(desk.folder) == desk.folder / "fleet.org"


def test_paths_stay_as_written_and_start_at_the_fleet_file(desk):
    desk.write("shared/writer.org", "You write.")
    path = desk.write("desk/fleet.org", "#+RUN: true\n* wren\n:PROPERTIES:\n:DEF: ../shared/writer.org\n:END:\n")
    assert load_fleet(path).fleet.agents[0].definition == "../shared/writer.org"
