"""The kinds of events, one struct each: publishers and subscribers name the same class.

The classes between `Event` and the kinds are what a subscription to a whole subject names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec

from serena_central.core.events import Event


class SessionEvent(Event, frozen=True, kw_only=True):
    """`session` is the session's id."""


class SessionCreated(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.created"
    client: str
    version: str
    identified_by: str
    """What the caller was identified by: a value of `sessions.session.IdentifiedBy`."""
    folder: str | None = None
    """Where the client works, if it says so."""


class SessionReturned(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.returned"


class SessionIdle(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.idle"


class SessionDisconnected(SessionEvent, frozen=True, kw_only=True):
    """`for_good`: its client ended the session, and did not just lose its connection."""

    kind: ClassVar[str] = "session.disconnected"
    for_good: bool = False


class SessionForgotten(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.forgotten"


class SessionKilled(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.terminated"


class SessionRevived(SessionEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "session.revived"


class SessionHalted(SessionEvent, frozen=True, kw_only=True):
    """A hook halted it, for the reason in the message."""

    kind: ClassVar[str] = "session.halted"


class SessionResumed(SessionEvent, frozen=True, kw_only=True):
    """A person lifted the halt."""

    kind: ClassVar[str] = "session.resumed"


class SessionActivated(SessionEvent, frozen=True, kw_only=True):
    """A project became the session's active one."""

    kind: ClassVar[str] = "session.activated"
    root: str


class SessionModes(SessionEvent, frozen=True, kw_only=True):
    """The session has other modes."""

    kind: ClassVar[str] = "session.modes"


class CallFinished(Event, frozen=True, kw_only=True):
    """A tool call was answered."""

    kind: ClassVar[str] = "call.finished"
    call: str
    tool: str
    outcome: str
    """`ok`, `error`, `cancelled` or `deadline`."""
    error: str | None = None
    """The class of the error."""
    duration_ms: float
    semantic_context: str = ""
    """The caller's own words about why it asks, cut."""


class EditApplied(Event, frozen=True, kw_only=True):
    kind: ClassVar[str] = "edit.applied"
    edit: str
    root: str
    tool: str
    files: Sequence[str]
    lines_added: int
    lines_removed: int


class TaskMoved(Event, frozen=True, kw_only=True):
    """A task has another state; `session` is its own."""

    kind: ClassVar[str] = "task.moved"
    task: str
    state: str
    agent: str | None = None
    runner: str
    parent: str | None = None


class TaskWrote(Event, frozen=True, kw_only=True):
    """A task has more output."""

    kind: ClassVar[str] = "task.wrote"
    task: str


class PlanMoved(Event, frozen=True, kw_only=True):
    """A plan, or a wave of it, has another state."""

    kind: ClassVar[str] = "plan.moved"
    plan: str
    state: str
    wave: str = ""


class ProjectEvent(Event, frozen=True, kw_only=True):
    """`project` is the project's name."""


class ProjectOpened(ProjectEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "project.opened"
    root: str
    files: int


class ProjectFailed(ProjectEvent, frozen=True, kw_only=True):
    """A project could not be opened."""

    kind: ClassVar[str] = "project.failed"
    root: str


class ProjectClosed(ProjectEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "project.closed"
    root: str


class ProjectRemoved(ProjectEvent, frozen=True, kw_only=True):
    """A project was taken off the list."""

    kind: ClassVar[str] = "project.removed"
    root: str


class ProjectSettingsProblem(ProjectEvent, frozen=True, kw_only=True):
    """Something is wrong with a project's settings."""

    kind: ClassVar[str] = "project.settings"


class ProjectTrust(ProjectEvent, frozen=True, kw_only=True):
    """A person has decided on what a project may execute."""

    kind: ClassVar[str] = "project.trust"
    root: str


class ServerEvent(Event, frozen=True, kw_only=True):
    """`server` is a language server's name in the catalogue; None for this server itself."""


class PooledServerEvent(ServerEvent, frozen=True, kw_only=True):
    """About the server of one key. `project` is its root, too."""

    root: str


class ServerMoved(PooledServerEvent, frozen=True, kw_only=True):
    """A run came into another state; values of `pool.state.RunState` and `pool.state.Cause`."""

    kind: ClassVar[str] = "server.moved"
    source: str = msgspec.field(name="from")
    to: str
    cause: str
    reason: str
    """The cause, and what is known beyond it."""
    pid: int | None = None
    run: int


class ServerBreaker(PooledServerEvent, frozen=True, kw_only=True):
    """A circuit breaker changed its state, a value of `pool.breaker.BreakerState`."""

    kind: ClassVar[str] = "server.breaker"
    state: str
    reason: str


class ServerPattern(PooledServerEvent, frozen=True, kw_only=True):
    """A pattern of the catalogue failed on what the server said."""

    kind: ClassVar[str] = "server.pattern"


class ServerReplacementPostponed(PooledServerEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "server.replacement_postponed"


class ServerLeftover(ServerEvent, frozen=True, kw_only=True):
    """A process that an earlier server had left was ended."""

    kind: ClassVar[str] = "server.leftover"
    pid: int


class ServerMissing(ServerEvent, frozen=True, kw_only=True):
    """A project has files of a language whose server is not on this machine."""

    kind: ClassVar[str] = "server.missing"
    root: str
    how_to_get: str


class ServerMemory(ServerEvent, frozen=True, kw_only=True):
    """The language servers in use exceed the memory budget, and none is idle that could be stopped."""

    kind: ClassVar[str] = "server.memory"


class ServerInstallEvent(ServerEvent, frozen=True, kw_only=True):
    """About the installation of a language server."""


class ServerInstallStarted(ServerInstallEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "server.install.started"


class ServerInstalled(ServerInstallEvent, frozen=True, kw_only=True):
    """A language server is there now, however it came."""

    kind: ClassVar[str] = "server.install.finished"
    version: str = ""
    via: str


class ServerInstallFailed(ServerInstallEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "server.install.failed"


class ServerSettingsProblem(ServerEvent, frozen=True, kw_only=True):
    """Something is wrong with the user's own contexts, modes or profiles."""

    kind: ClassVar[str] = "server.settings"


class SettingChanged(ServerEvent, frozen=True, kw_only=True):
    """A person changed a setting of this server in the user's file. `before` and `after` are what the file said, as
    JSON; None: nothing."""

    kind: ClassVar[str] = "server.setting"
    key: str
    before: str | None
    after: str | None


class DescriptorsExhausted(ServerEvent, frozen=True, kw_only=True):
    """This server has no file descriptors left."""

    kind: ClassVar[str] = "server.descriptors"


class UpstreamEvent(Event, frozen=True, kw_only=True):
    """About an MCP server of the hub. `server` is its name in the configuration, `project` the root whose own it is."""

    key: str
    """A digest of what starts it."""


class UpstreamMoved(UpstreamEvent, frozen=True, kw_only=True):
    """It came into another state; values of `hub.upstream.UpstreamState`."""

    kind: ClassVar[str] = "upstream.moved"
    source: str = msgspec.field(name="from")
    to: str
    reason: str = ""
    pid: int | None = None


class UpstreamResourceUpdated(UpstreamEvent, frozen=True, kw_only=True):
    """A resource has changed that `session` has subscribed to."""

    kind: ClassVar[str] = "upstream.resource_updated"
    uri: str


class UpstreamListed(UpstreamEvent, frozen=True, kw_only=True):
    """Its tools, resources or prompts are other ones than before."""

    kind: ClassVar[str] = "upstream.listed"
    tools: int


class StoreEvent(Event, frozen=True, kw_only=True):
    """About the database."""


class StoreFailed(StoreEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "store.failed"


class StoreRecovered(StoreEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "store.recovered"


class StoreDropped(StoreEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "store.dropped"
    rows: Mapping[str, int]
    """Of each table, how many were not recorded."""


class StoreReplaced(StoreEvent, frozen=True, kw_only=True):
    """A damaged database was set aside."""

    kind: ClassVar[str] = "store.replaced"


class UserEvent(Event, frozen=True, kw_only=True):
    """About an account of a team; the message says who did it."""

    user: str


class UserAdded(UserEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "user.added"
    admin: bool
    roots: Sequence[str]


class UserRotated(UserEvent, frozen=True, kw_only=True):
    """The user has another token."""

    kind: ClassVar[str] = "user.rotated"


class UserRevoked(UserEvent, frozen=True, kw_only=True):
    kind: ClassVar[str] = "user.revoked"


class UserSignedIn(UserEvent, frozen=True, kw_only=True):
    """At the dashboard, by the user's token."""

    kind: ClassVar[str] = "user.signed_in"


class AnalysisEnded(Event, frozen=True, kw_only=True):
    """An analysis run is over, well or with `message`."""

    kind: ClassVar[str] = "analysis.ended"
    analysis: str


def _kinds_below(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        if kind.kind:
            yield kind
        yield from _kinds_below(kind)


KINDS = {kind.kind: kind for kind in _kinds_below(Event)}
"""`subject.verb` → its class."""
