"""Notices language servers that are installed while projects are open, by any means.

No event reports an installation by another process, or a program that a person puts into a folder of PATH. So missing
servers are searched for repeatedly: at once when a folder changes in which they could appear, and periodically. What is
found is published like this server's own installations; so is, once, what each project misses.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from serena_central.core.errors import LanguageServerError
from serena_central.core.event_kinds import ServerInstalled, ServerMissing, ServerMoved
from serena_central.core.events import Event, EventBus, Severity
from serena_central.core.periodic import repeat
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.locate import locate, users_folders
from serena_central.pool.state import Cause
from serena_central.processes.environment import own_programs
from serena_central.projects.project import Project

LOOK_EVERY_S = 5.0

CHANGING_S = 12.0
"""How long folders count as changing after one of them did: a program may be made executable after it was put there."""

LOOK_ANYWAY = 12
"""Every so many rounds it is looked in any case: a link in one of the folders may lead to what is made elsewhere."""


_Key = tuple[str, tuple[str, ...], Path | None]


class _Program(NamedTuple):
    """A program that was found. While it differs from one look to the next it is still being written."""

    path: str
    size: int
    mtime_ns: int


class _Missing(NamedTuple):
    """A server as projects look for it: the same name may be another command by one project's settings."""

    spec: ServerSpec
    untrusted: Path | None

    @property
    def key(self) -> _Key:
        return self.spec.name, self.spec.launch.command, self.untrusted


class NewServers:
    """Belongs to the event loop's thread; reads the disk in a worker thread."""

    def __init__(self, projects: Callable[[], Sequence[Project]], places: Places, bus: EventBus) -> None:
        self._projects = projects
        self._places = places
        self._bus = bus
        self._watch = PathWatch()
        """Of its own: folders of PATH may lie where a look takes long, so that a worker thread does it."""
        self._round = 0
        self._stamp: tuple[int, ...] = ()
        self._changed_at = -CHANGING_S
        self._found: dict[_Key, _Program] = {}
        """What the last look found, and what is believed if the next one finds the same."""
        self._published: set[tuple[Path, str]] = set()
        """(root, server) that are missing and were published as such."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Looks until it is cancelled."""
        task_status.started()
        end_tap = self._bus.tap(self._heard, ServerMoved)
        try:
            await repeat("checking for newly installed language servers", self.look, every_s=LOOK_EVERY_S)
        finally:
            end_tap()
            self._watch.close()

    def _heard(self, event: Event) -> None:
        """A server that can't be started may be one that is missing: that is told at once."""
        if isinstance(event, ServerMoved) and event.cause == Cause.START_FAILED:
            asyncio.get_running_loop().call_soon(self._publish_missing)

    async def look(self) -> None:
        """One round. Where folders can be watched it looks at no file while nothing changes."""
        self._publish_missing()
        missing = {one.key: one for project in self._projects() for one in _missed_by(project)}
        self._round += 1
        if not missing:
            self._found = {}
            return
        if await self._is_due(missing.values()):
            found = await anyio.to_thread.run_sync(self._look_for, list(missing.values()))
            there = {key for key, program in found.items() if self._found.get(key) == program}
            self._found = {key: program for key, program in found.items() if key not in there}
            for name, program in {missing[key].spec.name: found[key] for key in there}.items():
                self._bus.publish(
                    ServerInstalled(message=f"{name} is now installed: {program.path}", server=name, via="found")
                )

    def _publish_missing(self) -> None:
        projects = self._projects()
        missing = {(project.root, spec.name): (project, spec) for project in projects for spec in needed(project)}
        for key, (project, spec) in missing.items():
            if key not in self._published:
                self._bus.publish(
                    ServerMissing(
                        message=f"{spec.name}, the language server for {', '.join(spec.languages)}, is not installed",
                        severity=Severity.WARNING,
                        server=spec.name,
                        project=project.name,
                        root=str(project.root),
                        how_to_get=spec.how_to_get,
                    )
                )
        self._published = set(missing)

    async def _is_due(self, missing: Iterable[_Missing]) -> bool:
        folders = tuple(_folders(self._places, [one.spec for one in missing]))
        stamp: tuple[int, ...] | None = self._watch.kept(folders)
        if stamp is None:
            stamp = await anyio.to_thread.run_sync(
                self._watch.get, folders, lambda: [f"{folder}/" for folder in folders], partial(_stamp_of, folders)
            )
        now = anyio.current_time()
        if stamp != self._stamp:
            self._stamp, self._changed_at = stamp, now
        return bool(self._found) or now - self._changed_at < CHANGING_S or self._round % LOOK_ANYWAY == 0

    def _look_for(self, missing: Iterable[_Missing]) -> dict[_Key, _Program]:
        found: dict[_Key, _Program] = {}
        for one in missing:
            try:
                launch = locate(one.spec, one.untrusted or self._places.home, self._places, untrusted=one.untrusted)
                status = Path(launch.command[0]).stat()
            except (LanguageServerError, OSError):
                continue
            found[one.key] = _Program(launch.command[0], status.st_size, status.st_mtime_ns)
        return found


def needed(project: Project) -> list[ServerSpec]:
    """Servers of code that a project misses until a person installs them, but those of side languages, which are
    started only when asked for."""
    languages, entries = project.languages, catalogue().languages
    return [
        spec
        for spec in languages.availability.missing_for_good()
        if languages.selection.share(spec.name) is None
        and not all(name in entries and entries[name].data for name in spec.languages)
    ]


def _missed_by(project: Project) -> list[_Missing]:
    languages = project.languages
    return [_Missing(spec, languages.untrusted) for spec in languages.availability.missing()]


def _folders(places: Places, missing: Iterable[ServerSpec]) -> list[str]:
    """Where the missing servers could appear."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), own_programs()]
    for spec in missing:
        folders += [str(places.servers / spec.name), *users_folders(spec)]
        folders += [os.path.dirname(part) for part in spec.launch.command[:1] if part.startswith("/")]  # noqa: PTH120
    return [str(places.servers), *dict.fromkeys(folder for folder in folders if folder)]


def _stamp_of(folders: Iterable[str]) -> tuple[int, ...]:
    stamp: list[int] = []
    for folder in folders:
        try:
            status = os.stat(folder)  # noqa: PTH116 - half of Path's time
        except OSError:
            stamp.append(0)
        else:
            stamp += status.st_ino, status.st_mtime_ns
    return tuple(stamp)
