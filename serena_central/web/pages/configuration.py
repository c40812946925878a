"""The page of one project's settings in Claude Code's format: what counts and where it stands, what is wrong, which MCP
servers and memory files there are, and whether trust is pending. Resolved variables are shown as they are written.

What reads these files is imported when the page is asked for.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from serena_central.claude_config.locations import Locations
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.projects import known
from serena_central.web.pages.references import ProjectLink, project_links, project_page

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective

PATH = "/configuration"

MOST_ROWS = 1000


class Setting(msgspec.Struct, frozen=True):
    """A leaf. `value` is JSON; `shadowed`: values of other tiers that do not count, with their places."""

    key: str
    value: str
    tier: str
    place: str
    shadowed: list[str]


class Note(msgspec.Struct, frozen=True):
    severity: str
    text: str


class ServerRow(msgspec.Struct, frozen=True):
    name: str
    source: str
    state: str
    why: str
    kind: str
    target: str
    place: str


class MemoryRow(msgspec.Struct, frozen=True):
    path: str
    origin: str
    size: int
    imported_by: str


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is empty where no project is chosen; `trust` is its state in words, `trust_url` the page to decide on."""

    projects: list[ProjectLink]
    name: str = ""
    trusted: bool = True
    trust: str = ""
    trust_url: str = ""
    files: list[str] = []
    settings_columns: list[Heading] = []
    servers_columns: list[Heading] = []
    memory_columns: list[Heading] = []
    settings: list[Setting] = []
    more_settings: int = 0
    notes: list[Note] = []
    servers: list[ServerRow] = []
    memory: list[MemoryRow] = []
    memory_size: int = 0


SETTING_COLUMNS = Columns[Setting](
    {
        "key": Column("Setting", lambda one: one.key),
        "value": Column("Value", lambda one: one.value),
        "from": Column("From", lambda one: (one.tier, one.place), "origin"),
    },
    parameter="settings",
)
SERVER_COLUMNS = Columns[ServerRow](
    {
        "name": Column("Name", lambda one: one.name.lower()),
        "state": Column("State", lambda one: one.state),
        "target": Column("Reached by", lambda one: (one.kind, one.target)),
        "from": Column("From", lambda one: (one.source, one.place), "origin"),
    },
    parameter="servers",
)
MEMORY_COLUMNS = Columns[MemoryRow](
    {
        "file": Column("File", lambda one: one.path),
        "origin": Column("Origin", lambda one: one.origin),
        "bytes": Column("Size", lambda one: one.size, "number"),
    },
    parameter="memory",
)


class _Read(msgspec.Struct, frozen=True):
    """What the files say."""

    files: list[str]
    settings: list[Setting]
    notes: list[Note]
    servers: list[ServerRow]
    memory: list[MemoryRow]


async def configuration(visit: Visit) -> Configuration:
    asked = visit.query.get("root", "")
    links = project_links(visit, PATH, asked)
    if not asked:
        return Configuration(projects=links)
    one = known(visit, asked)
    standing = visit.parts.trust.standing(Path(one.root))
    # What is in force in this server, which keeps the last good version of a broken file.
    found = visit.parts.claude.of(Path(one.root))
    names = visit.parts.settings.memory_files
    read = await anyio.to_thread.run_sync(
        _read, Path(one.root), found, visit.parts.claude.locations, standing.trusted, names
    )
    return Configuration(
        projects=links,
        name=one.name,
        trusted=standing.trusted or not standing.parts,
        trust=str(standing.state),
        trust_url=project_page(one.root),
        files=read.files,
        settings_columns=SETTING_COLUMNS.headings(visit, PATH),
        servers_columns=SERVER_COLUMNS.headings(visit, PATH),
        memory_columns=MEMORY_COLUMNS.headings(visit, PATH),
        settings=SETTING_COLUMNS.arranged(read.settings, visit)[:MOST_ROWS],
        more_settings=max(len(read.settings) - MOST_ROWS, 0),
        notes=read.notes,
        servers=SERVER_COLUMNS.arranged(read.servers, visit),
        memory=MEMORY_COLUMNS.arranged(read.memory, visit),
        memory_size=sum(part.size for part in read.memory),
    )


def _read(root: Path, found: "Effective | None", locations: Locations, trusted: bool, names: Sequence[str]) -> _Read:
    # Late, as everywhere: who has no such files and never looks at this page imports nothing of it.
    from serena_central.claude_config.effective import load
    from serena_central.claude_config.memory_files import memory_files
    from serena_central.claude_config.sources import servers_of

    found = found or load(root, locations)
    servers = servers_of(found, trusted=trusted)
    memory = memory_files(root, locations=locations, names=names, trusted=trusted, readable=_readable(found))
    return _Read(
        files=[str(one.file.path) for one in found.files],
        settings=_settings(found),
        notes=[Note(str(one.severity), str(one)) for one in (*found.problems, *servers.problems, *memory.problems)],
        servers=[
            ServerRow(one.name, str(one.source), str(one.state), one.why, one.kind, one.target, str(one.place))
            for one in servers.found
        ],
        memory=[
            MemoryRow(str(part.path), str(part.origin), part.size, str(part.imported_by or "")) for part in memory.parts
        ],
    )


def _readable(found: "Effective") -> Callable[[Path], str | None]:
    def readable(path: Path) -> str | None:
        inside = path.is_relative_to(found.root)
        decision = found.permissions.reading(path.relative_to(found.root).as_posix()) if inside else None
        return str(decision.rule) if decision else None

    return readable


def _settings(found: "Effective") -> list[Setting]:
    from serena_central.claude_config.problems import KeyPath, dotted

    def text(path: KeyPath, value: object) -> str:
        return msgspec.json.encode(found.shown(path, value)).decode()

    return [
        Setting(
            dotted(path),
            text(path, value),
            str(found.tier_of(given[0])),
            str(found.place_of(given[0])),
            [f"{text(path, one.value)} in {found.place_of(one)}" for one in given[1:] if one.value != given[0].value],
        )
        for path, value, given in found.leaves()
    ]


PAGE = Page(
    path=PATH,
    title="Configuration",
    template="configuration.html",
    sections={"configuration": Section("configuration/_configuration.html", configuration)},
    live=False,
)
