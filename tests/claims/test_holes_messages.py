"""Holes in the designs of inboxes, told to a real store through what an agent may ask."""

from tests.claims.desk import DONE, MINUTE, agent
from tests.claims.test_003_messages import asked


def test_later_is_neither_lost_nor_a_loop(desk):
    """A message that is put off leaves everybody alone until its time, and then rings once."""
    desk.declare(agent("finn", every=None))
    message = desk.message("finn", "yuki", "urgent")
    (order,) = desk.begin()
    asked(desk, order, "snooze", agent="finn", messages=[message], until="2h")
    desk.end(order)
    for _ in range(119):
        desk.later(MINUTE)
        assert desk.begin() == []
    desk.restart()
    desk.later(MINUTE)
    (again,) = desk.begin()
    assert [item.id for item in again.items] == [message]
    desk.end(again, DONE)
    desk.later(120 * MINUTE)
    assert desk.begin() == [] and desk.store.item(message).state == "closed"
