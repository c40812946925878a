"""Groups of settings: of language servers, sessions, retention, other MCP servers, agents, alerts, modules, validation.

Each setting has its type, bounds and meaning here; `settings` says where a group may stand.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ADD = {"merge": "add"}
TIGHTEN = {"merge": "tighten"}
SECRET = {"secret": True}
NAMES = {"names": True}
ENCODING = {"encoding": True, "allowed": "the name of an encoding of texts that Python knows, such as latin-1"}

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
DatabaseUrl = Annotated[
    str,
    Meta(
        pattern=r"^(sqlite:///|postgres(ql)?(\+pg8000)?://)",
        extra={"allowed": "a URL that begins with sqlite:/// or postgresql://"},
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
        Meta(
            ge=0.05,
            le=600,
            description="Interval at which language servers are measured and checked, in seconds. While all are unused "
            "and do nothing, they are measured once or a few times a minute.",
        ),
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
            description="A language server that does not answer a ping within this many seconds, and does nothing "
            "meanwhile, counts as hung.",
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
    unresponsive_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=86400,
            description="A language server that does not answer a ping for so many seconds counts as hung even if it "
            "works.",
        ),
    ] = 300
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
            "removed first, then those whose clients disconnected. A user of a team has half of it at most.",
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
    triggers: Annotated[
        Literal["auto", "off", "suggest", "run"],
        Meta(
            description="Agents whose descriptions ask to be used after a tool: off, suggest (a note names them), run "
            "(a task is started), or auto: run in tasks, suggest to other clients."
        ),
    ] = "auto"
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
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Dollars a day (UTC) that end tasks, and above which none starts."),
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
