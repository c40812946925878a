"""The page about the server itself: version, health, disk use, and the licences of all that it is made of."""

import platform
import re
import shutil
from functools import cache
from importlib import metadata
from pathlib import Path

import anyio.to_thread
import msgspec

from serena_central.core.places import Places
from serena_central.core.resources import dashboard_folder
from serena_central.web.pages.page import Page, Section, Visit

DISTRIBUTION = "serena-central"


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


class Place(msgspec.Struct, frozen=True):
    name: str
    path: str
    size_bytes: int


class Disk(msgspec.Struct, frozen=True):
    """`installed` are language servers, with their versions, below the server's home."""

    places: list[Place]
    free_bytes: int
    installed: list[str]


class Licence(msgspec.Struct, frozen=True):
    """`kind` is part (shipped in our own files) or library."""

    name: str
    version: str
    licence: str
    kind: str


class Licences(msgspec.Struct, frozen=True):
    licences: list[Licence]


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


async def disk(visit: Visit) -> Disk:
    return await anyio.to_thread.run_sync(_disk, visit.parts.places)


def _disk(places: Places) -> Disk:
    database = [Path(f"{places.database}{end}") for end in ("", "-wal", "-shm")]
    return Disk(
        places=[
            Place("Database", str(places.database), sum(map(_size, database))),
            Place("Symbol indexes", str(places.cache), sum(map(_size, places.cache.iterdir()))),
            Place("Logs", str(places.logs), sum(map(_size, places.logs.iterdir()))),
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


async def licences(_visit: Visit) -> Licences:
    return await anyio.to_thread.run_sync(all_licences)


@cache
def all_licences() -> Licences:
    """Ours, of what lies in our own files, and of every library that is installed for us."""
    vendored = dashboard_folder() / "static" / "vendor"
    parts = [
        Licence(file.stem, "", file.read_text(encoding="utf-8").strip().partition("\n")[0], "part")
        for file in sorted(vendored.glob("*.LICENSE"))
    ]
    found: dict[str, Licence] = {}
    _collect(DISTRIBUTION, found)
    return Licences([found.pop(DISTRIBUTION), *parts, *sorted(found.values(), key=lambda one: one.name.lower())])


def _collect(name: str, found: dict[str, Licence]) -> None:
    """A distribution and what it requires; what is for extras or other systems is not installed, and left out."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        facts = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return
    found[key] = Licence(facts.metadata["Name"], facts.version, _licence(facts.metadata), "library")
    for wanted in facts.requires or ():
        if "extra ==" not in wanted:
            _collect(re.split(r"[^\w.-]", wanted, maxsplit=1)[0], found)


def _licence(facts: metadata.PackageMetadata) -> str:
    classified = [line.rpartition(" :: ")[2] for line in facts.get_all("Classifier") or () if "License ::" in line]
    said = facts.get_all("License-Expression") or classified or facts.get_all("License") or ["not said"]
    return ", ".join(said).partition("\n")[0][:100]


PAGE = Page(
    path="/about",
    title="About",
    template="about.html",
    sections={
        "health": Section("about/_health.html", health, ("store",)),
        "disk": Section("about/_disk.html", disk, every_s=60),
        "licences": Section("about/_licences.html", licences, every_s=86_400),
    },
)
