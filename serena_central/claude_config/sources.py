"""MCP servers of all sources: which one counts under a name, and whether it may be used.

Sources, the strongest first: managed (`managed-mcp.json`, which excludes all others where it exists, and managed
settings), local (`settings.local.json`, and what the client keeps for this very project in `.claude.json`), project
(`.mcp.json`, from the root upwards to its repository's root, then `settings.json`), user (the user's `settings.json`,
the top level of `.claude.json`, the legacy `claude.json`). An entry is taken whole: no source changes another one's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.claude_config.checks import check_servers
from serena_central.claude_config.document import Document
from serena_central.claude_config.effective import Effective
from serena_central.claude_config.executable import server_folders
from serena_central.claude_config.locations import PROJECT_SERVERS
from serena_central.claude_config.problems import KeyPath, Place, Problem, Severity
from serena_central.claude_config.schema import servers_schema
from serena_central.claude_config.shape import LEFT_OUT, Fitting
from serena_central.claude_config.substitution import SERVER_PLACES, revealed, substitute
from serena_central.claude_config.tiers import Tier
from serena_central.config.document import DocumentError, read_whole
from serena_central.core.decoding import from_json
from serena_central.core.masking import masked, masked_words
from serena_central.core.nofollow import read_following

MAX_STATE_BYTES = 50_000_000
"""Of `.claude.json`, which holds what the client remembers of all projects."""

_KEY = "mcpServers"

_PATHS: tuple[KeyPath, ...] = tuple(("mcpServers", "*", *place) for place in SERVER_PLACES)


class Source(StrEnum):
    """The strongest first."""

    MANAGED = "managed"
    LOCAL = "local"
    PROJECT = "project"
    USER = "user"


class State(StrEnum):
    ENABLED = "enabled"
    PENDING = "pending approval"
    UNTRUSTED = "not trusted"
    DISABLED = "disabled"
    REFUSED = "refused by policy"
    SHADOWED = "shadowed"
    UNSUPPORTED = "not supported"


TRANSPORTS = ("stdio", "http", "sse")
"""Those that a server can be reached by."""


class Server(NamedTuple):
    """One entry of one source. `entry` is checked and resolved; `of_repository`: it comes with one."""

    name: str
    source: Source
    place: Place
    entry: Mapping[str, Any]
    of_repository: bool
    state: State
    why: str

    @property
    def kind(self) -> str:
        """`stdio`, `http`, `sse` or `ws`."""
        kind = self.entry.get("type") or self.entry.get("transport")
        if kind is None:
            return "stdio" if "command" in self.entry else "http"
        return "http" if kind == "streamable-http" else str(kind)

    @property
    def command(self) -> tuple[str, ...]:
        """What it is started by, with variables resolved; empty for one that is reached by its `url`."""
        if self.kind != "stdio":
            return ()
        return tuple(revealed(part) for part in (self.entry["command"], *self.entry.get("args", ())))

    @property
    def url(self) -> str:
        return revealed(self.entry.get("url", ""))

    @property
    def target(self) -> str:
        """What it starts or reaches, for people: variables stand as they are written, and secrets masked."""
        if self.kind == "stdio":
            return " ".join(masked_words(map(str, [self.entry["command"], *self.entry.get("args", ())])))
        return masked(str(self.entry["url"]))


class _Entry(NamedTuple):
    name: str
    source: Source
    place: Place
    entry: Mapping[str, Any]
    of_repository: bool
    needs_approval: bool = False
    """It is one of `.mcp.json`, which the activation keys are about."""


class Servers(NamedTuple):
    """All entries by name, the one that counts first; and what is wrong with their files."""

    found: list[Server]
    problems: list[Problem]
    """Those of settings files are with the settings."""
    of_settings: list[Problem]
    """Those that concern servers in settings files."""

    def errors(self, name: str | None = None) -> list[Problem]:
        """Why entries are not among `found`: all, or those of one name."""
        every = [one for one in (*self.of_settings, *self.problems) if one.severity is not Severity.NOTE]
        key = f"{_KEY}.{name}"
        return [one for one in every if name is None or one.key == key or one.key.startswith(f"{key}.")]

    def usable(self) -> dict[str, Server]:
        """The servers that may be used, by name."""
        return {one.name: one for one in self.found if one.state is State.ENABLED}


def servers_of(settings: Effective, *, trusted: bool) -> Servers:
    """All MCP servers of a root. `trusted`: a person trusts what its repository brings. Blocks for small files."""
    reading = _Reading(settings)
    managed = reading.exclusive()
    entries = managed if managed is not None else list(reading.entries())
    policy = _Policy(settings, reading.kept)
    found: list[Server] = []
    order = list(Source)
    by_name: dict[str, _Entry] = {}
    for entry in sorted(entries, key=lambda one: (one.name, order.index(one.source))):
        winner = by_name.setdefault(entry.name, entry)
        if winner is not entry:
            state, why = State.SHADOWED, f"{winner.place} says otherwise ({winner.source})"
        else:
            state, why = policy.state(entry, trusted=trusted)
        server = Server(*entry[:5], state, why)
        if state is State.ENABLED and server.kind not in TRANSPORTS:
            why = f"the transport {server.kind} is not supported; {', '.join(TRANSPORTS)} are"
            server = server._replace(state=State.UNSUPPORTED, why=why)
        found.append(server)
    of_settings = [one for one in settings.problems if one.key.startswith(f"{_KEY}.")]
    return Servers(found, reading.problems, of_settings)


class _Kept(msgspec.Struct, rename="camel"):
    """What `.claude.json` says of one project."""

    mcp_servers: msgspec.Raw = msgspec.Raw(b"{}")
    enabled_mcpjson_servers: Any = None
    disabled_mcpjson_servers: Any = None
    enable_all_project_mcp_servers: Any = None


class _StateFile(msgspec.Struct, rename="camel"):
    """The part of `.claude.json` that counts here: it may have megabytes."""

    mcp_servers: msgspec.Raw = msgspec.Raw(b"{}")
    projects: dict[str, msgspec.Raw] = {}


class _Reading:
    """Reads the files of one root, once."""

    def __init__(self, settings: Effective) -> None:
        self._settings = settings
        self._locations = settings.locations
        self.problems: list[Problem] = []
        self.kept = _Kept()
        """What the client keeps for this very project."""

    def exclusive(self) -> list[_Entry] | None:
        """The servers of `managed-mcp.json`, None where there is no such file."""
        file = self._locations.managed_folder / "managed-mcp.json"
        return self._file(file, Source.MANAGED) if file.exists() else None

    def entries(self) -> Iterator[_Entry]:
        """Within a source, the strongest first."""
        yield from self._of_settings(Tier.ENTERPRISE, Source.MANAGED)
        yield from self._of_settings(Tier.LOCAL, Source.LOCAL)
        of_user = list(self._state_file())
        yield from (one for one in of_user if one.source is Source.LOCAL)
        for folder in server_folders(self._settings.root, self._locations):
            yield from self._file(folder / PROJECT_SERVERS, Source.PROJECT, within=folder)
        yield from self._of_settings(Tier.PROJECT, Source.PROJECT)
        yield from self._of_settings(Tier.USER, Source.USER)
        yield from (one for one in of_user if one.source is Source.USER)
        yield from self._file(self._locations.user_folder / "claude.json", Source.USER)

    def _of_settings(self, tier: Tier, source: Source) -> Iterator[_Entry]:
        for one in reversed(self._settings.files):
            if one.file.tier is tier and not one.file.rules_only:
                for name, entry in one.value.get("mcpServers", {}).items():
                    place = one.document.place(("mcpServers", name))
                    yield _Entry(name, source, place, entry, of_repository=not tier.trusted)

    def _file(self, file: Path, source: Source, within: Path | None = None) -> list[_Entry]:
        text = self._text(file, within)
        if text is None:
            return []
        document = Document(str(file), text)
        return self._checked(document, source, of_repository=within is not None, needs_approval=within is not None)

    def _text(self, file: Path, within: Path | None = None) -> str | None:
        try:
            return read_whole(file, within)
        except DocumentError as error:
            place = Place(str(file), error.line or 0, 1 if error.line else 0)
            self.problems.append(
                Problem(Severity.ERROR, place, "", f"the file {error.problem}", "it has no effect until this is fixed")
            )
            return None

    def _checked(
        self, document: Document, source: Source, *, of_repository: bool = False, needs_approval: bool = False
    ) -> list[_Entry]:
        fitted = Fitting(document, servers_schema(), notes=source is not Source.USER).fit()
        servers: dict[str, Any] = {} if fitted is LEFT_OUT else fitted.get("mcpServers", {})
        checked = {"mcpServers": check_servers(document, servers, ("mcpServers",))}
        broken: set[str] = set()

        def undefined(path: KeyPath, name: str) -> None:
            broken.add(str(path[1]))
            document.report(
                Severity.ERROR,
                path,
                f"the variable {name} is not set, so that this server has no effect",
                f"set {name} where the server is started, or give a default: ${{{name}:-…}}",
            )

        resolved = substitute(checked, _PATHS, self._locations.environment, undefined)["mcpServers"]
        self.problems += document.problems
        return [
            _Entry(name, source, document.place(("mcpServers", name)), entry, of_repository, needs_approval)
            for name, entry in resolved.items()
            if name not in broken
        ]

    def _state_file(self) -> Iterator[_Entry]:
        """Servers that the client has added: for the user, and for this project."""
        file = self._locations.state_file
        try:
            if not file.is_file() or file.stat().st_size > MAX_STATE_BYTES:
                return
            data = read_following(file, MAX_STATE_BYTES)
            state = from_json(data, _StateFile)
            raw = state.projects.get(str(self._settings.root))
            self.kept = from_json(raw, _Kept) if raw is not None else _Kept()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f"the file can't be read: {error}"
            self.problems.append(Problem(Severity.ERROR, Place(str(file)), "", text, "the client writes it"))
            return
        for raw_servers, source in ((self.kept.mcp_servers, Source.LOCAL), (state.mcp_servers, Source.USER)):
            part = bytes(raw_servers)
            if part.strip() not in (b"", b"{}", b"null"):
                line = data.count(b"\n", 0, max(data.find(part), 0)) + 1
                text = '{"mcpServers":' + part.decode("utf-8", "replace") + "}"
                yield from self._checked(Document(str(file), text, first_line=line), source)


class _Policy:
    """Whether an entry may be used."""

    def __init__(self, settings: Effective, kept: _Kept) -> None:
        value, managed = settings.value, settings.of_tier(Tier.ENTERPRISE)
        self._all = value.get("enableAllProjectMcpServers") is True or kept.enable_all_project_mcp_servers is True
        self._enabled = {*value.get("enabledMcpjsonServers", ()), *_texts(kept.enabled_mcpjson_servers)}
        self._disabled = {*value.get("disabledMcpjsonServers", ()), *_texts(kept.disabled_mcpjson_servers)}
        self._denied = _references(value.get("deniedMcpServers", ()))
        only = managed if managed.get("allowManagedMcpServersOnly") is True else value
        self._allowed = _references(only["allowedMcpServers"]) if "allowedMcpServers" in only else None

    def state(self, entry: _Entry, *, trusted: bool) -> tuple[State, str]:
        if any(_is_named(one, entry) for one in self._denied):
            return State.REFUSED, "deniedMcpServers names it"
        if self._allowed is not None and not _is_allowed(self._allowed, entry):
            return State.REFUSED, "allowedMcpServers does not name it"
        if entry.entry.get("disabled") is True:
            return State.DISABLED, "its entry has `disabled: true`"
        if entry.needs_approval:
            if entry.name in self._disabled:
                return State.DISABLED, "disabledMcpjsonServers names it"
            if not self._all and entry.name not in self._enabled:
                return State.PENDING, f"run `serena-central mcp enable {entry.name}`, or set enableAllProjectMcpServers"
        if entry.of_repository and not trusted:
            return State.UNTRUSTED, "run `serena-central trust` to review what its repository brings, and to trust it"
        return State.ENABLED, ""


def _texts(value: Any) -> list[str]:
    return [one for one in cast("list[Any]", value) if isinstance(one, str)] if isinstance(value, list) else []


def _references(value: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [cast("Mapping[str, Any]", one) for one in value if isinstance(one, Mapping)]


def _is_named(reference: Mapping[str, Any], entry: _Entry) -> bool:
    """Whether an entry of a list names a server: by its name, its whole command line, or its URL (* is allowed)."""
    command, url = _command(entry), entry.entry.get("url")
    if "serverName" in reference and reference["serverName"] == entry.name:
        return True
    if "serverCommand" in reference and command and list(reference["serverCommand"]) == command:
        return True
    pattern = reference.get("serverUrl")
    return bool(pattern and url and _fits_url(pattern, revealed(url)))


def _is_allowed(allowed: Sequence[Mapping[str, Any]], entry: _Entry) -> bool:
    """A list that names commands decides about programs by these alone, and one with URLs about remote servers: a name
    can be given to anything."""
    key = "serverCommand" if "command" in entry.entry else "serverUrl"
    deciding = [one for one in allowed if key in one]
    return any(_is_named(one, entry) for one in deciding or allowed)


def _command(entry: _Entry) -> list[str]:
    if "command" not in entry.entry:
        return []
    return [revealed(part) for part in (entry.entry["command"], *entry.entry.get("args", ()))]


def _fits_url(pattern: str, url: str) -> bool:
    first, *rest = map(re.escape, pattern.split("*"))
    if not rest:
        return url == pattern
    return re.fullmatch(first + "".join(f"(?>.*?{one})" for one in rest[:-1] if one) + ".*" + rest[-1], url) is not None
