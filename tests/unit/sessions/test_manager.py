"""Sessions are recognised, isolated, put to sleep, killed and forgotten as the design says."""

from collections import Counter

import anyio
import pytest

from serena_central.config.settings import SessionPolicy
from serena_central.core.errors import InvalidArguments, SessionNotFound, SessionTerminated
from serena_central.core.events import EventBus
from serena_central.sessions.claim import Claim, Recognised
from serena_central.sessions.manager import TOMBSTONES_KEPT_S, SessionManager
from serena_central.sessions.session import ActiveProject, RunningCall, SessionState

DJANGO = ActiveProject("django", "/src/django")


class Registry:
    """Counts interest per root, as the projects' registry does."""

    def __init__(self) -> None:
        self.interest: Counter[str] = Counter()

    def attach(self, root: str) -> None:
        self.interest[root] += 1

    def detach(self, root: str) -> None:
        self.interest[root] -= 1
        assert self.interest[root] >= 0


class World:
    def __init__(self, policy: SessionPolicy | None = None) -> None:
        self.now = 1000.0
        self.bus = EventBus()
        self.registry = Registry()
        self.manager = SessionManager(bus=self.bus, interest=self.registry, policy=policy, clock=lambda: self.now)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.bus.recent()]


def claim(**facts: object) -> Claim:
    return Claim(**{"credential": "me", "client_name": "codex", **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "recognised"),
    [
        ({"explicit_id": "p-1", "transport_id": "t-1", "conversation_id": "c-1"}, Recognised.EXPLICIT),
        ({"transport_id": "t-1", "conversation_id": "c-1"}, Recognised.TRANSPORT),
        ({"conversation_id": "c-1"}, Recognised.CONVERSATION),
        ({"working_folder": "/src"}, Recognised.SHARED),
    ],
)
def test_the_strongest_fact_decides_and_always_the_same_way(facts: dict[str, object], recognised: Recognised) -> None:
    world = World()
    session = world.manager.identify(claim(**facts))
    assert session.recognised is recognised
    assert world.manager.identify(claim(**facts)) is session
    assert World().manager.identify(claim(**facts)).id == session.id


def test_different_conversations_never_share_a_session() -> None:
    manager = World().manager
    claims = [
        claim(explicit_id="a"),
        claim(explicit_id="b"),
        claim(transport_id="c"),
        claim(conversation_id="a"),
        claim(conversation_id="b"),
        claim(),
        claim(working_folder="/x"),
        claim(client_name="other"),
    ]
    assert len({manager.identify(one).id for one in claims}) == len(claims)


def test_another_credential_does_not_find_the_session() -> None:
    manager = World().manager
    manager.identify(claim(explicit_id="a"))
    with pytest.raises(SessionNotFound):
        manager.identify(claim(explicit_id="a", credential="you"))


@pytest.mark.parametrize("identifier", ["a b", "../x", "x" * 129, "\n", "-a", "ü"])
def test_an_explicit_id_must_be_a_plain_identifier(identifier: str) -> None:
    with pytest.raises(InvalidArguments):
        World().manager.identify(claim(explicit_id=identifier))


def test_a_session_goes_idle_and_a_call_wakes_it() -> None:
    world = World()
    session = world.manager.identify(claim(transport_id="a"))
    assert world.manager.snapshot(session).state is SessionState.CONNECTED
    world.manager.activate(session, DJANGO)
    assert world.manager.snapshot(session).state is SessionState.ACTIVE
    world.now += 300
    world.manager.sweep()
    world.manager.sweep()
    assert world.manager.snapshot(session).state is SessionState.IDLE
    assert world.kinds().count("session.idle") == 1
    world.manager.identify(claim(transport_id="a"))
    assert world.manager.snapshot(session).state is SessionState.ACTIVE


def test_interest_follows_the_session_through_every_change() -> None:
    world = World()
    manager, interest = world.manager, world.registry.interest
    session = manager.identify(claim(explicit_id="a"))
    manager.activate(session, DJANGO)
    manager.activate(session, DJANGO)
    assert interest == {DJANGO.root: 1}
    manager.disconnect("a", "bye")
    manager.disconnect("a", "bye")
    assert interest[DJANGO.root] == 0
    manager.identify(claim(explicit_id="a"))
    assert interest[DJANGO.root] == 1
    manager.terminate("a", "a person")
    assert interest[DJANGO.root] == 0
    manager.revive("a")
    assert interest[DJANGO.root] == 1
    manager.activate(session, ActiveProject("flask", "/src/flask"))
    assert interest == {DJANGO.root: 0, "/src/flask": 1}
    manager.forget_project("/src/flask")
    assert interest["/src/flask"] == 0
    assert session.active_project is None


def test_a_killed_session_is_refused_long_after_and_then_forgotten() -> None:
    world = World()
    world.manager.identify(claim(explicit_id="a"))
    world.manager.terminate("a", "ann")
    world.now += TOMBSTONES_KEPT_S
    world.manager.sweep()
    with pytest.raises(SessionTerminated, match="by ann at 1970-01-01T00:16:40Z"):
        world.manager.identify(claim(explicit_id="a"))
    world.now += 1
    world.manager.sweep()
    assert world.manager.sessions() == []


def test_the_kill_of_a_shared_session_is_lifted_by_time() -> None:
    world = World()
    session = world.manager.identify(claim())
    world.manager.activate(session, DJANGO)
    world.manager.terminate(session.id, "ann")
    world.now += 599
    with pytest.raises(SessionTerminated):
        world.manager.identify(claim())
    world.now += 1
    assert world.manager.identify(claim()) is session
    assert world.registry.interest[DJANGO.root] == 1


def test_silent_and_disconnected_sessions_are_forgotten_in_the_end() -> None:
    world = World()
    session = world.manager.identify(claim(conversation_id="c"))
    world.now += 1800
    world.manager.sweep()
    assert world.manager.snapshot(session).state is SessionState.DISCONNECTED
    world.now += 3600
    world.manager.sweep()
    assert world.manager.sessions() == []
    assert world.kinds() == ["session.created", "session.disconnected", "session.forgotten"]


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["terminate", "disconnect"])
async def test_the_end_of_a_session_cancels_its_running_calls(end: str) -> None:
    world = World()
    session = world.manager.identify(claim(explicit_id="a"))
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        call = RunningCall("c-1", "find_symbol", world.now, scope)
        session.running[call.id] = call
        getattr(world.manager, end)("a", "ann")
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert "ann" in (call.cancelled_because or "")
