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

from serena_central.config.policies import (
    ADD,
    ENCODING,
    NAMES,
    SECRET,
    TIGHTEN,
    AgentPolicy,
    AlertPolicy,
    DatabaseUrl,
    Dollars,
    Folder,
    HostName,
    HubPolicy,
    ModelPrice,
    ModuleSettings,
    PoolPolicy,
    RetentionPolicy,
    SessionPolicy,
    Url,
    ValidationPolicy,
)


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
        str | None,
        Meta(
            description="Encoding of source files without a byte order mark. Unset: UTF-8. With UTF-16 or UTF-32, "
            "files in UTF-8 are still read as such.",
            extra=ENCODING,
        ),
    ] = None
    default_modes: Annotated[list[str], Meta(description="Default modes of a session.")] = msgspec.field(
        default_factory=lambda: ["interactive", "editing"]
    )
    read_only_memory_patterns: Annotated[
        list[str],
        Meta(description="Memories whose full name matches one of these regular expressions are read-only.", extra=ADD),
    ] = []
    ignored_memory_patterns: Annotated[
        list[str],
        Meta(description="Memories whose full name matches one of these regular expressions are ignored.", extra=ADD),
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
            description="Maximum length of an answer, in characters (bytes, where it has others than ASCII). "
            "Longer answers are shortened and say so.",
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
        DatabaseUrl | None,
        Meta(description="Database for sessions, events and calls. Unset: SQLite in the data folder.", extra=SECRET),
    ] = None
    front_name: Annotated[
        str,
        Meta(
            pattern=r"^([a-z0-9][a-z0-9-]{0,15})?$",
            description="Where several servers share a database: this one's name, which its sessions' ids begin with.",
        ),
    ] = ""
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
        Meta(
            description="Write transcripts of clients as well, not of tasks alone: calls and answers, without secrets."
        ),
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
