"""The schema of the store, and what goes into it and comes out of it, as plain data: a class for each table.

Knows no SQL, and costs nothing to import; `tables` makes SQLAlchemy's tables of it. Times are Unix seconds (UTC).
There are no foreign keys on purpose: under overload a row may be dropped, and must not take others with it. A change
here needs a migration and a new `SCHEMA_VERSION`; tests compare the two.
"""

from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from serena_central.core.masking import is_secret_file, masked, masked_value

SCHEMA_VERSION = "0015"
"""Alembic's newest revision."""

WITHHELD = "(not kept: the file may hold secrets)"


class Row(msgspec.Struct, kw_only=True):
    """`table` is its table, `key` its primary key; rows without a key have an `id` and are only ever added. Columns are
    its fields: NULL where None is allowed, JSON for lists and dictionaries."""

    table: ClassVar[str]
    key: ClassVar[tuple[str, ...]] = ("id",)
    indexes: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """The columns of each."""
    in_order_of_key: ClassVar[bool] = False
    """SQLite keeps the rows themselves in the order of the key: where many small ones are read by its beginning."""
    rank: ClassVar[int] = 2
    """Where the writer's queue is full, rows of a lower rank give way: 0 for what counts as unknown when it is missing,
    1 for records of what happened, 2 for what the server goes by, edits above all."""

    def as_written(self) -> Self:
        """The row as the database gets it. Called in the writer's thread."""
        return self


class SessionRow(Row, kw_only=True):
    """One session. `credential` is a digest, never the token; `initialize` is the handshake's request as it came.
    `project_active`: it activated the project, and does not only work on it."""

    table = "session"
    indexes = (("last_activity",),)
    id: str
    credential: str
    era: str
    client_name: str
    client_version: str = ""
    created_at: float
    last_activity: float
    state: str
    shared: bool = False
    context: str | None = None
    working_folder: str | None = None
    explicit_id: str | None = None
    transport_id: str | None = None
    conversation_id: str | None = None
    project_root: str | None = None
    project_name: str | None = None
    modes: list[str] = []
    tool_call_count: int = 0
    initialize: bytes | None = None
    terminated_by: str | None = None
    terminated_at: float | None = None
    error_count: int = 0
    edit_count: int = 0
    project_active: bool = True


class SymbolViewRow(Row, kw_only=True):
    """What a session saw of a symbol, as the hash of its body; conflict detection compares with it. `project_root` is
    the file's folder: a file may belong to several projects."""

    table = "symbol_view"
    rank = 0
    key = ("session", "project_root", "relative_path", "name_path")
    indexes = (("seen_at",),)
    session: str
    project_root: str
    relative_path: str
    name_path: str
    body_hash: str
    seen_at: float


class ToolCallRow(Row, kw_only=True):
    """One call of a tool, to be put once. `outcome`: `ok`, `error`, `cancelled`, `deadline`; `error`: its class."""

    table = "tool_call"
    rank = 1
    key = ()
    indexes = (("at",), ("session", "at"), ("project", "at"))
    id: str
    at: float
    session: str
    project: str | None = None
    tool: str
    duration_ms: float
    outcome: str = "ok"
    error: str | None = None
    answer_chars: int = 0


class CallDetailRow(Row, kw_only=True):
    """What one call was given and came to, shortened by who puts it (once); secrets are masked as it is written.

    `answer` is how the answer begins, `error` the text of the error. `phases_ms`: how long it was in each phase
    (core/tracing.py), `other`: in none. `servers`: the language servers that it asked; `roots`: of its projects.
    """

    table = "call_detail"
    rank = 1
    key = ()
    indexes = (("at",),)
    id: str
    at: float
    arguments: dict[str, Any] = {}
    answer: str = ""
    error: str = ""
    notes: list[str] = []
    phases_ms: dict[str, float] = {}
    servers: list[str] = []
    roots: list[str] = []
    shortened: bool = False

    def as_written(self) -> Self:
        """Without what looks like a secret, or comes from a file that holds some."""
        arguments, answer = masked_value(self.arguments), masked(self.answer)
        paths = [value for value in self.arguments.values() if isinstance(value, str) and is_secret_file(value)]
        if paths:
            answer = WITHHELD if answer else ""
            arguments = {
                name: WITHHELD if isinstance(value, str) and value not in paths else value
                for name, value in arguments.items()
            }
        error, notes = masked(self.error), [masked(note) for note in self.notes]
        return replace(self, arguments=arguments, answer=answer, error=error, notes=notes)


class EditRow(Row, kw_only=True):
    """One edit. `files`: what became of each, as answers show it; `patches`: how to undo it (MessagePack, zlib),
    None once that is too old or was too large. `repeat` is the idempotency key of the call that made it, `answer` the
    answer to a repeated call (JSON). `undoes`: the edit that this one undid; `symbol`: the name path
    that its caller named."""

    table = "edit"
    indexes = (("at",), ("session", "at"), ("project_root", "at"), ("undoes",))
    id: str
    at: float
    call: str
    tool: str
    session: str
    client: str = ""
    project_root: str
    files: list[dict[str, Any]] = []
    patches: bytes | None = None
    repeat: str | None = None
    answer: str | None = None
    undoes: str | None = None
    symbol: str = ""


class SharedCallRow(Row, kw_only=True):
    """A call that may be sent again to another server with this database, written before it changes anything. `repeat`
    is its idempotency key, `front` the server that makes it, `edit` the operation; `files`: pairs of a path and the
    digest of its content once the operation is made, None for a file that it deletes. `node`: where the project host is
    that makes it; empty: the front itself does."""

    table = "shared_call"
    key = ("repeat",)
    indexes = (("at",),)
    repeat: str
    at: float
    front: str
    edit: str = ""
    node: str = ""
    files: list[list[str | None]] = []


class HostedRootRow(Row, kw_only=True):
    """Which project host of a cluster holds a root: it alone may write there. `epoch` counts the root's hosts."""

    table = "hosted_root"
    key = ("root",)
    root: str
    epoch: int
    node: str
    host: str


class HostEditRow(Row, kw_only=True):
    """An edit that a project host has begun and whose end it has not reported: the root's next host brings it to an
    end. `entry` is that of its journal."""

    table = "host_edit"
    indexes = (("root",),)
    id: str
    root: str
    entry: bytes


class EventRow(Row, kw_only=True):
    """One event. `id` counts through all runs of the server and is given by the database; `seq` is of one run."""

    table = "event"
    rank = 1
    key = ()
    # Each filter of the events page, with the order of the page.
    indexes = (("at",), ("session", "id"), ("project", "id"), ("kind", "id"))
    id: int | None = None
    seq: int
    at: float
    kind: str
    severity: str = "info"
    session: str | None = None
    project: str | None = None
    server: str | None = None
    message: str = ""
    data: dict[str, Any] = {}


class ProjectRow(Row, kw_only=True):
    """A project that is known."""

    table = "project"
    key = ("root",)
    root: str
    name: str
    languages: list[str] = []
    added_at: float
    last_used_at: float


class ServerRunRow(Row, kw_only=True):
    """One run of a language server. `reason` says why it ended; `exit_code` is negative for a signal."""

    table = "server_run"
    indexes = (("started_at",),)
    id: str
    server: str
    version: str = ""
    project_root: str
    started_at: float
    ended_at: float | None = None
    reason: str | None = None
    exit_code: int | None = None
    calls: int = 0
    peak_memory_mb: float = 0.0


class CallTotalRow(Row, kw_only=True):
    """Calls in the `span` seconds from `since` on (`store/spans.py`): of one tool, or of all where `tool` is ""; in one
    project, or in all where `project` is "". Made from the tool calls as they are written, so that a week of them is
    read at once, and kept as long as they are; those of all calls of a day for good.
    """

    table = "call_total"
    rank = 1
    key = ("span", "project", "tool", "since")
    in_order_of_key = True
    span: int
    project: str
    tool: str
    since: int
    calls: int = 0
    errors: int = 0
    duration_ms: float = 0.0
    longest_ms: float = 0.0
    answer_chars: int = 0


class CallStepRow(Row, kw_only=True):
    """Of the calls of a total, those that took about as long: `step` counts quarters of a doubling from 1 ms on.
    Percentiles are read from them."""

    table = "call_step"
    rank = 1
    key = ("span", "project", "tool", "since", "step")
    in_order_of_key = True
    span: int
    project: str
    tool: str
    since: int
    step: int
    calls: int = 0
    duration_ms: float = 0.0


class MemoryTotalRow(Row, kw_only=True):
    """The most memory that language servers took at once in the `span` seconds from `since` on: those of one root, or
    all where `root` is "". There are no rows of times when none ran.
    """

    table = "memory_total"
    rank = 1
    key = ("span", "root", "since")
    span: int
    root: str
    since: int
    memory_bytes: int


class TaskRow(Row, kw_only=True):
    """One task: a run of a sub-agent. `called_by` is the session that asked for it, `session` its own; `parent` the
    task that asked. `usage` counts tokens; `cost_source`: `runner`, `estimated`, or empty where the cost is unknown.
    `verified` is what the server itself saw. Secrets are masked as it is written."""

    table = "task"
    indexes = (("at",), ("parent",))
    id: str
    at: float
    started_at: float | None = None
    ended_at: float | None = None
    state: str
    instruction: str
    agent: str | None = None
    runner: str
    model: str | None = None
    project_root: str
    parent: str | None = None
    depth: int = 1
    session: str
    called_by: str = ""
    text: str = ""
    error: str = ""
    usage: dict[str, int] = {}
    cost_usd: float | None = None
    cost_source: str = ""
    resume_id: str | None = None
    exit_code: int | None = None
    verified: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        own = msgspec.structs.asdict(self)
        return {**own, **{name: masked(own[name]) for name in ("instruction", "text", "error")}}


class PlanRow(Row, kw_only=True):
    """One plan that was run. `waves` is the state of each with its tasks, as `agents.plans.run_state` has it; `folder`
    holds its results. Secrets are masked as it is written."""

    table = "plan"
    indexes = (("at",),)
    id: str
    at: float
    ended_at: float | None = None
    state: str
    name: str
    project_root: str
    file: str = ""
    folder: str = ""
    called_by: str = ""
    says: str = ""
    cost_usd: float = 0.0
    waves: list[dict[str, Any]] = []

    def values(self) -> dict[str, Any]:
        own = msgspec.structs.asdict(self)
        return {**own, "says": masked(self.says), "waves": masked_value(self.waves)}


class AccountRow(Row, kw_only=True):
    """A user of a team. `credential` is what the user's sessions belong to, `token_digest` the SHA-256 of the token;
    `roots` are folders or patterns of folders; empty: all that the settings allow."""

    table = "account"
    key = ("name",)
    name: str
    credential: str
    token_digest: str
    admin: bool = False
    roots: list[str] = []
    created_at: float
    rotated_at: float | None = None
    revoked_at: float | None = None


TABLES: tuple[type[Row], ...] = (
    SessionRow,
    SymbolViewRow,
    ToolCallRow,
    CallDetailRow,
    EditRow,
    SharedCallRow,
    HostedRootRow,
    HostEditRow,
    EventRow,
    ProjectRow,
    ServerRunRow,
    CallTotalRow,
    CallStepRow,
    MemoryTotalRow,
    TaskRow,
    PlanRow,
    AccountRow,
)
"""All of them."""


class Removal(msgspec.Struct, frozen=True):
    """The row with this key is to be deleted."""

    kind: type[Row]
    key: tuple[Any, ...]


class Notice(msgspec.Struct, frozen=True):
    """The other servers with this database are to be notified, when the rows before it are committed: of an id alone,
    printable ASCII; they read the rest themselves."""

    kind: str
    id: str = ""
    sender: str = ""
    """The server's own name, by which it ignores its own notices; empty: everybody reads it."""


ACCOUNTS = "accounts"
"""The kind of the notice that accounts of users were written."""

Change = Row | Removal | Notice
"""What the writer takes."""
