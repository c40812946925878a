"""Sessions are identified_by, isolated, put to sleep, killed and forgotten as the design says."""

from collections import Counter

import anyio
import pytest

from serena_central.config.policies import SessionPolicy
from serena_central.core.errors import InvalidArguments, SessionNotFound, SessionTerminated, TooManySessions
from serena_central.core.events import EventBus
from serena_central.sessions.manager import TOMBSTONES_KEPT_S, SessionManager
from serena_central.sessions.session import ActiveProject, ClientIdentity, IdentifiedBy, RunningCall, SessionState

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


def identity(**facts: object) -> ClientIdentity:
    return ClientIdentity(**{"credential": "me", "client_name": "codex", **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "identified_by"),
    [
        ({"explicit_id": "p-1", "transport_id": "t-1", "conversation_id": "c-1"}, IdentifiedBy.EXPLICIT),
        ({"transport_id": "t-1", "conversation_id": "c-1"}, IdentifiedBy.TRANSPORT),
        ({"conversation_id": "c-1"}, IdentifiedBy.CONVERSATION),
        ({"working_folder": "/src"}, IdentifiedBy.SHARED),
    ],
)
def test_the_strongest_fact_decides_and_always_the_same_way(
    facts: dict[str, object], identified_by: IdentifiedBy
) -> None:
    world = World()
    session = world.manager.identify(identity(**facts))
    assert session.identified_by is identified_by
    assert world.manager.identify(identity(**facts)) is session
    assert World().manager.identify(identity(**facts)).id == session.id


def test_different_conversations_never_share_a_session() -> None:
    manager = World().manager
    identities = [
        identity(explicit_id="a"),
        identity(explicit_id="b"),
        identity(transport_id="c"),
        identity(conversation_id="a"),
        identity(conversation_id="b"),
        identity(),
        identity(working_folder="/x"),
        identity(client_name="other"),
    ]
    assert len({manager.identify(one).id for one in identities}) == len(identities)


def test_another_credential_does_not_find_the_session() -> None:
    manager = World().manager
    manager.identify(identity(explicit_id="a"))
    with pytest.raises(SessionNotFound):
        manager.identify(identity(explicit_id="a", credential="you"))


@pytest.mark.parametrize("identifier", ["a b", "../x", "x" * 129, "\n", "-a", "ü"])
def test_an_explicit_id_must_be_a_plain_identifier(identifier: str) -> None:
    with pytest.raises(InvalidArguments):
        World().manager.identify(identity(explicit_id=identifier))


@pytest.mark.anyio
async def test_a_session_goes_idle_and_a_call_wakes_it() -> None:
    world = World()
    session = world.manager.identify(identity(transport_id="a"))
    assert world.manager.snapshot(session).state is SessionState.CONNECTED
    world.manager.activate(session, DJANGO)
    assert world.manager.snapshot(session).state is SessionState.CONNECTED
    session.running["c"] = RunningCall("c", "find_symbol", world.now, anyio.CancelScope())
    assert world.manager.snapshot(session).state is SessionState.ACTIVE
    session.running.clear()
    world.now += 300
    world.manager.sweep()
    world.manager.sweep()
    assert world.manager.snapshot(session).state is SessionState.IDLE
    assert world.kinds().count("session.idle") == 1
    world.manager.identify(identity(transport_id="a"))
    assert world.manager.snapshot(session).state is SessionState.CONNECTED


def test_a_client_with_a_blank_name_is_unknown_until_it_says_its_name() -> None:
    manager = World().manager
    for name, shown in ((" \n ", "unknown"), ("\u3000", "unknown"), (" codex ", "codex")):
        assert manager.identify(identity(explicit_id="s", client_name=name)).client_name == shown


def test_a_session_belongs_to_the_project_of_its_calls_unless_it_activated_one() -> None:
    world = World()
    session = world.manager.identify(identity(transport_id="a"))
    shop = ActiveProject("shop", "/src/shop")
    world.manager.works_on(session, shop)
    shown = world.manager.snapshot(session)
    assert (shown.project_name, shown.project_root, shown.active_project_name) == ("shop", "/src/shop", None)
    assert session.attached_root == "/src/shop"
    world.manager.activate(session, DJANGO)
    assert world.manager.snapshot(session).project_name == DJANGO.name
    world.manager.forget_project(DJANGO.root)
    assert session.attached_root == "/src/shop"
    world.manager.forget_project("/src/shop")
    assert (session.project, session.attached_root) == (None, None)


def test_interest_follows_the_session_through_every_change() -> None:
    world = World()
    manager, interest = world.manager, world.registry.interest
    session = manager.identify(identity(explicit_id="a"))
    manager.activate(session, DJANGO)
    manager.activate(session, DJANGO)
    assert interest == {DJANGO.root: 1}
    manager.disconnect("a", "bye")
    manager.disconnect("a", "bye")
    assert interest[DJANGO.root] == 0
    manager.identify(identity(explicit_id="a"))
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
    world.manager.identify(identity(explicit_id="a"))
    world.manager.terminate("a", "ann")
    world.now += TOMBSTONES_KEPT_S
    world.manager.sweep()
    with pytest.raises(SessionTerminated, match="by ann at 1970-01-01T00:16:40Z"):
        world.manager.identify(identity(explicit_id="a"))
    world.now += 1
    world.manager.sweep()
    assert world.manager.sessions() == []


def test_the_kill_of_a_shared_session_is_lifted_by_time() -> None:
    world = World()
    session = world.manager.identify(identity())
    world.manager.activate(session, DJANGO)
    world.manager.terminate(session.id, "ann")
    world.now += 599
    with pytest.raises(SessionTerminated):
        world.manager.identify(identity())
    world.now += 1
    assert world.manager.identify(identity()) is session
    assert world.registry.interest[DJANGO.root] == 1


def test_silent_and_disconnected_sessions_are_forgotten_in_the_end() -> None:
    world = World()
    session = world.manager.identify(identity(conversation_id="c"))
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
    session = world.manager.identify(identity(explicit_id="a"))
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        call = RunningCall("c-1", "find_symbol", world.now, scope)
        session.running[call.id] = call
        getattr(world.manager, end)("a", "ann")
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert "ann" in (call.cancelled_because or "")


class JumpyWorld(World):
    """Whose clock on the wall is set, or whose process was stopped: `set_clock` moves no other clock."""

    def __init__(self, policy: SessionPolicy | None = None) -> None:
        super().__init__(policy)
        self.steady = 0.0
        self.manager = SessionManager(
            bus=self.bus,
            interest=self.registry,
            policy=policy,
            clock=lambda: self.now,
            steady=lambda: self.steady,
        )

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds

    def set_clock(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.anyio
@pytest.mark.parametrize("jump_s", [5 * 3600, -5 * 3600, 400 * 86_400])
async def test_a_clock_that_is_set_makes_no_session_idle_gone_or_forgotten(jump_s: float) -> None:
    world = JumpyWorld()
    quiet, gone = (
        world.manager.identify(identity(explicit_id="quiet")),
        world.manager.identify(identity(explicit_id="gone")),
    )
    world.manager.disconnect(gone.id, "it left")
    call = RunningCall("c-1", "find_symbol", world.now, anyio.CancelScope())
    quiet.running[call.id] = call
    world.pass_time(60)
    world.set_clock(jump_s)
    world.manager.sweep()
    assert not call.scope.cancel_called
    del quiet.running[call.id]
    assert world.manager.snapshot(quiet).state is SessionState.CONNECTED
    assert world.manager.get(gone.id) is gone
    assert "session.idle" not in world.kinds()
    # What is due by the time that really passed still comes.
    world.pass_time(world.manager.policy.idle_after_s - 60)
    world.manager.sweep()
    assert "session.idle" in world.kinds()
    world.pass_time(world.manager.policy.retention_s)
    world.manager.sweep()
    assert gone not in world.manager.sessions()


@pytest.mark.parametrize("jump_s", [5 * 3600, -5 * 3600])
def test_the_kill_of_a_shared_session_lasts_as_long_as_it_should_whatever_the_clock_does(jump_s: float) -> None:
    world = JumpyWorld()
    shared = world.manager.identify(identity())
    world.manager.terminate(shared.id, "ann")
    world.set_clock(jump_s)
    with pytest.raises(SessionTerminated, match="it goes on at"):
        world.manager.identify(identity())
    world.pass_time(world.manager.policy.shared_kill_lift_s + 1)
    assert world.manager.identify(identity()) is shared


def test_room_is_made_by_those_that_never_called_the_longest_unheard_of_first() -> None:
    world = World(SessionPolicy(max_sessions=4))
    used, held, first, second = (world.manager.identify(identity(explicit_id=name)) for name in ("u", "h", "a", "b"))
    used.count("find_symbol", 1.0, failed=False, at=world.now)
    with world.manager.held(held):
        world.now += 1
        world.manager.identify(identity(explicit_id="a"))  # heard of again
        world.manager.identify(identity(explicit_id="c"))
        assert second not in world.manager.sessions()
        assert first in world.manager.sessions()
        for number in range(100):
            world.now += 1
            world.manager.identify(identity(explicit_id=f"flood-{number}"))
        kept = world.manager.sessions()
        assert len(kept) == 4
        assert {used, held} < set(kept)


def test_where_all_are_in_use_a_new_session_is_refused_and_the_old_ones_go_on() -> None:
    world = World(SessionPolicy(max_sessions=2))
    for name in ("a", "b"):
        world.manager.identify(identity(explicit_id=name)).count("find_symbol", 1.0, failed=False, at=world.now)
    with pytest.raises(TooManySessions, match=r"limit of 2 sessions.*sessions\.max_sessions"):
        world.manager.identify(identity(explicit_id="c"))
    with pytest.raises(TooManySessions):
        world.manager.check_room("me")
    assert world.manager.identify(identity(explicit_id="a")).calls == 1


def test_where_none_is_unused_those_go_whose_clients_are_gone_and_no_terminated_one() -> None:
    world = World(SessionPolicy(max_sessions=4))
    here, killed, first, second = (world.manager.identify(identity(explicit_id=name)) for name in ("h", "k", "a", "b"))
    for session in (here, killed, first, second):
        world.now += 1
        session.count("find_symbol", 1.0, failed=False, at=world.now)
        session.last_activity = world.now
    for session in (first, second):
        world.manager.disconnect(session.id, "its proxy ended")
    world.manager.terminate(killed.id, by="a person")
    world.manager.check_room("me")
    world.manager.identify(identity(explicit_id="c")).count("find_symbol", 1.0, failed=False, at=world.now)
    world.manager.identify(identity(explicit_id="d")).count("find_symbol", 1.0, failed=False, at=world.now)
    assert {here, killed} < set(world.manager.sessions())
    assert not {first, second} & set(world.manager.sessions())
    with pytest.raises(TooManySessions):
        world.manager.identify(identity(explicit_id="e"))


def test_a_flood_of_an_earlier_run_is_not_restored_beyond_the_limit() -> None:
    flooded, world = World(SessionPolicy(max_sessions=50)), World(SessionPolicy(max_sessions=3))
    sessions = [flooded.manager.identify(identity(explicit_id=f"s{number}")) for number in range(50)]
    sessions[7].count("find_symbol", 1.0, failed=False, at=flooded.now)
    world.manager.restore(sessions)
    assert len(world.manager.sessions()) == 3
    assert sessions[7] in world.manager.sessions()
