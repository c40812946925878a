"""The about page: version, health, disk use and licences."""

import platform
import re
import shutil
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.core.event_kinds import StoreEvent
from serena_central.core.places import Places
from serena_central.core.resources import dashboard_folder
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit

DISTRIBUTION = "serena-central"

_NAMED = re.compile(r"([\w.-]+)\s*(?:\[([^]]*)\])?")
_OF_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")
"""Parts of a requirement (the specification of dependency specifiers of Python packages)."""


class Health(msgspec.Struct, frozen=True):
    """`problem` says why nothing can be recorded now, "" when all is well; `lost` counts rows that never were."""

    version: str
    started_at: float
    python: str
    system: str
    home: str
    problem: str
    queued: int
    lost: int


class FolderShown(msgspec.Struct, frozen=True):
    name: str
    path: str
    size_bytes: int


class DiskUse(msgspec.Struct, frozen=True):
    """`installed` are language servers, with their versions, below the server's home."""

    places: list[FolderShown]
    free_bytes: int
    installed: list[str]


class Licence(msgspec.Struct, frozen=True):
    """`kind` is part (shipped in our own files) or library."""

    name: str
    version: str
    licence: str
    kind: str


class Licences(msgspec.Struct, frozen=True):
    columns: list[Heading]
    licences: list[Licence]


PATH = "/about"

COLUMNS = Columns[Licence](
    {
        "name": Column("Name", lambda one: one.name.lower()),
        "version": Column("Version", lambda one: one.version, "minor"),
        "licence": Column("Licence", lambda one: one.licence),
    },
)


async def health(visit: Visit) -> Health:
    parts, writer = visit.parts, visit.parts.store.writer
    return Health(
        version=parts.version,
        started_at=parts.started_at,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        home=str(parts.places.home),
        problem=writer.problem or "",
        queued=writer.queued,
        lost=sum(writer.dropped.values()),
    )


async def disk(visit: Visit) -> DiskUse:
    return await anyio.to_thread.run_sync(_disk, visit.parts.places)


def _disk(places: Places) -> DiskUse:
    database = [Path(f"{places.database}{end}") for end in ("", "-wal", "-shm")]
    return DiskUse(
        places=[
            FolderShown("Database", str(places.database), sum(map(_size, database))),
            FolderShown("Symbol indexes", str(places.cache), sum(map(_size, places.cache.iterdir()))),
            FolderShown("Logs", str(places.logs), sum(map(_size, places.logs.iterdir()))),
        ],
        free_bytes=shutil.disk_usage(places.home).free,
        # Their files are too many to be counted for a page.
        installed=sorted(f"{one.parent.name} {one.name}" for one in places.servers.glob("[!.]*/[!.]*")),
    )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


async def licences(visit: Visit) -> Licences:
    found = await anyio.to_thread.run_sync(all_licences)
    return Licences(COLUMNS.headings(visit, PATH), COLUMNS.arranged(found, visit))


@cache
def all_licences() -> tuple[Licence, ...]:
    """Ours, of what lies in our own files, and of every library that is installed for us."""
    vendored = dashboard_folder() / "static" / "vendor"
    parts = [_part(file) for file in sorted(vendored.glob("*.LICENSE"))]
    own, *libraries = _installed()
    return (own, *parts, *sorted(libraries, key=lambda one: one.name.lower()))


def _part(file: Path) -> Licence:
    """What lies beside its licence, whose file is called `name-version.LICENSE`."""
    name, _, version = file.stem.rpartition("-")
    return Licence(name, version, file.read_text(encoding="utf-8").strip().partition("\n")[0], "part")


def _installed() -> list[Licence]:
    """Our distribution, and all that it requires, its extras and theirs included, as far as that is installed."""
    found: dict[tuple[str, frozenset[str]], Licence] = {}
    wanted = [(DISTRIBUTION, frozenset(metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or ()))]
    for name, extras in wanted:
        key = re.sub(r"[-_.]+", "-", name).lower(), extras
        if key in found:
            continue
        try:
            facts = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system, or for an extra that nobody asked for
        found[key] = Licence(facts.metadata["Name"], facts.version, _licence(facts.metadata), "library")
        wanted += _required(facts.requires or (), extras)
    return list({one.name: one for one in found.values()}.values())


def _required(requirements: Iterable[str], extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """The names among these requirements, with the extras wanted of each; `extras` of their owner are wanted."""
    names: list[tuple[str, frozenset[str]]] = []
    for requirement in requirements:
        named, of_extra = _NAMED.match(requirement), _OF_EXTRA.search(requirement)
        if named is not None and (of_extra is None or of_extra[1] in extras):
            names.append((named[1], frozenset(filter(None, re.split(r"[\s,]+", named[2] or "")))))
    return names


def _licence(facts: metadata.PackageMetadata) -> str:
    classified = [line.rpartition(" :: ")[2] for line in facts.get_all("Classifier") or () if "License ::" in line]
    said = facts.get_all("License-Expression") or classified or facts.get_all("License") or ["unknown"]
    return ", ".join(said).partition("\n")[0][:100]


PAGE = Page(
    path=PATH,
    title="About",
    template="about.html",
    sections={
        "health": Section("about/_health.html", health, (StoreEvent,)),
        "disk": Section("about/_disk.html", disk, every_s=60),
        "licences": Section("about/_licences.html", licences, every_s=86_400),
    },
)
