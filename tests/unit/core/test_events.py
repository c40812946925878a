"""The bus never waits for a subscriber, and tells each one what it lost."""

import anyio
import pytest

from serena_central.core import event_kinds
from serena_central.core.event_kinds import SessionEvent
from serena_central.core.events import RECENT_EVENTS, Event, EventBus
from tests.support.events import Ended, Happened, call_finished, server_moved, session_created

pytestmark = pytest.mark.anyio


async def test_subscribers_receive_events_in_order_until_they_leave() -> None:
    bus = EventBus(clock=lambda: 1.5)
    with bus.subscribe() as news:
        bus.publish(session_created(session="s-1", client="codex"))
        bus.publish(Ended(session="s-1"))
        first, second = await anext(news), await anext(news)
    bus.publish(session_created(session="s-2"))
    assert (first.seq, first.at, first.kind) == (1, 1.5, "session.created")
    assert first.data == {"client": "codex", "version": "1", "identified_by": "explicit", "folder": None}
    assert (second.seq, second.kind) == (2, "session.ended")
    assert [event.seq async for event in news] == []


async def test_subscribers_hear_of_the_kinds_that_they_name_and_of_those_below() -> None:
    bus = EventBus()
    heard: list[str] = []
    with bus.subscribe(SessionEvent) as sessions, bus.subscribe() as everything:
        end = bus.tap(lambda event: heard.append(event.kind), Happened, Ended)
        for event in (Happened(), session_created(), Ended(), call_finished()):
            bus.publish(event)
        end()
        bus.publish(Ended())
        later: list[str] = []
        bus.tap(lambda event: later.append(event.kind))  # a kind that was published before, too
        bus.publish(Happened())
    assert [event.kind async for event in sessions] == ["session.created", "session.ended", "session.ended"]
    assert len([event async for event in everything]) == 6
    assert heard == ["server.happened", "session.ended"]
    assert later == ["server.happened"]


async def test_a_slow_subscriber_loses_its_oldest_and_is_told() -> None:
    bus = EventBus()
    with bus.subscribe(limit=2) as news:
        for number in range(5):
            bus.publish(Happened(number=number))
        assert news.dropped == 3
        assert (await anext(news)).data == {"number": 3}


async def test_a_waiting_subscriber_wakes_on_publish() -> None:
    bus = EventBus()
    received: list[str] = []

    async def listen() -> None:
        with bus.subscribe() as news:
            async for event in news:
                received.append(event.kind)
                return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            bus.publish(Happened())
    assert received == ["server.happened"]


async def test_the_recent_past_is_bounded() -> None:
    bus = EventBus()
    for _ in range(RECENT_EVENTS + 7):
        bus.publish(Happened())
    assert [event.seq for event in bus.recent()][:1] == [8]
    assert len(bus.recent()) == RECENT_EVENTS


def test_a_tap_hears_at_once_and_its_failure_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = EventBus(), []

    def broken(event: Event) -> None:
        raise ValueError(event.kind)

    bus.tap(broken)
    bus.tap(lambda event: heard.append(event.kind))
    bus.publish(Happened())
    assert heard == ["server.happened"]
    assert "a listener failed on server.happened" in caplog.text


def test_the_data_of_an_event_has_the_names_that_clients_see() -> None:
    assert server_moved().data["from"] == "in_use"
    assert server_moved().data.keys() == {"root", "from", "to", "cause", "reason", "pid", "run"}


def test_every_kind_has_a_name_of_its_own() -> None:
    kinds = [one for one in vars(event_kinds).values() if isinstance(one, type) and issubclass(one, Event) and one.kind]
    assert len({one.kind for one in kinds}) == len(kinds) > 25
