"""Session: one conversation of one client with the server. Plain state; the manager alone creates and ends sessions.

A client identity is what a request says about its caller, with the rule that derives a session id from it. The rule
needs no memory, so that a conversation is recognized after a restart of the server as before it. It knows no HTTP:
`mcp_server/sender.py` and `web` collect the facts.

A session owns no language server and no project: it holds the root of its active project, and everything a call needs
is in its session and its arguments.
"""

import hashlib
import os
import re
import secrets
from array import array
from bisect import bisect_left
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
import msgspec

from serena_central.core.clock import utc
from serena_central.core.errors import InvalidArguments, SessionTerminated
from serena_central.core.paths import kept_path
from serena_central.core.quoting import escaped
from serena_central.files.mounts import is_away

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_NAME_LIMIT = 200
"""Characters kept of what a client says about itself: enough for any name, harmless in logs and pages."""


def new_session_id(front: str = "") -> str:
    """A session id with 96 random bits. `front`: the server that it belongs to, where several share a database."""
    return f"{front}." * bool(front) + "s-" + secrets.token_hex(12)


class IdentifiedBy(StrEnum):
    """What a conversation was identified by, strongest first."""

    EXPLICIT = "explicit"
    """X-Serena-Session: set by the client's configuration, or by a proxy in front of it."""
    TRANSPORT = "transport"
    """Mcp-Session-Id of the handshake era."""
    CONVERSATION = "conversation"
    """An id that the client puts into `_meta` of each request."""
    SHARED = "shared"
    """Only token, client name and folder are known: two windows may hide behind it."""


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What one request says about its sender. `credential` is a digest of the token, never the token."""

    credential: str
    era: Literal["handshake", "modern"] = "modern"
    explicit_id: str | None = None
    transport_id: str | None = None
    conversation_id: str | None = None
    client_name: str = ""
    client_version: str = ""
    working_folder: str | None = None
    context: str | None = None
    modes: tuple[str, ...] = ()
    """Modes that a new session begins with; an older one keeps its own."""
    through_hub: bool = False
    """The client is a hub of MCP servers, perhaps this very server's: it is offered no other servers' tools."""
    client_pid: int | None = None
    """The process behind the proxy, as the proxy says."""

    def resolve(self) -> tuple[str, IdentifiedBy]:
        """The session id that this request belongs to, and what it was identified by.

        Raises:
            InvalidArguments: an explicit id that is no plain identifier.
        """
        if self.explicit_id:
            return _checked(self.explicit_id), IdentifiedBy.EXPLICIT
        if self.transport_id:
            return _checked(self.transport_id), IdentifiedBy.TRANSPORT
        if self.conversation_id:
            return "conversation-" + _digest(self.credential, self.conversation_id), IdentifiedBy.CONVERSATION
        marks = (self.credential, self.client_name, self.working_folder or "")
        return "shared-" + _digest(*marks), IdentifiedBy.SHARED


def shortened(text: str) -> str:
    """What a client says about itself, bounded, on one line; a blank text is empty."""
    return escaped(text.strip()[:_NAME_LIMIT])[:_NAME_LIMIT]


def _checked(identifier: str) -> str:
    if not _SAFE_ID.fullmatch(identifier):
        raise InvalidArguments(
            "A session id consists of at most 128 letters, digits and . _ : -, and starts with a letter or digit."
        )
    return identifier


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


MINUTES_KEPT = 60

_BOUNDS_MS = [0.05 * 1.25**step for step in range(68)]
"""Upper bounds of the duration buckets: 50 µs to three minutes."""


class Minute(NamedTuple):
    """One minute, which began at `at` (Unix seconds). Durations are None when no call ended in it."""

    at: float
    calls: int
    errors: int
    p50_ms: float | None
    p95_ms: float | None


class _Slot:
    __slots__ = ("calls", "counts", "errors", "minute")

    def __init__(self, minute: int) -> None:
        self.minute = minute
        self.calls = 0
        self.errors = 0
        self.counts = array("I", [0] * (len(_BOUNDS_MS) + 1))

    def percentile(self, percent: int) -> float | None:
        """The smallest bound that this percentage of the calls does not exceed."""
        if not self.calls:
            return None
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if seen * 100 >= self.calls * percent:
                return _BOUNDS_MS[min(index, len(_BOUNDS_MS) - 1)]
        raise AssertionError("every call was counted")


class Minutes:
    """The calls of the last hour, counted by minute. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}

    def add(self, at: float, duration_ms: float, *, failed: bool) -> None:
        """A call ended."""
        minute = int(at // 60)
        slot = self._slots.get(minute % MINUTES_KEPT)
        if slot is None or slot.minute != minute:
            slot = self._slots[minute % MINUTES_KEPT] = _Slot(minute)
        slot.calls += 1
        slot.errors += failed
        slot.counts[bisect_left(_BOUNDS_MS, duration_ms)] += 1

    def last_hour(self, now: float) -> list[Minute]:
        """The last 60 minutes, the running one included, oldest first."""
        newest = int(now // 60)
        return [self._minute(minute) for minute in range(newest - MINUTES_KEPT + 1, newest + 1)]

    def _minute(self, minute: int) -> Minute:
        slot = self._slots.get(minute % MINUTES_KEPT)
        if slot is None or slot.minute != minute:
            return Minute(minute * 60.0, 0, 0, None, None)
        return Minute(minute * 60.0, slot.calls, slot.errors, slot.percentile(50), slot.percentile(95))


CONVERSATIONS_KEPT = 16
"""Ids of a client's conversations in one session."""

LOG_LINES = 200
"""Lines kept per session: enough to see what an agent just did, at most about 80 KB."""

MESSAGE_CHARS = 200
"""Of an error, in the log and in the event of its call."""

DURATIONS_KEPT = 256
"""Newest durations kept per tool for p50 and p95."""


class SessionState(StrEnum):
    """`active`: a call is running; `connected`: none is, and the last one ended not long ago."""

    CONNECTED = "connected"
    ACTIVE = "active"
    IDLE = "idle"
    DISCONNECTED = "disconnected"
    TERMINATED = "terminated"


class LogLine(NamedTuple):
    at: float
    level: str
    text: str
    call: str = ""
    """Id of the call that it is about."""


class Termination(NamedTuple):
    """Who killed a session, when (Unix seconds), and until when it holds (None: for good)."""

    by: str
    at: float
    until: float | None

    @property
    def error(self) -> SessionTerminated:
        return SessionTerminated(self.by, utc(self.at), None if self.until is None else utc(self.until))


class ActiveProject(NamedTuple):
    name: str
    root: str


class SeenPlace(NamedTuple):
    """A symbol that a session saw: its file's folder and name, whichever of the projects that have the file showed it,
    and its name path (`""`: all of it)."""

    folder: str
    file: str
    name_path: str


@dataclass(slots=True)
class ToolStatistics:
    """Counters of one tool in one session; durations in milliseconds."""

    calls: int = 0
    errors: int = 0
    durations_ms: deque[float] = field(default_factory=lambda: deque(maxlen=DURATIONS_KEPT))


def call_line(tool: str, project: str | None, outcome: str, duration_ms: float, message: str) -> str:
    """How a session's log tells of a call that ended; `message` is of its error."""
    where, why = f" {project}" if project else "", f": {message}" if message else ""
    took = f"{duration_ms:.1f} ms" if duration_ms < 1000 else f"{duration_ms / 1000:.1f} s"
    return f"{tool}{where} {outcome} {took}{why}"


@dataclass(slots=True)
class EarlierCalls:
    """What a session called in earlier runs of the server."""

    log: list[LogLine] = field(default_factory=list[LogLine])
    """The newest lines, oldest first."""
    tools: dict[str, ToolStatistics] = field(default_factory=dict[str, ToolStatistics])


@dataclass(slots=True)
class RunningCall:
    """A call in flight. Cancelling `scope` ends it; `cancelled_because` is the message to its caller."""

    id: str
    tool: str
    started_at: float
    scope: anyio.CancelScope
    about: str = ""
    """Its main argument: the symbol, file, pattern or command; shortened."""
    cancelled_because: str | None = None

    def cancel(self, reason: str) -> None:
        """A call that its client has cancelled gets no answer any more, and so no reason."""
        if not self.scope.cancel_called:
            self.cancelled_because = reason
            self.scope.cancel()


class Session:
    """One conversation. Belongs to the event loop's thread."""

    def __init__(self, session_id: str, identified_by: IdentifiedBy, identity: ClientIdentity, *, now: float) -> None:
        self.id = session_id
        self.identified_by = identified_by
        self.credential = identity.credential
        self.era = identity.era
        self.client_name = shortened(identity.client_name) or "unknown"
        self.client_version = shortened(identity.client_version)
        self.working_folder = identity.working_folder
        self.context = identity.context
        self.created_at = now
        self.last_activity = now
        self.active_project: ActiveProject | None = None
        self.worked_on: ActiveProject | None = None
        """The project of its newest call about one, where that was not the active one."""
        self.attached_root: str | None = None
        """The root in which this session's interest is registered; only the manager changes it."""
        self.client_pid = identity.client_pid
        self.through_hub = identity.through_hub
        self.client_conversations: list[str] = []
        """Ids that its client or the client's hooks gave its conversations since the server started, newest last."""
        self.hook_conversation = ""
        """The id that the client's hooks gave last: that of the conversation that goes on now."""
        self.note_conversation(identity.conversation_id)
        self.modes: tuple[str, ...] = identity.modes
        self.modes_chosen = bool(identity.modes)
        """Its client has named modes, at the start or since: what it repeats with each request does not count again."""
        self.opening: bytes | None = None
        """The `initialize` request of a handshake client, by which it can resume after a restart."""
        self.transport_id: str | None = None
        """The conversation that `opening` began."""
        self.holders = 0
        """Streams that its client keeps open: while there is one, the client lives, however quiet it is."""
        self.disconnected_at: float | None = None
        self.ended = False
        """Its client said that it ended the session."""
        self.awaited = False
        """Its client was connected when an earlier run of the server ended, and has not come back yet."""
        self.termination: Termination | None = None
        self.seen_idle = False
        """Whether the sweep has told the world that this session went idle; cleared by the next call."""
        self.calls = 0
        self.errors = 0
        self.edits = 0
        self.memories_seen: dict[tuple[str, str], str] = {}
        """Memories by (root, name) → digest of what this session last saw of them."""
        self.restrictions_noted: set[tuple[str, str]] = set()
        """(root, server) pairs for which it was notified that the server is restricted there, and (root, why) of files
        whose errors no server tells."""
        self.pythons_noted: dict[tuple[str, str], str] = {}
        """(root, server) → the note that it was given on the Python environment there."""
        self.dependencies_noted: dict[tuple[str, str], str] = {}
        """(folder of a manifest, server) → the note that it was given on missing packages there; ("", "") → on modes,
        contexts and tools that are not there."""
        self.tools: dict[str, ToolStatistics] = {}
        self.minutes = Minutes()
        self.running: dict[str, RunningCall] = {}
        self.held_back_told: dict[str, tuple[str, ...]] = {}
        """Root → the note that it was given on what is held back there for lack of trust."""
        self.views: OrderedDict[SeenPlace, str] = OrderedDict()
        """Hashes of what it last saw of symbols, the oldest first; kept by tools/symbol_answers.py."""
        self.views_in_store = False
        """An earlier run of the server wrote views that were not read yet."""
        self.earlier = EarlierCalls()
        """Kept by sessions/earlier.py."""
        self.calls_in_store_before: float | None = None
        """Calls until then (Unix time) were made in earlier runs of the server, and were not read yet."""
        self.secured = False
        """Whether the store knows how it began and all that it saw, as far as tools/symbol_answers.py can tell."""
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)

    @property
    def shared(self) -> bool:
        """Two windows may hide behind this session: nothing that one decides may stick for the other."""
        return self.identified_by is IdentifiedBy.SHARED

    @property
    def project(self) -> ActiveProject | None:
        """Where it works: in the project that it made active, else in that of its newest call."""
        return self.active_project or self.worked_on

    @property
    def whole_log(self) -> list[LogLine]:
        """The newest lines, oldest first, earlier runs of the server included."""
        return [*self.earlier.log, *self.log][-LOG_LINES:]

    def state(self, now: float, idle_after_s: float) -> SessionState:
        if self.terminated(now):
            return SessionState.TERMINATED
        if self.disconnected_at is not None:
            return SessionState.DISCONNECTED
        if not self.running and now - self.last_activity >= idle_after_s:
            return SessionState.IDLE
        return SessionState.ACTIVE if self.running else SessionState.CONNECTED

    def terminated(self, now: float) -> bool:
        killed = self.termination
        return killed is not None and (killed.until is None or now < killed.until)

    @property
    def rules_root(self) -> Path:
        """Where the rules are looked for that it has to follow when a call names no project: the user's own while the
        folder that it works in can't be looked at, since whoever did would hold up everybody."""
        works_in = self.active_project.root if self.active_project else self.working_folder
        folder = works_in if works_in and not is_away(works_in) else os.environ.get("HOME")
        return kept_path(folder) if folder else Path.home()

    def check_alive(self, now: float) -> None:
        """Raises SessionTerminated if a person killed this session."""
        if self.termination is not None and self.terminated(now):
            raise self.termination.error

    def move_times(self, seconds: float) -> None:
        """The clock was set: what was noted by it is moved with it."""
        self.created_at += seconds
        self.last_activity += seconds
        if self.disconnected_at is not None:
            self.disconnected_at += seconds
        if self.termination is not None:
            by, at, until = self.termination
            self.termination = Termination(by, at + seconds, None if until is None else until + seconds)

    def note_conversation(self, conversation_id: str | None) -> None:
        """The client's own id of what is said in it now."""
        known = self.client_conversations
        if not conversation_id or (known and known[-1] == conversation_id):
            return
        known[:] = [*(one for one in known if one != conversation_id), conversation_id][-CONVERSATIONS_KEPT:]

    def touch(self, identity: ClientIdentity, now: float) -> None:
        """Takes over what a newer request says, and wakes an idle session."""
        self.last_activity = now
        self.seen_idle = False
        if self.client_name == "unknown" and (name := shortened(identity.client_name)):
            self.client_name = name
            self.client_version = shortened(identity.client_version)
        if identity.working_folder:
            self.working_folder = identity.working_folder
        if identity.context:
            self.context = identity.context
        if identity.modes and not self.modes_chosen and not self.shared:  # what came first may have named none
            self.modes, self.modes_chosen = identity.modes, True
        self.through_hub = self.through_hub or identity.through_hub
        if identity.client_pid:
            self.client_pid = identity.client_pid
        if identity.conversation_id not in self.client_conversations:  # a window's first id stays in its headers
            self.note_conversation(identity.conversation_id)

    def note(self, text: str, level: str = "info", *, at: float, call: str = "") -> None:
        self.log.append(LogLine(at, level, text, call))

    def count(self, tool: str, duration_ms: float, *, failed: bool, at: float) -> None:
        """A call ended, at that time."""
        statistics = self.tools.setdefault(tool, ToolStatistics())
        statistics.calls += 1
        statistics.durations_ms.append(duration_ms)
        self.minutes.add(at, duration_ms, failed=failed)
        self.calls += 1
        if failed:
            statistics.errors += 1
            self.errors += 1
