"""The settings: every key with its type, bounds, default and one sentence of what it does.

This is the only list of them: reading, checking, the template and `config show` are generated from these structs. What
a value means is the business of the part that takes it: names of tools, modes and languages are not checked here.

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
        float, Meta(ge=0.1, le=3600, description="A language server that is not up after this many seconds has failed.")
    ] = 60
    idle_ttl_s: Annotated[
        float, Meta(ge=1, description="A language server that nobody called for this many seconds is stopped.")
    ] = 300
    session_quiet_s: Annotated[
        float,
        Meta(
            ge=1, description="A session that has not called for so many seconds no longer keeps a server from idling."
        ),
    ] = 300
    idle_check_s: Annotated[
        float, Meta(ge=0.05, le=600, description="How often language servers are measured and looked at, in seconds.")
    ] = 5
    max_calls: Annotated[
        int, Meta(ge=1, description="After this many calls a language server is replaced by a fresh one.")
    ] = 1000
    drain_timeout_s: Annotated[
        float,
        Meta(ge=0.1, le=86400, description="How long calls may end on a replaced language server, in seconds."),
    ] = 300
    memory_budget_mb: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="All language servers together, in MB. Unset: half of the machine's memory."),
    ] = None
    breaker_failures: Annotated[
        int, Meta(ge=1, description="After this many failures in a row a language server is not tried for a while.")
    ] = 5
    breaker_open_s: Annotated[
        float, Meta(ge=0.05, le=86400, description="How long a failing language server is not tried, in seconds.")
    ] = 60
    give_up_after: Annotated[
        int,
        Meta(
            ge=1,
            description="A language server whose start failed so often in a row, or that so often in a row was not "
            "tried for a while, is not started again for that project until it is restarted by hand or its "
            "configuration changes.",
        ),
    ] = 3
    read_retries: Annotated[
        int, Meta(ge=0, le=10, description="How often a read is repeated after its language server crashed.")
    ] = 3
    restart_delay_s: Annotated[
        float,
        Meta(
            ge=0.01,
            le=600,
            description="Pause before the start after a second failure in a row, in seconds; it doubles each time.",
        ),
    ] = 0.5
    restart_delay_cap_s: Annotated[
        float, Meta(ge=0.01, le=3600, description="The longest pause before a restart, in seconds.")
    ] = 10
    hang_calls: Annotated[
        int,
        Meta(ge=1, description="Calls in a row without an answer before a language server's health is doubted."),
    ] = 3
    health_timeout_s: Annotated[
        float,
        Meta(ge=0.05, le=600, description="A language server that answers no ping for so many seconds hangs."),
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
        float, Meta(ge=0.05, le=86400, description="How often an idle language server is pinged, in seconds.")
    ] = 60
    stop_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=600,
            description="How long a stop or restart that was asked for waits until the process is gone, in seconds.",
        ),
    ] = 15
    shutdown_timeout_s: Annotated[
        float,
        Meta(
            ge=0.1,
            le=60,
            description="How long language servers may take to end when the server stops, before they are killed.",
        ),
    ] = 4
    forget_after_s: Annotated[
        float,
        Meta(ge=1, description="How long a language server that runs no more is still shown, in seconds."),
    ] = 3600


class SessionPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """When sessions count as idle or gone, and how long they are kept."""

    idle_after_s: Annotated[
        float, Meta(ge=1, description="A session without a call for this long is shown as idle.")
    ] = 300
    retention_s: Annotated[
        float, Meta(ge=1, description="How long a disconnected session is kept, so that its client can come back.")
    ] = 3600
    shared_kill_lift_s: Annotated[
        float, Meta(ge=1, description="After this long the kill of a session that several windows may share is lifted.")
    ] = 600
    sweep_s: Annotated[
        float, Meta(ge=0.05, le=3600, description="How often sessions are looked through, in seconds.")
    ] = 60
    max_sessions: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="How many sessions there may be. Beyond, those go first that never called and have no stream, "
            "then those whose clients are gone.",
        ),
    ] = 1000
    modern_disconnect_s: Annotated[
        float,
        Meta(
            ge=1, description="A session whose client can't say goodbye counts as gone after this long without a call."
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


class ModuleSettings(msgspec.Struct, kw_only=True, frozen=True):
    """A module of a super-repo. `path` is relative to the super-repo's root."""

    path: str
    languages: list[str] = []
    concerns: list[str] = []


class ValidationPolicy(msgspec.Struct, kw_only=True, frozen=True):
    """What counts as used although nothing refers to it."""

    keep_names: Annotated[
        list[str], Meta(description="Symbols that are in use: patterns of names or name paths, like on_* or Plugin/*.")
    ] = []
    keep_paths: Annotated[
        list[str], Meta(description="Files whose symbols are in use: patterns of paths, like migrations/*.")
    ] = []
    exported: Annotated[
        Literal["keep", "report"],
        Meta(description="What becomes of exported symbols that nothing in the project refers to."),
    ] = "keep"


class SharedSettings(msgspec.Struct, kw_only=True, frozen=True):
    """What the server sets for all projects, and a project may set for itself."""

    read_only: Annotated[
        bool, Meta(description="Refuses every tool that changes files. A project can't undo it.", extra=TIGHTEN)
    ] = False
    excluded_tools: Annotated[list[str], Meta(description="Tools that are not offered.", extra=ADD)] = []
    included_optional_tools: Annotated[
        list[str], Meta(description="Optional tools that are offered as well.", extra=ADD)
    ] = []
    ignored_paths: Annotated[
        list[str], Meta(description="Paths that are ignored, as in .gitignore, on top of the projects' own.", extra=ADD)
    ] = []
    ignore_all_files_in_gitignore: Annotated[bool, Meta(description="Ignores what git ignores.")] = True
    encoding: Annotated[
        str | None, Meta(description="Encoding of source files. Unset: UTF-8, or what a file's first bytes say.")
    ] = None
    default_modes: Annotated[list[str], Meta(description="Modes of a session that has not switched to others.")] = (
        msgspec.field(default_factory=lambda: ["interactive", "editing"])
    )
    read_only_memory_patterns: Annotated[
        list[str],
        Meta(description="Memories whose whole name fits one of these patterns can't be changed.", extra=ADD),
    ] = []
    ignored_memory_patterns: Annotated[
        list[str], Meta(description="Memories whose whole name fits one of these patterns don't exist.", extra=ADD)
    ] = []
    tool_timeout_s: Annotated[
        float, Meta(ge=0.1, le=86400, description="A tool call that takes longer than this many seconds is ended.")
    ] = 60
    tool_timeouts_s: Annotated[
        dict[str, Annotated[float, Meta(ge=0.1, le=86400)]],
        Meta(description="The same for single tools, by their names. execute_shell_command has 240."),
    ] = {}
    max_answer_chars: Annotated[
        int, Meta(ge=100, le=5_000_000, description="Longer answers are shortened, and say so. In characters.")
    ] = 30_000
    edit_conflicts: Annotated[
        Literal["refuse", "warn"],
        Meta(description="What becomes of an edit of a symbol that changed since the session looked at it."),
    ] = "refuse"
    edit_diagnostics_s: Annotated[
        float,
        Meta(ge=0, le=30, description="How long an edit waits for the errors that it caused, in seconds; 0: not."),
    ] = 2
    language_servers: Annotated[
        dict[str, Any], Meta(description="Per language or language server: which one is used, and its options.")
    ] = {}


class ServerSettings(SharedSettings, kw_only=True, frozen=True):
    """Everything that can be set for the one server of this user."""

    central_server_enabled: Annotated[
        bool, Meta(description="Whether agents on this machine share the one server.")
    ] = True
    central_server_host: Annotated[
        str, Meta(min_length=1, max_length=253, description="Address to listen on. Keep it at loopback.")
    ] = "127.0.0.1"
    central_server_port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 takes a free one.")] = (
        24280
    )
    central_server_url: Annotated[
        Url | None, Meta(description="Where clients find the server, if not at its host and port.")
    ] = None
    central_server_names: Annotated[
        list[HostName],
        Meta(description="Further names that clients may call the server by (the Host header): name or name:port."),
    ] = []
    database_url: Annotated[
        str | None,
        Meta(description="Where sessions, events and calls are kept. Unset: SQLite in the data folder.", extra=SECRET),
    ] = None
    allowed_roots: Annotated[
        list[Folder],
        Meta(
            description="Folders that projects may lie in, and that agents may open anything in. Unset: any that the "
            "user may read; needed off loopback."
        ),
    ] = []
    trusted_roots: Annotated[
        list[Folder],
        Meta(
            description="Folders, and patterns of folders such as ~/src/mine/*, whose repositories are trusted: they "
            "may name programs, and language servers may execute what is in them."
        ),
    ] = []
    projects: Annotated[list[Folder], Meta(description="Roots of projects that are known from the start.")] = []
    default_context: Annotated[
        str, Meta(description="Context of clients that name none and for whose own name none is made.")
    ] = "agent"
    execute_shell: Annotated[
        bool,
        Meta(description="Offers execute_shell_command: agents may run any command as you, in projects' folders."),
    ] = False
    auto_install: Annotated[
        Literal["pinned", "all", "off"],
        Meta(
            description="Which missing language servers are installed when they are first needed: "
            "those that pip and npm get in a pinned version, all that can be, or none."
        ),
    ] = "pinned"
    warm_on_session_start: Annotated[
        Literal["off", "default", "all"],
        Meta(
            description="What is warmed up for a new session: nothing, its project or its super-repo's default module, "
            "or all modules."
        ),
    ] = "off"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="What is logged: this level and above.")
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="How the log file is written: lines for people, or a JSON object per line."),
    ] = "text"
    tracing: Annotated[
        bool, Meta(description="Sends OpenTelemetry spans of calls; the standard OTEL_* variables say where to.")
    ] = False
    pool: Annotated[PoolPolicy, Meta(description="Language servers.")] = PoolPolicy()
    sessions: Annotated[SessionPolicy, Meta(description="Sessions.")] = SessionPolicy()
    retention: Annotated[RetentionPolicy, Meta(description="What the database keeps.")] = RetentionPolicy()


class ProjectSettings(SharedSettings, kw_only=True, frozen=True):
    """Everything that can be set for one project."""

    project_name: Annotated[str | None, Meta(description="Name of the project. Unset: its folder's.", extra=NAMES)] = (
        None
    )
    languages: Annotated[
        list[str], Meta(description="Languages to serve. Unset: those that its files have.", extra=NAMES)
    ] = []
    side_language_percent: Annotated[
        float,
        Meta(
            ge=0,
            le=50,
            description="A language with a smaller share of the project's code files is a side language: its language "
            "server is not installed or started before somebody asks about such a file by name; until then its symbols "
            "are read by syntax, or not at all. `languages` and `language_servers` of the project except a language; "
            "0: there are none.",
        ),
    ] = 1
    type: Annotated[
        Literal["project", "super-repo"], Meta(description="A super-repo holds modules, each a project of its own.")
    ] = "project"
    modules: Annotated[
        dict[str, ModuleSettings],
        Meta(description="Modules of a super-repo by name: path, languages, concerns.", extra=NAMES),
    ] = {}
    python: Annotated[
        str | None,
        Meta(
            description="Python environment or interpreter in which third-party imports are resolved. It is run "
            "by pyright, basedpyright and pyrefly alone, and only in projects that are trusted. "
            "Unset: .venv, venv, or what poetry, conda or pyenv made for the project."
        ),
    ] = None
    routing_hints: Annotated[
        dict[str, list[str]],
        Meta(description="Words that mean modules of a super-repo: keyword, then their names.", extra=NAMES),
    ] = {}
    default_module: Annotated[
        str | None,
        Meta(description="Module of a super-repo that is meant where nothing says which.", extra=NAMES),
    ] = None
    infrastructure_prefixes: Annotated[
        list[str],
        Meta(
            description="Folders of a super-repo that belong to no module: symbol and edit tools refuse them.",
            extra=NAMES,
        ),
    ] = msgspec.field(default_factory=lambda: ["docs/", "scripts/", ".serena/", ".github/", ".githooks/"])
    initial_prompt: Annotated[str, Meta(description="Told to every session that activates the project.")] = ""
    validation: Annotated[ValidationPolicy, Meta(description="Unused symbols.")] = ValidationPolicy()
