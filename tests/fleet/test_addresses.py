"""Addresses of event sources: what is wrong with one comes with what to write instead."""

import pytest

from wakeful.core.errors import Mistake
from wakeful.fleet.addresses import source


@pytest.mark.parametrize(
    "address",
    [
        "webhook://github?preset=github&secret=HOOK",
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


@pytest.mark.parametrize("address", ["snapshot+https://h/x#token=sk-12-34", "snapshot+https://me:sk-12-34@h/x"])
def test_what_may_be_a_secret_is_not_shown(address):
    with pytest.raises(Mistake) as raised:
        source(address)
    assert "sk-12" not in str(raised.value)
