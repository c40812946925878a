"""Filters and results of the store's queries, as plain data. Plain data; knows no SQL."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from serena_central.store.rows import CallDetailRow, EventRow, ToolCallRow

EVENTS_SEARCHED = 50_000
"""In one page of a search for words: some 50 ms; the next page goes on."""


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events. `owner` is the credential that their sessions belong to. `kind` is a whole kind
    (`session.created`) or its subject (`session`); `before` is an id. `words` stand in their kind, words, server
    or data, all of them, without regard to case. `since` and `until` are Unix time. With `after`, an id as well, the
    oldest come first."""

    kind: str | None = None
    session: str | None = None
    project: str | None = None
    severity: str | None = None
    words: str = ""
    owner: str | None = None
    since: float = 0.0
    until: float | None = None
    before: int | None = None
    after: int | None = None
    limit: int = 100


class EventPage(msgspec.Struct, frozen=True):
    """Events. `next_id` is the `before` of the next page, or its `after`; None: there is none. `searched_to`: words
    were looked for in the events up to then (Unix time) alone, and the next page goes on; None: in all."""

    events: list[EventRow]
    next_id: int | None
    searched_to: float | None = None


class EventBrief(msgspec.Struct, frozen=True):
    """What an event is sorted by."""

    id: int
    at: float
    kind: str
    server: str | None
    session: str | None
    project: str | None


EDIT_PATCHES_KEPT_S = 24 * 3600.0
"""Patches hold source code: they are deleted when this old, the rows of their edits much later."""


class EditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """When an edit was made, what tells a repetition of its call, and what that gets (JSON)."""

    at: float
    repeat: str | None
    answer: str | None


class EditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which edits. `owner` is the credential that their sessions belong to; `project` is a root; `file` is
    root-relative (in a project: whichever project it was edited through), `symbol` a name path or its end;
    `not_session` leaves one out; `call` is what made them. `since` is Unix time, `before` as well; `behind` is the time
    and id of the entry before the first. The newest come first, unless `oldest_first`."""

    owner: str | None = None
    session: str | None = None
    not_session: str | None = None
    project: str | None = None
    file: str | None = None
    symbol: str | None = None
    call: str | None = None
    since: float = 0.0
    before: float | None = None
    behind: tuple[float, str] | None = None
    oldest_first: bool = False
    limit: int = 100


class EditBrief(msgspec.Struct, frozen=True):
    """What an edit is sorted by."""

    id: str
    at: float
    tool: str
    session: str
    client: str
    project_root: str
    symbol: str
    files: list[dict[str, Any]]


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks or plans. `project` is a root; `behind` is the time and id of the entry before the first."""

    state: str | None = None
    project: str | None = None
    parent: str | None = None
    behind: tuple[float, str] | None = None
    limit: int = 100


AnyFilter = TypeVar("AnyFilter", EditFilter, TaskFilter)


def next_page(wanted: AnyFilter, shown: Sequence[tuple[float, str]]) -> AnyFilter | None:
    """What comes behind the entries that were read, of which `shown` has times and ids; None where that is nothing."""
    return msgspec.structs.replace(wanted, behind=shown[-1]) if len(shown) == wanted.limit else None


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls. `owner` is the credential that their sessions belong to; `project` is a name, `failed` chooses
    those that did not end well; `since` is Unix time, `before` as well; `behind` is the time and id of the entry
    before the first."""

    owner: str | None = None
    session: str | None = None
    project: str | None = None
    tool: str | None = None
    failed: bool = False
    since: float = 0.0
    before: float | None = None
    behind: tuple[float, str] | None = None
    limit: int = 100


class StoredCall(msgspec.Struct, frozen=True):
    """A call with its details; None: those of before they were kept, or lost under overload."""

    call: ToolCallRow
    detail: CallDetailRow | None


class BriefCall(msgspec.Struct, frozen=True):
    """A call that ended at `at` (Unix seconds)."""

    at: float
    duration_ms: float
    outcome: str


class ToolDurations(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one tool in one session, and how long the newest took (milliseconds, the oldest first)."""

    tool: str
    calls: int
    errors: int
    durations_ms: list[float]


class DayTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of all tools on one day (UTC, ISO 8601)."""

    day: str
    calls: int
    errors: int
    answer_chars: int


class CallBin(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that ended in one bin of a range, which began at `at` (Unix seconds); durations in milliseconds."""

    at: int
    calls: int
    errors: int
    p50_ms: float
    p95_ms: float


class ToolStatistics(msgspec.Struct, frozen=True):
    """Calls of one tool in a window of time, with their durations in milliseconds, `duration_ms` all together;
    percentiles only where they were asked for."""

    tool: str
    calls: int
    errors: int
    duration_ms: float
    answer_chars: int
    max_ms: float
    p50_ms: float = 0.0
    p95_ms: float = 0.0

    @property
    def average_ms(self) -> float:
        return self.duration_ms / self.calls
