"""The dashboard's files, as the server gives them and as they are written."""

import asyncio
import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.http.asgi import HOST, put
from tests.http.served import KEYS
from tests.http.test_matrix import Watched
from tests.store.blank import open_blank
from wakeful.control.control import Control
from wakeful.http.app import build
from wakeful.http.page import FILES, contents
from wakeful.store.writer import Writer
from wakeful.testing.contracts.store_case import NOW

DASHBOARD = Path(str(files("wakeful.http") / "dashboard"))
OURS = sorted(path for path in DASHBOARD.glob("*.js"))


@pytest.fixture
def get(tmp_path):
    writer = Writer(open_blank(tmp_path / "wakeful.db"))
    control = Control(writer, runs=tmp_path / "runs", clock=lambda: NOW, beside=Watched())
    app = build(control, keys=KEYS, hosts=[HOST])
    yield lambda path, **more: asyncio.run(put(app, "GET", path, b"", **more))
    writer.close()
    writer.store.close()


def test_every_file_is_given_to_whoever_asks_with_its_kind_and_the_policy(get):
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert {"index.html", "app.js", "style.css", "vendor/preact.js"} <= set(contents())
    for name, content in contents().items():
        reply = get(FILES + name)
        assert (reply.status, reply.body) == (200, content)
        assert reply.headers["content-type"].partition(";")[0] == kinds[name.rpartition(".")[2]]
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert get("/").body == contents()["index.html"]


@pytest.mark.parametrize(
    "name", ["nothing.js", "../page.py", "..%2fpage.py", "vendor/../app.js", "vendor", "", "/etc/passwd"]
)
def test_a_name_that_is_none_of_the_files_is_nothing(get, name):
    reply = get(FILES + name)
    assert reply.status == 404
    assert b"import" not in reply.body


def test_the_page_runs_nothing_that_stands_in_it_and_fetches_nothing_from_elsewhere():
    page = (DASHBOARD / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert addresses and all(address.startswith(FILES) for address in addresses)
    assert {address.removeprefix(FILES) for address in addresses} <= set(contents())


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_a_module_makes_no_markup_of_strings_and_imports_what_is_there(path):
    code = path.read_text(encoding="utf-8")
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment", code
    )
    assert found == [] and "dangerouslySetInnerHTML" not in code
    assert len(code.splitlines()) < 400
    imported = re.findall(r'(?:from|import)\s*\(?"([^"]+)"', code)
    assert {str(Path(name)) for name in imported} <= set(contents())
    assert "https://" not in code.replace("https://www.w3.org", "")
