"""Deadlines and the cap, event by event and second by second."""

import math

import pytest

from serena_central.access.connections import (
    CHECK_S,
    HEAD_BYTES,
    HELD_UP_S,
    IDLE_CHECK_S,
    Connection,
    Connections,
    Deadlines,
    Phase,
)
from serena_central.core.rest import Rest

DEADLINES = Deadlines(head_s=10, answer_s=10, idle_s=5, body_pause_s=30, body_s=600)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeTransport:
    """What was done with it."""

    def __init__(self) -> None:
        self.written = b""
        self.end = ""

    def write(self, data: bytes, /) -> None:
        self.written += data

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "aborted"

    def is_closing(self) -> bool:
        return self.end != ""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connections(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Connections:
    working = Rest(clock)
    working.is_busy = lambda: True
    monkeypatch.setattr("serena_central.access.connections.rest", working)
    return Connections(DEADLINES, clock=clock)


class Client:
    """One connection, and a parser that finds what the test says."""

    def __init__(self, connections: Connections) -> None:
        self.transport = FakeTransport()
        self.connection = Connection(connections, self.transport)

    @property
    def end(self) -> str:
        return self.transport.end

    def part_of_head(self, size: int = 1) -> None:
        self.connection.take(b"x" * size, lambda piece: None)
        self.connection.settle(answering=False)

    def head(self, *, body: bool = False) -> None:
        self.connection.take(b"x" * 100, lambda _: self._head_ended(body=body))
        self.connection.settle(answering=True)

    def _head_ended(self, *, body: bool) -> None:
        self.connection.body_goes_on()
        if not body:
            self.connection.request_ended()

    def part_of_body(self) -> None:
        self.connection.take(b"x" * 100, lambda _: self.connection.body_goes_on())
        self.connection.settle(answering=True)

    def end_of_body(self) -> None:
        self.connection.take(b"x", lambda _: self.connection.request_ended())
        self.connection.settle(answering=True)

    def answered(self) -> None:
        self.connection.settle(answering=False)


def pass_time(connections: Connections, clock: Clock, seconds: float) -> None:
    """Looks each second, as the server does."""
    until = clock.now + seconds
    while clock.now < until:
        clock.now = min(until, clock.now + 1)
        connections.close_late()


def test_the_first_head_is_due_from_accept_on(connections: Connections, clock: Clock) -> None:
    silent, slow = Client(connections), Client(connections)
    for _ in range(9):
        slow.part_of_head()
        pass_time(connections, clock, 1)
    assert (silent.end, slow.end) == ("", "")
    slow.part_of_head()
    pass_time(connections, clock, 1)
    assert (silent.end, slow.end) == ("aborted", "aborted")


def test_an_unauthenticated_caller_that_goes_on_has_five_seconds(connections: Connections, clock: Clock) -> None:
    client = Client(connections)
    for _ in range(5):
        client.head()
        client.answered()
        pass_time(connections, clock, 4)
        assert client.end == ""
    client.part_of_head()
    pass_time(connections, clock, 1)
    assert client.end == "aborted"


@pytest.mark.parametrize("body", [True, False])
def test_an_unauthenticated_caller_that_sends_slowly_or_takes_no_answer_is_closed(
    connections: Connections, clock: Clock, *, body: bool
) -> None:
    client = Client(connections)
    client.head(body=body)
    for _ in range(9):
        if body:
            client.part_of_body()
        pass_time(connections, clock, 1)
    assert client.end == ""
    pass_time(connections, clock, 1)
    assert client.end == "aborted"


def test_an_authenticated_caller_may_wait_as_long_as_it_likes_for_an_answer_and_between_requests(
    connections: Connections, clock: Clock
) -> None:
    client = Client(connections)
    for _ in range(3):
        client.head()
        client.connection.authenticate()
        pass_time(connections, clock, 10_000)
        client.answered()
        pass_time(connections, clock, 100)
    assert (client.end, client.connection.deadline) == ("", math.inf)
    client.part_of_head()
    pass_time(connections, clock, 10)
    assert client.end == "aborted"


def test_an_authenticated_body_may_be_slow_but_not_stop_nor_last_for_ever(
    connections: Connections, clock: Clock
) -> None:
    slow, stopped, endless = Client(connections), Client(connections), Client(connections)
    for client in (slow, stopped, endless):
        client.head(body=True)
        client.connection.authenticate()
    for _ in range(20):
        pass_time(connections, clock, 29)
        slow.part_of_body()
        endless.part_of_body()
    assert (slow.end, stopped.end, endless.end) == ("", "aborted", "")
    slow.end_of_body()
    pass_time(connections, clock, 20)
    assert (slow.end, endless.end) == ("", "aborted")


def test_a_server_that_was_held_up_reads_before_it_closes(connections: Connections, clock: Clock) -> None:
    client = Client(connections)
    connections.close_late()
    clock.now += HELD_UP_S + 60
    connections.close_late()
    assert client.end == ""
    pass_time(connections, clock, 1)
    assert client.end == "aborted"


def test_deadlines_are_looked_at_seldom_while_all_callers_are_known(connections: Connections, clock: Clock) -> None:
    woken: list[float] = []
    connections.on_due = lambda: woken.append(clock.now)
    clock.now = 60 * IDLE_CHECK_S
    assert connections.close_late() == IDLE_CHECK_S
    client = Client(connections)
    assert woken == [clock.now]
    assert connections.close_late() == CHECK_S
    Client(connections).connection.lost()
    assert len(woken) == 1, "that is soon enough"
    client.connection.authenticate()
    client.part_of_head()
    assert connections.close_late() == IDLE_CHECK_S
    for _ in range(2):
        clock.now += IDLE_CHECK_S
        connections.close_late()
    assert client.end == "aborted", "late by that at the most"


def test_a_look_that_comes_later_for_the_sake_of_other_work_closes_what_is_late(
    connections: Connections, clock: Clock
) -> None:
    client = Client(connections)
    client.connection.authenticate()
    client.part_of_head()
    clock.now = 0.6 * IDLE_CHECK_S
    client.connection.deadline = clock.now + IDLE_CHECK_S
    clock.now += connections.close_late()
    assert clock.now == 25, "on the grid, a second later than the deadline needs"
    connections.close_late()
    assert client.end == "aborted"


def test_a_head_ends_at_its_limit_however_it_comes(connections: Connections) -> None:
    at_once, dripping, long_enough = Client(connections), Client(connections), Client(connections)
    at_once.part_of_head(10 * HEAD_BYTES)
    for _ in range(HEAD_BYTES - 1):
        dripping.part_of_head()
    assert (at_once.end, dripping.end) == ("closed", "")
    dripping.part_of_head()
    assert dripping.end == "closed"
    for client in (at_once, dripping):
        head, _, body = client.transport.written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert f"content-length: {len(body)}".encode() in head.lower()
    long_enough.part_of_head(HEAD_BYTES - 100)
    long_enough.head()
    assert long_enough.end == ""


def test_what_a_body_has_beside_itself_is_bounded_too(connections: Connections) -> None:
    client = Client(connections)
    client.head(body=True)
    for _ in range(100):
        client.part_of_body()
        client.part_of_head(HEAD_BYTES - 100)
    assert client.end == ""
    client.part_of_head(100)
    assert client.end == "aborted"


def test_the_oldest_that_is_not_being_answered_makes_room(connections: Connections) -> None:
    connections.most_unauthenticated = 3
    known = Client(connections)
    known.head()
    known.connection.authenticate()
    answering, idle, last = (Client(connections) for _ in range(3))
    answering.head()
    newest = [Client(connections) for _ in range(2)]
    assert [client.end for client in (known, answering, idle, last)] == ["", "", "aborted", "aborted"]
    assert connections.count() == {"authenticated": 1, "unauthenticated": 5, "closed_for_room": 2}
    for client in (idle, last):
        client.connection.lost()
    assert connections.count() == {"authenticated": 1, "unauthenticated": 3, "closed_for_room": 2}
    for client in newest:
        client.head()
    Client(connections)
    assert answering.end == "aborted"  # where all are being answered, the oldest


def test_few_descriptors_allow_few_unauthenticated_connections(clock: Clock) -> None:
    assert Connections(descriptors=256, clock=clock).most_unauthenticated == 64
    assert Connections(descriptors=1e6, clock=clock).most_unauthenticated == 512
    assert Connections(clock=clock).most_unauthenticated == 512


def test_a_phase_is_what_is_waited_for(connections: Connections) -> None:
    client = Client(connections)
    assert client.connection.phase is Phase.REQUEST
    client.part_of_head()
    assert client.connection.phase is Phase.HEAD
    client.head(body=True)
    assert client.connection.phase is Phase.BODY
    client.end_of_body()
    assert client.connection.phase is Phase.ANSWER
    client.answered()
    assert client.connection.phase is Phase.REQUEST
