"""The settings: every key with its type, bounds, default and one sentence of what it does.

This is the only list of them: reading, checking, the template and `config show` are generated from these structs. Their
meaning is checked where they are used: names of tools, modes and languages are not checked here.

How layers combine is written beside a key that doesn't simply replace: `add` joins the lists of all layers, `tighten`
lets a project switch something on that the server left off, and never the other way round. `names` says that every text
in the value is a name, which agents are told: a line of visible characters (core/quoting.py).
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ADD = {"merge": "add"}
TIGHTEN = {"merge": "tighten"}
SECRET = {"secret": True}
NAMES = {"names": True}

Folder = Annotated[
    str, Meta(pattern=r"^(/|~|[A-Za-z]:[\\/])", extra={"allowed": "an absolute path, where ~ is the home folder"})
]
HostName = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$",
        extra={"allowed": "a host name or address, with or without :port"},
    ),
]
Url = Annotated[str, Meta(pattern="^https?://", extra={"allowed": "a URL that begins with http:// or https://"})]


class PoolPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """Every bound of the pool of language servers. Counts are inclusive: the fifth failure opens the breaker."""

    start_timeout_s: Annotated[
        float, Meta(ge=0.1, le=3600, description="Seconds after which the start of a language server has failed.")
    ] = 60
    idle_ttl_s: Annotated[
        float, Meta(ge=1, description="A language server that was not called for this many seconds is stopped.")
    ] = 300
    over_share_ttl_s: Annotated[
        float,
        Meta(
            ge=1,
            description="A language server that takes more than half of the memory budget is stopped when it was not "
            "called for this many seconds.",
        ),
    ] = 60
    session_quiet_s: Annotated[
        float,
        Meta(
            ge=1,
            description="A session without a call for this many seconds no longer keeps its language servers running.",
        ),
    ] = 300
    idle_check_s: Annotated[
        float,
        Meta(ge=0.05, le=600, description="Interval at which language servers are measured and checked, in seconds."),
    ] = 5
    max_calls: Annotated[
        int, Meta(ge=1, description="A language server is replaced by a new process after this many calls.")
    ] = 1000
    drain_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1, le=86400, description="How long running calls may finish on a replaced language server, in seconds."
        ),
    ] = 300
    memory_budget_mb: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Memory budget of all language servers and MCP servers together, in MB. Unset: half of the "
            "machine's memory."
        ),
    ] = None
    breaker_failures: Annotated[
        int, Meta(ge=1, description="Consecutive failures after which restarts of a language server are paused.")
    ] = 5
    breaker_open_s: Annotated[
        float,
        Meta(ge=0.05, le=86400, description="How long restarts of a failing language server are paused, in seconds."),
    ] = 60
    give_up_after: Annotated[
        int,
        Meta(
            ge=1,
            description="A language server that failed to start this many times in a row, or whose restarts were "
            "paused this many times in a row, is not started again for that project until it is restarted manually "
            "or its configuration changes.",
        ),
    ] = 3
    read_retries: Annotated[
        int, Meta(ge=0, le=10, description="How many times a read is retried after its language server crashed.")
    ] = 3
    restart_delay_s: Annotated[
        float,
        Meta(
            ge=0.01,
            le=600,
            description="Delay before a restart after the second failure in a row, in seconds. It doubles each time.",
        ),
    ] = 0.5
    restart_delay_cap_s: Annotated[
        float, Meta(ge=0.01, le=3600, description="Maximum delay before a restart, in seconds.")
    ] = 10
    hang_calls: Annotated[
        int,
        Meta(ge=1, description="Consecutive unanswered calls after which a language server is pinged."),
    ] = 3
    health_timeout_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=600,
            description="A language server that does not answer a ping within this many seconds counts as hung.",
        ),
    ] = 10
    silence_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=3600,
            description="A language server that sends nothing for so many seconds while a call waits for it is pinged, "
            "and replaced if it does not answer and does nothing.",
        ),
    ] = 10
    health_interval_s: Annotated[
        float, Meta(ge=0.05, le=86400, description="Interval at which idle language servers are pinged, in seconds.")
    ] = 60
    stop_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=600,
            description="How long a requested stop or restart waits for the process to exit, in seconds.",
        ),
    ] = 15
    shutdown_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=60,
            description="How long language servers may take to exit at shutdown before they are killed, in seconds.",
        ),
    ] = 4
    forget_after_s: Annotated[
        float,
        Meta(ge=1, description="How long a stopped language server is still shown, in seconds."),
    ] = 3600


class SessionPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """When sessions count as idle or gone, and how long they are kept."""

    idle_after_s: Annotated[
        float, Meta(ge=1, description="A session without a call for this long is shown as idle.")
    ] = 300
    retention_s: Annotated[
        float,
        Meta(
            ge=1, description="How long a disconnected session is kept, so that its client can reconnect, in seconds."
        ),
    ] = 3600
    shared_kill_lift_s: Annotated[
        float,
        Meta(
            ge=1,
            description="How long a terminated session that several clients may share stays terminated, in seconds.",
        ),
    ] = 600
    sweep_s: Annotated[
        float, Meta(ge=0.05, le=3600, description="Interval at which sessions are checked, in seconds.")
    ] = 60
    max_sessions: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Maximum number of sessions. Beyond it, sessions without calls and without a stream are "
            "removed first, then those whose clients disconnected.",
        ),
    ] = 1000
    modern_disconnect_s: Annotated[
        float,
        Meta(
            ge=1,
            description="Seconds without a call after which a session counts as disconnected, if its client can't "
            "report that itself.",
        ),
    ] = 1800


class RetentionPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """How long the database keeps what it recorded. Daily totals are kept for ever."""

    events_days: Annotated[float, Meta(gt=0, le=3650, description="Events older than this many days are deleted.")] = 14
    calls_days: Annotated[
        float,
        Meta(
            gt=0, le=3650, description="Sessions, calls, edits and server runs older than this many days are deleted."
        ),
    ] = 7
    sweep_s: Annotated[float, Meta(ge=1, le=86400, description="How often old rows are deleted, in seconds.")] = 3600


Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class ModelPrice(msgspec.Struct, kw_only=True, frozen=True):
    """What a model costs the user, in dollars for a million tokens. What is left out follows from `input`: cache writes
    cost 1.25 times as much, those kept for an hour 2 times, reads a tenth."""

    input: Dollars
    output: Dollars
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    cache_read: Dollars | None = None


class ToolOverride(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How a tool of an MCP server is offered. `name` takes the place of its own after the server's name; `defaults` are
    arguments that a call gets unless it names them."""

    name: Annotated[
        str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$", extra={"allowed": "1 to 64 of the characters A-Z a-z 0-9 _ -"})
    ] = ""
    description: Annotated[str, Meta(max_length=20_000)] = ""
    hidden: bool = False
    defaults: dict[str, Any] = {}


class HubPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """The hub: MCP servers of the configuration, started once for all sessions."""

    enabled: Annotated[
        Literal["auto", "all", "off"],
        Meta(
            description="Which configured MCP servers agents reach through this server: all of them, none, or "
            "auto: all but those that the calling client starts itself, because it reads the same file."
        ),
    ] = "auto"
    listing: Annotated[
        Literal["auto", "all", "search"],
        Meta(
            description="How tools of MCP servers are listed: all of them, by search_tools and call_upstream_tool "
            "alone, or auto: by search where all would exceed 20 KB."
        ),
    ] = "auto"
    sharing: Annotated[
        dict[str, Literal["shared", "project", "session"]],
        Meta(
            description="Per MCP server: one process for all sessions, one per project, or one per session. Unset: as "
            "its entry says, else one for all, but for servers known to keep state."
        ),
    ] = {}
    tools: Annotated[
        dict[
            Annotated[str, Meta(pattern="^mcp__.+__.+$", extra={"allowed": "mcp__SERVER__TOOL"})],
            ToolOverride,
        ],
        Meta(
            description="Per tool of an MCP server, named as in permission rules (mcp__SERVER__TOOL): another name, "
            "another description, hidden from agents, defaults for its arguments."
        ),
    ] = {}
    start_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=3600,
            description="Seconds after which the start of an MCP server has failed. MCP_TIMEOUT (in milliseconds) "
            "overrides it.",
        ),
    ] = 30
    call_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=86400,
            description="Timeout of a call to an MCP server, in seconds. Its entry's timeout and MCP_TOOL_TIMEOUT (in "
            "milliseconds) override it, tool_timeouts_s those.",
        ),
    ] = 300
    idle_stop_s: Annotated[
        float, Meta(ge=1, description="An MCP server that was not called for this many seconds is stopped.")
    ] = 900
    health_interval_s: Annotated[
        float, Meta(ge=0.05, le=86400, description="Interval at which idle MCP servers are pinged, in seconds.")
    ] = 60
    health_timeout_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=600,
            description="An MCP server that does not answer a ping within this many seconds is restarted.",
        ),
    ] = 10
    restarts: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="How many times in a row a crashed MCP server is started again before it counts as failed.",
        ),
    ] = 3
    restart_delay_s: Annotated[
        float, Meta(ge=0.01, le=600, description="Delay before the first restart, in seconds. It doubles each time.")
    ] = 0.5
    stable_s: Annotated[
        float, Meta(ge=1, description="After this many seconds without a crash earlier ones no longer count.")
    ] = 300
    learn_wait_s: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description="How long the first listing waits for MCP servers whose tools are not known yet, in seconds.",
        ),
    ] = 3
    memory_limit_mb: Annotated[
        int,
        Meta(
            ge=0,
            description="Address space of each process of an MCP server, in MB; 0: no limit. Node.js reserves much "
            "more than it uses.",
        ),
    ] = 0


class AgentPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """Tasks: runs of sub-agents."""

    runner: Annotated[
        Literal["auto", "claude-code", "codex", "gemini", "messages", "scripted"],
        Meta(description="What carries tasks out; auto: what is installed; scripted: agents.script_file, for tests."),
    ] = "auto"
    runner_paths: Annotated[
        dict[str, Folder],
        Meta(description="Program of a runner, by its name. Unset: the one on PATH."),
    ] = {}
    concurrent: Annotated[int, Meta(ge=1, le=100, description="Tasks that run at once; others are queued.")] = 10
    max_depth: Annotated[int, Meta(ge=1, le=10, description="How deep tasks may start tasks.")] = 3
    timeout_s: Annotated[float, Meta(gt=0, le=604_800, description="Seconds of a task unless it names a time.")] = 3600
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Tokens of a task unless it names a number."),
    ] = None
    max_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Dollars of a task unless it names a sum."),
    ] = None
    daily_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Dollars a day (UTC) above which no further task starts.")
    ] = None
    environment: Annotated[
        list[str],
        Meta(description="Further variables that runners get."),
    ] = []
    messages_base_url: Annotated[
        Url | None,
        Meta(
            description="Address of the messages API. Unset: ANTHROPIC_BASE_URL of the environment, else Anthropic's."
        ),
    ] = None
    model_names: Annotated[
        dict[str, str],
        Meta(description="Models of the messages API by the names that agents give them."),
    ] = msgspec.field(
        default_factory=lambda: {
            "sonnet": "claude-sonnet-5-5",
            "opus": "claude-opus-5-5",
            "haiku": "claude-haiku-5-5",
        }
    )
    compact_at_tokens: Annotated[
        int,
        Meta(
            ge=1000, le=190_000, description="Tokens of a conversation on the messages API at which it is summarised."
        ),
    ] = 160_000
    script_file: Annotated[Folder | None, Meta(description="For tests: what the scripted runner does, as JSON.")] = None


class AlertPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """What is sent to the outside, and where."""

    webhook: Annotated[
        Url | None,
        Meta(description="URL that gets each alert as JSON by POST. Unset: no webhook.", extra=SECRET),
    ] = None
    desktop: Annotated[bool, Meta(description="Show alerts as notifications on this machine's desktop.")] = False
    events: Annotated[
        list[str],
        Meta(description="Kinds of events to alert about: whole kinds (server.breaker) or their subjects (store)."),
    ] = msgspec.field(default_factory=lambda: ["server.breaker", "server.descriptors", "store", "project.failed"])
    severity: Annotated[Literal["info", "warning", "error"], Meta(description="Minimum severity of an alert.")] = (
        "warning"
    )


class ModuleSettings(msgspec.Struct, kw_only=True, frozen=True):
    """A module of a super-repo. `path` is relative to the super-repo's root."""

    path: str
    languages: list[str] = []
    concerns: list[str] = []


class ValidationPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """What counts as used although nothing refers to it."""

    keep_names: Annotated[
        list[str],
        Meta(description="Symbols to treat as used: patterns of names or name paths, such as on_* or Plugin/*."),
    ] = []
    keep_paths: Annotated[
        list[str], Meta(description="Files whose symbols to treat as used: path patterns, such as migrations/*.")
    ] = []
    exported: Annotated[
        Literal["keep", "report"],
        Meta(description="How to report exported symbols without references in the project."),
    ] = "keep"


class SharedSettings(msgspec.Struct, kw_only=True, frozen=True):
    """What the server sets for all projects, and a project may set for itself."""

    read_only: Annotated[
        bool, Meta(description="Refuse all tools that change files. A project can't override it.", extra=TIGHTEN)
    ] = False
    excluded_tools: Annotated[list[str], Meta(description="Tools to disable.", extra=ADD)] = []
    included_optional_tools: Annotated[list[str], Meta(description="Optional tools to enable.", extra=ADD)] = []
    ignored_paths: Annotated[
        list[str], Meta(description="Paths to ignore, as in .gitignore, in addition to the projects' own.", extra=ADD)
    ] = []
    ignore_all_files_in_gitignore: Annotated[bool, Meta(description="Ignore what git ignores.")] = True
    encoding: Annotated[
        str | None, Meta(description="Encoding of source files. Unset: UTF-8, or as a file's byte order mark says.")
    ] = None
    default_modes: Annotated[list[str], Meta(description="Default modes of a session.")] = msgspec.field(
        default_factory=lambda: ["interactive", "editing"]
    )
    read_only_memory_patterns: Annotated[
        list[str],
        Meta(description="Memories whose full name matches one of these patterns are read-only.", extra=ADD),
    ] = []
    ignored_memory_patterns: Annotated[
        list[str], Meta(description="Memories whose full name matches one of these patterns are ignored.", extra=ADD)
    ] = []
    tool_timeout_s: Annotated[float, Meta(ge=0.1, le=86400, description="Timeout of a tool call, in seconds.")] = 60
    tool_timeouts_s: Annotated[
        dict[str, Annotated[float, Meta(ge=0.1, le=86400)]],
        Meta(description="Timeouts of individual tools by name, in seconds. execute_shell_command has 240."),
    ] = {}
    max_answer_chars: Annotated[
        int,
        Meta(
            ge=100,
            le=5_000_000,
            description="Maximum length of an answer, in characters. Longer answers are shortened and say so.",
        ),
    ] = 30_000
    edit_conflicts: Annotated[
        Literal["refuse", "warn"],
        Meta(description="How to handle an edit of a symbol that changed since the session read it."),
    ] = "refuse"
    edit_diagnostics_s: Annotated[
        float,
        Meta(
            ge=0, le=30, description="How long an edit waits for the diagnostics it caused, in seconds; 0: not at all."
        ),
    ] = 2
    language_servers: Annotated[
        dict[str, Any], Meta(description="Per language or language server: which server to use, and its options.")
    ] = {}


class ServerSettings(SharedSettings, kw_only=True, frozen=True):
    """Everything that can be set for the one server of this user."""

    central_server_enabled: Annotated[bool, Meta(description="Whether agents on this machine share one server.")] = True
    central_server_host: Annotated[
        str, Meta(min_length=1, max_length=253, description="Address to listen on. Keep it at loopback.")
    ] = "127.0.0.1"
    central_server_port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = (
        24280
    )
    central_server_url: Annotated[
        Url | None, Meta(description="Public URL of the server, if it differs from host and port.")
    ] = None
    central_server_names: Annotated[
        list[HostName],
        Meta(description="Additional accepted values of the Host header: name or name:port."),
    ] = []
    database_url: Annotated[
        str | None,
        Meta(description="Database for sessions, events and calls. Unset: SQLite in the data folder.", extra=SECRET),
    ] = None
    allowed_roots: Annotated[
        list[Folder],
        Meta(
            description="Folders in which projects may be, and in which agents may open any folder. Unset: any folder "
            "that the user can read; required when listening beyond loopback."
        ),
    ] = []
    trusted_roots: Annotated[
        list[Folder],
        Meta(
            description="Folders, or patterns such as ~/src/mine/*, whose repositories are trusted: they "
            "may name programs, and language servers may execute what is in them."
        ),
    ] = []
    trust: Annotated[
        Literal["prompt", "never", "always"],
        Meta(
            description="Trust in repositories: prompt asks a person about each, never trusts none (approvals and "
            "trusted_roots are ignored), always trusts every one. Managed settings can fix it."
        ),
    ] = "prompt"
    memory_files: Annotated[
        list[Literal["AGENTS.md", "GEMINI.md"]],
        Meta(description="Files of other clients that count as memory beside CLAUDE.md."),
    ] = []
    projects: Annotated[list[Folder], Meta(description="Roots of projects to register at startup.")] = []
    default_context: Annotated[str, Meta(description="Fallback context for clients without one.")] = "agent"
    execute_shell: Annotated[
        bool,
        Meta(description="Enable execute_shell_command: agents may run any command as you, in project folders."),
    ] = False
    auto_install: Annotated[
        Literal["pinned", "all", "off"],
        Meta(
            description="Which missing language servers to install when first needed: "
            "those with pinned versions in pip and npm, all installable ones, or none."
        ),
    ] = "pinned"
    warm_on_session_start: Annotated[
        Literal["off", "default", "all"],
        Meta(
            description="What to warm up for a new session: nothing, its project or its super-repo's default module, "
            "or all modules."
        ),
    ] = "off"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Minimum level of log records.")
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="Format of the log file: text, or one JSON object per line."),
    ] = "text"
    tracing: Annotated[
        bool, Meta(description="Send OpenTelemetry spans of calls, to where the standard OTEL_* variables say.")
    ] = False
    transcripts: Annotated[
        bool,
        Meta(description="Write transcripts: each tool call of clients, with its answer and without secrets."),
    ] = False
    archive_transcripts: Annotated[
        bool,
        Meta(description="Compress clients' transcripts into the data folder before the clients delete them."),
    ] = False
    prices: Annotated[
        dict[str, ModelPrice],
        Meta(
            description="Prices of models, by name or by a beginning that ends in *, in dollars for a million tokens. "
            "They replace the published ones."
        ),
    ] = {}
    usage_budgets: Annotated[
        dict[str, Dollars],
        Meta(
            description="Dollars a day above which usage warns, and tasks are refused or ended: of projects, by root "
            "or name of its folder, and of all together under the key day."
        ),
    ] = {}
    task_tool: Annotated[
        bool, Meta(description="Enable the tool task: agents may start sub-agents, which use models and cost money.")
    ] = False
    pool: Annotated[PoolPolicy, Meta(description="Language servers.")] = PoolPolicy()
    alerts: Annotated[AlertPolicy, Meta(description="Alerts to the outside.")] = AlertPolicy()
    sessions: Annotated[SessionPolicy, Meta(description="Sessions.")] = SessionPolicy()
    retention: Annotated[RetentionPolicy, Meta(description="Retention of the database.")] = RetentionPolicy()
    hub: Annotated[HubPolicy, Meta(description="MCP servers of the configuration.")] = HubPolicy()
    agents: Annotated[AgentPolicy, Meta(description="Tasks: runs of sub-agents.")] = AgentPolicy()


class ProjectSettings(SharedSettings, kw_only=True, frozen=True):
    """Everything that can be set for one project."""

    project_name: Annotated[
        str | None, Meta(description="Name of the project. Unset: the name of its folder.", extra=NAMES)
    ] = None
    languages: Annotated[
        list[str], Meta(description="Languages to support. Unset: detected from the files.", extra=NAMES)
    ] = []
    side_language_percent: Annotated[
        float,
        Meta(
            ge=0,
            le=50,
            description="A language with a smaller share of the project's code files is a side language: its "
            "language server is not installed or started until a call names such a file; until then its symbols come "
            "from syntax, or are not available. `languages` and `language_servers` of the project exempt a language; "
            "0: no side languages.",
        ),
    ] = 1
    type: Annotated[
        Literal["project", "super-repo"],
        Meta(description="Whether this is a super-repo: it contains modules, each a project of its own."),
    ] = "project"
    modules: Annotated[
        dict[str, ModuleSettings],
        Meta(description="Modules of a super-repo by name: path, languages, concerns.", extra=NAMES),
    ] = {}
    python: Annotated[
        str | None,
        Meta(
            description="Python environment or interpreter for resolving third-party imports. It is run only "
            "by pyright, basedpyright and pyrefly, and only in trusted projects. "
            "Unset: .venv, venv, or the environment of poetry, conda or pyenv."
        ),
    ] = None
    routing_hints: Annotated[
        dict[str, list[str]],
        Meta(description="Keywords that route to modules of a super-repo: keyword, then module names.", extra=NAMES),
    ] = {}
    default_module: Annotated[
        str | None,
        Meta(description="Module of a super-repo to use when a call does not identify one.", extra=NAMES),
    ] = None
    infrastructure_prefixes: Annotated[
        list[str],
        Meta(
            description="Folders of a super-repo that belong to no module; symbol and edit tools refuse them.",
            extra=NAMES,
        ),
    ] = msgspec.field(default_factory=lambda: ["docs/", "scripts/", ".serena/", ".github/", ".githooks/"])
    initial_prompt: Annotated[str, Meta(description="Prompt returned to every session that activates the project.")] = (
        ""
    )
    validation: Annotated[ValidationPolicy, Meta(description="Unused symbols.")] = ValidationPolicy()


LIVE_SETTINGS = frozenset(
    {
        "read_only",
        "excluded_tools",
        "included_optional_tools",
        "ignored_paths",
        "ignore_all_files_in_gitignore",
        "encoding",
        "default_modes",
        "read_only_memory_patterns",
        "ignored_memory_patterns",
        "tool_timeout_s",
        "max_answer_chars",
        "edit_conflicts",
        "edit_diagnostics_s",
        "default_context",
        "log_level",
        "pool.idle_ttl_s",
        "pool.over_share_ttl_s",
        "pool.memory_budget_mb",
        "pool.read_retries",
        "pool.forget_after_s",
        "alerts.desktop",
        "alerts.events",
        "alerts.severity",
        "sessions.idle_after_s",
        "sessions.retention_s",
        "sessions.shared_kill_lift_s",
        "sessions.max_sessions",
        "sessions.modern_disconnect_s",
        "retention.events_days",
        "retention.calls_days",
        "retention.sweep_s",
    }
)
"""Settings of the server that take effect while it runs. What decides who may enter, and what is executed, is not among
them, nor are secrets."""
