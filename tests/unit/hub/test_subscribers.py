"""Updates of resources reach those who have subscribed, however many there are at once."""

import anyio
import pytest

from serena_central.hub.subscribers import MOST_UPDATED, Subscriber, Subscribers

pytestmark = pytest.mark.anyio


async def test_of_more_updates_than_are_passed_on_at_once_none_is_lost() -> None:
    sent: list[tuple[str, str]] = []
    heard = anyio.Event()

    def send(session: str, uri: str) -> None:
        sent.append((session, uri))
        if uri == "file:///b":
            heard.set()

    subscribers = Subscribers("one", send)
    subscribers.add("file:///a", Subscriber("first"))
    subscribers.add("file:///b", Subscriber("second"))
    for number in range(MOST_UPDATED):
        subscribers.updated(f"file:///a/{number}")
    for name in ("b", "c"):
        subscribers.updated(f"file:///{name}")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subscribers.run)
        with anyio.fail_after(30):
            await heard.wait()
        tasks.cancel_scope.cancel()
    assert ("first", "file:///a/999") in sent
    assert ("second", "file:///b") in sent
