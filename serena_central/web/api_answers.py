"""The shapes of /api's answers and request bodies, for its document. Times are Unix seconds.

Within one version of the API shapes only gain members.
"""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from serena_central.agents.tasks import OutputLine, TaskView
from serena_central.config.policies import PoolPolicy
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.projects.editing.edit_records import ChangedFile
from serena_central.projects.registry import ProjectSnapshot
from serena_central.projects.warming.project_warm_up import Warmed
from serena_central.sessions.session_snapshot import SessionSnapshot
from serena_central.store.rows import EventRow
from serena_central.web.upstreams import UpstreamTool, UpstreamView

Cursor = Annotated[str | None, Meta(description="The `cursor` of the next page; null: there is none")]


class Problem(TypedDict):
    """What went wrong."""

    kind: Annotated[str, Meta(description="The error's class in snake case, e.g. session_not_found")]
    message: Annotated[str, Meta(description="A sentence or two on what to do next")]


class Failure(TypedDict):
    """Every answer that is not a success."""

    error: Problem


class Health(TypedDict):
    """`proof` shows that the server has the token, where a nonce was sent."""

    status: str
    version: str
    uptime_s: float
    proof: NotRequired[Annotated[str, Meta(description="64 hexadecimal digits")]]


class TaskList(TypedDict):
    """The newest first."""

    tasks: list[TaskView]
    next_cursor: Cursor


class TaskOutputLines(TypedDict):
    """In their order."""

    lines: list[OutputLine]


class SessionList(TypedDict):
    """Newest activity first."""

    sessions: list[SessionSnapshot]
    total: int
    next_cursor: Cursor


class Percentiles(TypedDict):
    """Of durations, in milliseconds."""

    p50_ms: float
    p95_ms: float


class ToolUse(Percentiles):
    """One tool's calls; percentiles are of the newest."""

    tool: str
    calls: int
    errors: int


class LogEntry(TypedDict):
    """One line of a session's log."""

    at: float
    level: str
    text: str
    call: str


class SessionDetails(SessionSnapshot, frozen=True, kw_only=True):
    """A session, its newest log lines, oldest first, and its tools, the most used first; `note` says why calls of
    earlier runs of the server are missing."""

    log: list[LogEntry]
    tools: list[ToolUse]
    note: str


class ToolView(TypedDict):
    """A tool, with the JSON schema of its arguments. One that is not `listed` to agents may be called by its name,
    unless `refused` says why not."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    read_only: bool
    listed: bool
    refused: str


class ToolList(TypedDict):
    """In the catalogue's order, what is listed first."""

    tools: list[ToolView]


class CallAnswer(TypedDict):
    """The answer of a tool call: its text, then, if there are notes, a block with a line per note."""

    blocks: list[str]
    shortened: bool
    failed: bool
    """The tool of another MCP server says that it failed."""
    token_estimate: int


class ProjectList(TypedDict):
    """In the order of their roots."""

    projects: list[ProjectSnapshot]
    total: int
    next_cursor: Cursor


def _server_view() -> type[msgspec.Struct]:
    shown: list[Any] = [
        (one.name, one.type) if one.required else (one.name, one.type, one.default)
        for one in msgspec.structs.fields(ServerSnapshot)
        if one.name != "key"
    ]
    named = [("id", Annotated[str, Meta(description="Names it in URLs")]), ("project", str)]
    view = msgspec.defstruct("ServerView", [*named, *shown], kw_only=True)
    view.__doc__ = ServerSnapshot.__doc__
    return view


ServerView: Any = _server_view()
"""A language server's run: all of its snapshot but the key."""

ServerList: Any = msgspec.defstruct(
    "ServerList",
    [
        ("servers", list[ServerView]),
        ("total", int),
        ("next_cursor", Cursor),
        ("policy", PoolPolicy),
        ("memory_budget_bytes", int),
    ],
)


class Restarted(TypedDict):
    """The server's id."""

    restarted: str


class Stopped(TypedDict):
    """The server's id."""

    stopped: str


class EditView(TypedDict):
    """One edit; `can_undo` as far as that is known without looking at its files."""

    id: str
    at: float
    session: str
    client: str
    tool: str
    project_root: str
    files: list[dict[str, Any]]
    lines_added: int
    lines_removed: int
    symbol: str
    undoes: str | None
    can_undo: bool


class UsageLine(TypedDict):
    """Usage of one group: tokens, dollars, Unix seconds. `unpriced` requests are not in the cost; `calls` and `failed`
    are of tools, or edits and undone ones. Of an edit alone: what it changed, `undone_by` which edit, and the
    conversation and model that asked for it, "" where no transcript tells."""

    key: str
    requests: int
    input: int
    output: int
    cache_write: int
    cache_read: int
    cost: float
    unpriced: int
    calls: int
    failed: int
    first_at: float
    last_at: float
    at: NotRequired[float]
    tool: NotRequired[str]
    root: NotRequired[str]
    files: NotRequired[list[str]]
    symbol: NotRequired[str]
    undone_by: NotRequired[str]
    client: NotRequired[str]
    session: NotRequired[str]
    model: NotRequired[str]
    prompt: NotRequired[str]


class UsageAnswer(TypedDict):
    """`unknown_models` maps models without known prices to their requests, or edits. `total` is of all rows; `more`:
    there are older edits that are not among them."""

    by: str
    rows: list[UsageLine]
    total: UsageLine
    unknown_models: dict[str, int]
    more: bool
    lines_not_read: Annotated[int, Meta(description="Lines of transcripts that could not be read, in all")]
    not_read: Annotated[list[str], Meta(description="Files and folders that could not be read, each with the reason")]


class EditList(TypedDict):
    """Newest first."""

    edits: list[EditView]
    next_cursor: Cursor


class Undone(TypedDict):
    """The edit that undid another, and the files that it changed."""

    edit: str | None
    files: list[ChangedFile]


class UndoneEdits(TypedDict):
    """Edits that were undone, and why others could not be, by their ids. `more`: there are older ones; ask again."""

    undone: list[str]
    refused: dict[str, str]
    more: bool


class CallView(TypedDict):
    """A call that has ended: its counters and, as far as they were kept, its details, shortened and without secrets.
    `phases_ms`: how long it was in each phase; `servers`: the language servers that it asked."""

    id: str
    at: float
    session: str
    project: str | None
    tool: str
    duration_ms: float
    outcome: str
    error: str | None
    error_text: str | None
    answer_chars: int
    arguments: NotRequired[dict[str, Any]]
    answer: NotRequired[str]
    notes: NotRequired[list[str]]
    phases_ms: NotRequired[dict[str, float]]
    servers: NotRequired[list[str]]
    roots: NotRequired[list[str]]
    shortened: NotRequired[bool]


class CallDetails(CallView):
    """A call, with the ids of the edits that it made, and the files that these changed, relative to their roots."""

    edits: list[str]
    files: list[str]


class CallList(TypedDict):
    """Newest first."""

    calls: list[CallView]
    next_cursor: Cursor


class HaltedSession(TypedDict):
    """Why a session is halted, by which hook, in which root, and since when."""

    session: str
    reason: str
    hook: str
    root: str
    at: float


class HaltedList(TypedDict):
    """The oldest first."""

    halted: list[HaltedSession]


ListedHook = TypedDict(
    "ListedHook",
    {
        "event": str,
        "matcher": str,
        "if": str,
        "type": str,
        "runs": str,
        "timeout_s": float,
        "background": bool,
        "once": bool,
        "tier": str,
        "place": str,
        "active": bool,
        "held_back": str,
    },
)
"""One that is not `active` is held back: nobody trusts the repository with it. `held_back` is why."""


class HookList(TypedDict):
    """By event, in the order in which they run."""

    root: str
    hooks: list[ListedHook]


class HookRun(TypedDict):
    """A line of `.claude/logs/validation.log`. `file` and `text` are left out where there is none; `text` is what the
    hook said, its end."""

    time: str
    session: str
    event: str
    tool: str
    hook: str
    outcome: str
    exit_code: int | None
    duration_ms: float
    file: NotRequired[str]
    text: NotRequired[str]


class HookRunList(TypedDict):
    """The newest first."""

    root: str
    runs: list[HookRun]


class UpstreamList(TypedDict):
    """By name."""

    upstreams: list[UpstreamView]


class UpstreamDetails(TypedDict):
    """The processes of one name, and its tools."""

    name: str
    runs: list[UpstreamView]
    tools: list[UpstreamTool]


class UpstreamEnded(TypedDict):
    """How many processes and connections were ended."""

    upstream: str
    ended: int


class Resumed(TypedDict):
    """Whether the session was halted."""

    session: str
    resumed: bool


class EventList(TypedDict):
    """Newest first. `note` says why something may be missing."""

    events: list[EventRow]
    next_cursor: Cursor
    note: NotRequired[str]


class SchemaEntry(TypedDict):
    """A JSON schema, with the version of the format that it describes."""

    name: str
    version: int
    url: str


class SchemaList(TypedDict):
    """Of settings files."""

    schemas: list[SchemaEntry]


class StoreState(TypedDict):
    """Queued rows, lost rows by table, and why nothing can be written at the moment."""

    queued: int
    dropped: dict[str, int]
    problem: str | None


class DescriptorState(TypedDict):
    """File descriptors of the server's process; null where there is no limit. `exhausted_at` is when there was none
    left last."""

    limit: float | None
    exhausted_at: float | None


class Statistics(TypedDict):
    """Of this run of the server; sessions and language servers by state. `settings_not_in_force` are sentences."""

    uptime_s: float
    sessions: dict[str, int]
    servers: dict[str, int]
    server_memory_bytes: int
    projects_open: int
    calls: int
    errors: int
    running: int
    store: StoreState
    connections: dict[str, Any]
    descriptors: DescriptorState
    tools: list[ToolUse]
    settings_not_in_force: list[str]


class WarmUpBegun(TypedDict):
    """Roots and names of what is warmed in the background."""

    started: list[str]
    names: list[str]


class WarmedModules(TypedDict):
    """What became of each language of each module."""

    modules: list[Warmed]


class DashboardLink(TypedDict):
    """A path that signs a browser in, once."""

    path: str
    good_for_s: float


class Stopping(TypedDict):
    """The server finishes its calls, and ends."""

    stopping: bool
