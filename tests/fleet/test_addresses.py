"""Addresses of event sources and of agents: what is wrong with one comes with what to write instead."""

import pytest

from wakeful.core.errors import Mistake
from wakeful.fleet.addresses import endpoint, source


@pytest.mark.parametrize(
    "address",
    [
        "webhook://github?preset=github&secret=HOOK",
        "webhook://ci?preset=standard&secret=NEW&secret=OLD",
        "webhook://cloudevents",
        "kafka://localhost:9092/topic?group=g",
        "snapshot+exec:tools/pending",
        "snapshot+http://127.0.0.1:8080/tasks?role=ceo#every=5s&token=TMS_TOKEN&status=open",
        "snapshot+https://example.org",
    ],
)
def test_an_address_that_is_good_stays_as_it_was_written(address):
    assert source(address) == address


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("snapshot+exce:tools/pending", "write snapshot+exec:PROGRAM#every=30s"),
        ("snapshot+htps://h/x", "write snapshot+https://HOST/PATH#every=1m&token=ENV_NAME"),
        ("kafak://h:1/t", "write kafka://HOST:PORT/TOPIC?group=G"),
        ("webhook://gh?preset=githup&secret=HOOK", "did you mean github?"),
        ("webhook://gh?secret=sk-12-34", "write secret=ENV_NAME and put the secret into that variable"),
        ("webhook://wake?secret=HOOK", "use another name"),
        ("gopher://h", "use one of webhook, kafka, sqs, redis, nats, snapshot+exec, snapshot+http, snapshot+https"),
        ("snapshot+exec:x#every=30", "write 30m for minutes or 30s for seconds"),
        ("snapshot+https://h/x#token=sk-12-34", "write #token=ENV_NAME and put the token into that variable"),
        ("snapshot+https://me:pw@h/x", "put a token into a variable and write #token=ENV_NAME"),
    ],
)
def test_a_mistake_says_what_to_write(address, remedy):
    with pytest.raises(Mistake) as raised:
        source(address)
    assert raised.value.remedy == remedy


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9000/run", "https://example.org", "https://agents.example.org/wren?fast=1#token=WREN_TOKEN"],
)
def test_the_address_of_an_agent_that_is_good_stays_as_it_was_written(address):
    assert endpoint(address) == address


@pytest.mark.parametrize(
    ("address", "reason", "remedy"),
    [
        ("ftp://h/x", "expected an address of http or https", "write http://HOST:PORT/PATH"),
        ("http:///x", "expected an address of http or https", "write http://HOST:PORT/PATH"),
        ("http://h:0/x", "is not an address", "write scheme://HOST:PORT/NAME"),
        ("http://h/a b", "has a space in it", "write one address without spaces"),
        ("http://h/é", "holds signs that cannot be sent", "write them as %XX, and a host in its ASCII form"),
        ("http://me@h/x", "a password stands in", "put a token into a variable and write #token=ENV_NAME"),
        ("http://h/x#main", "behind #", "write https://HOST/PATH#token=ENV_NAME"),
        ("http://h/x#every=5s", "there may be one token", "write https://HOST/PATH#token=ENV_NAME"),
        ("http://h/x#token=", "there may be one token", "write https://HOST/PATH#token=ENV_NAME"),
        ("http://h/x#token=sk-12", "names no variable", "write #token=ENV_NAME and put the token into that variable"),
    ],
)
def test_the_address_of_an_agent_is_checked_as_its_runs_will_read_it(address, reason, remedy):
    with pytest.raises(Mistake) as raised:
        endpoint(address)
    assert reason in raised.value.reason and raised.value.remedy == remedy


@pytest.mark.parametrize(
    ("read", "address"),
    [
        (source, "snapshot+https://h/x#token=sk-12-34"),
        (source, "webhook://gh?preset=github&secret=sk-12-34"),
        (source, "webhook://gh?secret=sk-12-34&prset=github"),
        (source, "snapshot+https://me:sk-12-34@h/x"),
        (source, "snapshot+https://h/x#token=sk-12 34"),
        (endpoint, "https://h/x#token=sk-12-34"),
        (endpoint, "https://h/x#token=sk-12 34"),
        (endpoint, "https://h/x#toke=sk-12"),
        (endpoint, "https://me:sk-12-34@h/x"),
        (endpoint, "htp://h/x#token=sk-12-34"),
    ],
)
def test_what_may_be_a_secret_is_not_shown(read, address):
    with pytest.raises(Mistake) as raised:
        read(address)
    assert "sk-12" not in str(raised.value)
