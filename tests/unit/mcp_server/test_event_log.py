"""What is kept of what a client was sent."""

import pytest

from serena_central.mcp_server import event_log
from serena_central.mcp_server.event_log import KEPT_S, MOST_BYTES, MOST_EVENTS, STANDING, EventLog


def test_what_is_kept_is_bounded_in_number_and_size() -> None:
    log = EventLog()
    ids = [log.add(str(number)) for number in range(MOST_EVENTS * 2)]
    assert len(log) == MOST_EVENTS
    last = log.find(ids[-1])
    assert last is not None
    assert last.stream == str(MOST_EVENTS * 2 - 1)
    assert log.find(ids[0]) is None
    for number in range(3):
        log.add(str(number) * MOST_BYTES)
    assert len(log) == 1
    for _ in range(3):
        newest = log.add("1", b"x" * MOST_BYTES)
    assert len(log) == 1
    assert log.find(newest) is not None


def test_a_stream_is_known_by_an_event_of_this_log_alone() -> None:
    log, other = EventLog(), EventLog()
    first, _ = log.add("7", b"1"), log.add(STANDING, b"2")
    second = log.add("7", b"3", is_last=True)
    event = log.find(first)
    assert event is not None
    assert [after.data for after in log.after(event.number, "7")] == [b"3"]
    assert log.has_ended("7", event.number)
    assert not log.has_ended(STANDING, event.number)
    again = log.find(log.add("7"))
    assert again is not None
    assert not log.has_ended("7", again.number)
    assert [after.data for after in log.after(event.number, "7")] == [b"3"]  # the other is of another request
    assert log.after(event.number + 2, "7") == []
    assert other.find(first) is None
    for unknown in ("", "r", "r.", "r.x.1", first + "0", second.upper()):
        assert log.find(unknown) is None, unknown


def test_the_stream_outside_of_calls_never_ends() -> None:
    log = EventLog()
    log.add(STANDING, b"an answer to a request of this id", is_last=True)
    log.add(STANDING, b"news")
    assert len(log.after(0, STANDING)) == 2
    assert not log.has_ended(STANDING, 0)


def test_a_request_that_runs_can_be_taken_up_however_long_it_has_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(event_log, "running_time", lambda: now)
    log = EventLog()
    opened, progress = log.add("7"), log.add("7", b"1")
    log.add("8", b"answer", is_last=True)
    news = log.add(STANDING, b"news")
    now += KEPT_S + 1
    log.expire()
    assert log.find(progress) is not None
    assert log.find(opened) is None
    standing = log.find(news)
    assert standing is not None
    assert standing.stream == STANDING
    for unknown in (news + "0", news.replace("g.", "r.", 1), news.rpartition(".")[0] + "." + "9" * 5000):
        assert log.find(unknown) is None, unknown
    assert len(log) == 1
    log.add("7", b"answer", is_last=True)
    log.expire()
    assert len(log) == 1
    now += KEPT_S + 1
    log.expire()
    assert len(log) == 0
