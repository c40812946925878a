"""ProjectRegistry: the known projects, the open ones, and the folders that may become one.

Opening is single flight and owned by the registry, not by the call that asked first. It keeps count of the sessions
that are interested in a root and hands that on to the pool; it knows no session by name.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.config.load import settings_stamp
from serena_central.core.errors import ProjectRefused, SerenaCentralError, UnknownProject, listed
from serena_central.core.event_kinds import (
    ProjectClosed,
    ProjectFailed,
    ProjectOpened,
    ProjectRemoved,
    ServerInstalled,
    ServerMoved,
)
from serena_central.core.events import Event, EventBus, Severity
from serena_central.core.groups import only_cause
from serena_central.core.locks import KeyedLocks
from serena_central.core.paths import expanded, kept_path
from serena_central.core.periodic import contained, follow, repeat
from serena_central.core.quoting import as_name, quoted
from serena_central.core.running_time import Steps, running_time
from serena_central.files.repository import is_ignored_below
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.installers.underway import Underway
from serena_central.pool.state import Cause
from serena_central.projects.project import Project, Told
from serena_central.projects.root_paths import real_path
from serena_central.projects.root_policy import Opener, RootPolicy, has_manifest, has_marker

logger = logging.getLogger(__name__)

CLOSE_AFTER_S = 1800.0
"""A project without attached sessions or calls for this long is closed; its index is in the cache."""

SWEEP_EVERY_S = 60.0


class KnownProject(msgspec.Struct, frozen=True):
    name: str
    root: str


class ProjectSnapshot(msgspec.Struct, frozen=True):
    """A project as /api and the command line show it. Times are Unix seconds."""

    name: str
    root: str
    open: bool
    sessions: int = 0
    files: int = 0
    indexed: int = 0
    pending: int = 0
    """Files that wait to be indexed."""
    files_per_s: float = 0.0
    """Indexed in a second, lately."""
    seconds_left: float | None = None
    """Until all are indexed, by the rate of the last seconds; None where nothing tells."""
    opened_at: float | None = None
    last_used: float | None = None
    note: str | None = None
    installing: list[Underway] = []
    """Language servers that it misses and that are being installed."""
    given_up: dict[str, str] = {}
    """Language servers that failed too often and are not started for it any more → why, a clause."""
    side_languages: dict[str, str] = {}
    """Languages whose servers are left alone → what becomes of their files."""


class Enclosing(NamedTuple):
    """The root that a project is a folder of. `may_open`: whether who asks may open it."""

    root: Path
    may_open: bool = True


class Interest(Protocol):
    """Passes the sessions' interest on to the pool."""

    def attach(self, root: Path) -> None: ...
    def detach(self, root: Path) -> None: ...


class _Opening:
    """A project on its way to being open. `error` is set before `done` when it failed."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.project: Project | None = None
        self.error: SerenaCentralError | None = None
        self.scope = anyio.CancelScope()


class ProjectRegistry:
    """All projects of this server. Belongs to the event loop's thread."""

    def __init__(
        self,
        *,
        bus: EventBus,
        build: Callable[[Path], Project],
        interest: Interest,
        stamp: Callable[[Path], object] = settings_stamp,
        allowed_roots: Iterable[Path] = (),
        own_folders: Iterable[Path] = (),
        known: Iterable[KnownProject] = (),
        home: Path | None = None,
    ) -> None:
        """`build` makes a project of a root (it may raise ConfigError); it does no long work. `own_folders` are the
        server's own, and no projects.

        A project whose `stamp` differs from the one that it was built by is reopened.
        """
        self._bus = bus
        self._build = build
        self._interest = interest
        self._stamp = stamp
        self._policy = RootPolicy(
            home=(home or Path.home()).resolve(),
            own=[expanded(folder).resolve() for folder in own_folders],
            allowed=[expanded(root).resolve() for root in allowed_roots],
        )
        self._known: dict[Path, str] = {real_path(Path(project.root)): as_name(project.name) for project in known}
        self._openings: dict[Path, _Opening] = {}
        self._holding = KeyedLocks()
        """Roots of projects that run: one is not opened before the last one on its root has ended."""
        self._told: dict[Path, Told] = {}
        """Root of a closed project, whose language servers go on running → what they know."""
        self._attached: Counter[Path] = Counter()
        self.on_ended: Callable[[], None] = _nobody
        """Called when a closed project has ended."""
        self._tasks: TaskGroup | None = None
        self._steps = Steps(time.time, running_time)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the open projects until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._hear)
            task_status.started()
            await repeat("sweeping projects", self._sweep, every_s=SWEEP_EVERY_S)

    async def _hear(self) -> None:
        with self._bus.subscribe(ServerInstalled, ServerMoved) as news:
            await follow("handling installed language servers", news, self._take)

    def _take(self, event: Event) -> None:
        match event:
            case ServerInstalled(server=str(server)):
                for project in self.open_projects():
                    project.server_installed(server)
            case ServerMoved(cause=Cause.INITIALIZED, root=root):
                for project in self.open_projects():
                    project.server_started(Path(root))
            case _:
                pass

    def _sweep(self) -> None:
        step = self._steps.taken()
        for project in self.open_projects() if step else ():
            project.last_used += step  # the clock was set: nobody has waited for so long
        self.sweep(time.time())

    def sweep(self, now: float) -> None:
        """Closes unused projects, and forgets what was kept for servers that have ended."""
        self._told = {root: told for root, told in self._told.items() if told.is_needed()}
        for project in self.open_projects():
            if not self._attached[project.root] and now - project.last_used >= CLOSE_AFTER_S:
                self.close(project.root, "it was idle")

    # --- finding -------------------------------------------------------------------------------------------------

    def find(self, asked: str, opener: Opener) -> Path:
        """The root that a caller means by a name or a path. What is known was opened on somebody's word before.

        Raises:
            UnknownProject: no known name, or no folder is there.
            ProjectRefused: a path that can't become a project, at least not on the word of this `opener`; or a name
                that several have.
        """
        if asked.startswith(("/", "~")):
            # A folder that is gone can still be taken off the list.
            root = real_path(Path(asked))
            if root not in self._known:
                self._policy.check_opener(self.check(root), opener)
            return root
        roots = [root for root, name in self._known.items() if name == asked]
        if not roots:
            raise UnknownProject(asked, self.known_names())
        if len(roots) > 1:
            paths = listed(map(str, roots))
            raise ProjectRefused(
                f"{len(roots)} projects are named {quoted(asked)}. Pass project= with one path: {paths}."
            )
        return roots[0]

    def check(self, path: Path) -> Path:
        """The real path of a folder that may become a project.

        Raises:
            UnknownProject: no folder is there.
            ProjectRefused: the root policy (root_policy.py) refuses it for everybody.
        """
        root = real_path(path)
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered
            raise UnknownProject(str(path), self.known_names())
        self._policy.check(root)
        return root

    def root_of(self, path: Path) -> Path | None:
        """The project that contains a path: the nearest of known roots and folders with a project's marker.

        Raises:
            ProjectRefused: that folder must not become a project, or `path` can't be a path.
        """
        return self._root_around(real_path(path))

    def _root_around(self, place: Path) -> Path | None:
        for folder in (place, *place.parents):
            if self._policy.home.is_relative_to(folder):
                return None
            if folder in self._known or has_marker(folder):
                return self.check(folder)
        return None

    def working_root(self, folder: Path) -> Path | None:
        """The project of somebody who works in a folder: the one that contains it. What is ignored there is a project
        of its own if it has a manifest, as a build folder has not.

        Raises:
            ProjectRefused: that folder must not become a project, or `folder` can't be a path.
        """
        place = real_path(folder)
        root = self._root_around(place)
        if root is None or root == place or not self._is_ignored(root, place):
            return root
        inside = takewhile(root.__ne__, (place, *place.parents))
        own = next(filter(has_manifest, inside), None)
        return root if own is None or not self._is_ignored(root, own) else self.check(own)

    def _is_ignored(self, root: Path, place: Path) -> bool:
        project = self.opened(str(root))
        if project is None:
            return is_ignored_below(root, place)
        return project.tree.is_ignored(f"{place.relative_to(root).as_posix()}/")

    def known_root_of(self, path: Path) -> Path | None:
        """The nearest known root that a real path is, or lies in; it may be closed."""
        return next((folder for folder in (path, *path.parents) if folder in self._known), None)

    def enclosing(self, project: Project) -> Enclosing | None:
        """The outermost root that the project's own is a folder of: the top of its repository, or a known root.

        It may be closed. None for a repository of its own, and for what is ignored there.
        """
        tree, root = project.tree, project.root
        found = [folder for folder in root.parents if folder in self._known and not tree.is_apart(folder)]
        if tree.repository not in (None, root):
            found.append(tree.repository)
        for folder in sorted(found, key=lambda one: len(one.parts)):
            if not self._is_refused(folder) and not self._is_left_out(folder, root):
                return Enclosing(folder)
        return None

    def _is_refused(self, folder: Path) -> bool:
        try:
            self.check(folder)
        except SerenaCentralError:
            return True
        return False

    def _is_left_out(self, folder: Path, root: Path) -> bool:
        """Whether an open project above a root ignores it."""
        around = self.opened(str(folder))
        return around is not None and around.tree.is_ignored(f"{root.relative_to(folder).as_posix()}/")

    def known_names(self) -> list[str]:
        """Names, or roots where several projects have one name."""
        count = Counter(self._known.values())
        return [name if count[name] == 1 else str(root) for root, name in self._known.items()]

    def open_projects(self) -> list[Project]:
        return [opening.project for opening in self._openings.values() if opening.project is not None]

    def opened(self, root: str) -> Project | None:
        """The project of this root, if it is open."""
        opening = self._openings.get(kept_path(root))
        return opening.project if opening else None

    # --- opening and closing -------------------------------------------------------------------------------------

    async def open(self, root: Path) -> Project:
        """The project of a checked root, opened if need be.

        Raises:
            ProjectRefused: its folder is gone.
            SerenaCentralError: its settings can't be used, or its files can't be read.
        """
        root = kept_path(str(root))  # the object that `opened` asks by is found sooner than one that equals it
        opening = self._openings.get(root)
        before = opening.project if opening else None
        if before is not None:
            _check_there(root)
        if before is not None and before.settings_stamp != self._stamp(root):
            self.close(root, "its configuration changed")
            opening = None
        if opening is None:
            assert self._tasks is not None, "the registry runs before anything is opened"
            # No await between get and set: single flight.
            opening = self._openings[root] = _Opening()
            # In nobody's context: it outlives the progress and the trace of the call that came first.
            Context().run(self._tasks.start_soon, self._hold, root, opening)
        if not opening.done.is_set():  # a wait gives others a turn, also when it is over
            await opening.done.wait()
        if opening.project is None:
            assert opening.error is not None
            raise opening.error
        opening.project.last_used = time.time()
        if before is not None and before is not opening.project and self._tasks is not None:
            retire = partial(before.languages.retire, opening.project.languages)
            self._tasks.start_soon(contained, "ending language servers with earlier settings", retire)
        return opening.project

    async def _hold(self, root: Path, opening: _Opening) -> None:
        """Runs one project from opening to closing."""
        try:
            with opening.scope:
                self.check(root)
                await anyio.to_thread.run_sync(catalogue)  # 30 ms, once
                async with self._holding.holding([str(root)]):
                    await self._run(root, opening)
        except Exception as error:
            cause = only_cause(error)
            if not isinstance(cause, SerenaCentralError):
                logger.exception("project %s failed", root, extra={"project": root.name})
                cause = ProjectRefused(
                    f"The project {quoted(root)} failed and was closed ({type(cause).__name__}; see the server's log). "
                    "The next call opens it again."
                )
            opening.error = cause
            self._bus.publish(
                ProjectFailed(message=str(cause), severity=Severity.ERROR, project=root.name, root=str(root))
            )
        finally:
            opening.project = None
            opening.error = opening.error or ProjectRefused(
                f"The project {quoted(root)} was closed during the call. Call again."
            )
            if self._openings.get(root) is opening:
                del self._openings[root]
            opening.done.set()
            self.on_ended()

    async def _run(self, root: Path, opening: _Opening) -> None:
        project = self._build(root)
        told = self._told.pop(root, None)
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(project.run, told)
                if self._openings.get(root) is opening:  # else it was closed in the turn in which it was ready
                    opening.project = project
                    self._known[root] = project.name
                    self._bus.publish(
                        ProjectOpened(project=project.name, root=str(root), files=len(project.tree.files))
                    )
                    opening.done.set()
        finally:
            if (told := project.told()) is not None:
                self._told[root] = told

    def close(self, root: Path, reason: str) -> None:
        """Closes a project; its language servers go when their idle time has passed. It stays known."""
        opening = self._openings.pop(root, None)
        if opening is not None:
            opening.scope.cancel()
            name = self._known.get(root, root.name)
            self._bus.publish(ProjectClosed(message=reason, project=name, root=str(root)))

    def remember(self, project: KnownProject) -> None:
        """Puts a project on the list without opening it, or gives it another name there."""
        self._known[Path(project.root)] = as_name(project.name)

    def forget(self, root: Path) -> None:
        """Closes a project and takes it off the list."""
        self.close(root, "it was removed")
        name = self._known.pop(root, root.name)
        self._bus.publish(ProjectRemoved(project=name, root=str(root)))

    # --- interest ------------------------------------------------------------------------------------------------

    def attach(self, root: str) -> None:
        """A session is interested in this root."""
        self._attached[Path(root)] += 1
        self._interest.attach(Path(root))

    def detach(self, root: str) -> None:
        """A session is no longer interested."""
        self._attached -= Counter([Path(root)])  # which keeps no root that nobody is interested in
        self._interest.detach(Path(root))

    def snapshots(self) -> list[ProjectSnapshot]:
        opened = {project.root: project for project in self.open_projects()}
        return [self._snapshot(root, name, opened.get(root)) for root, name in self._known.items()]

    def _snapshot(self, root: Path, name: str, project: Project | None) -> ProjectSnapshot:
        if project is None:
            return ProjectSnapshot(name, str(root), open=False, sessions=self._attached[root])
        progress = project.indexer.progress
        return ProjectSnapshot(
            name,
            str(root),
            open=True,
            sessions=self._attached[root],
            files=len(project.tree.files),
            indexed=progress.indexed,
            pending=progress.waiting,
            files_per_s=round(progress.per_s, 1),
            seconds_left=progress.seconds_left,
            opened_at=project.opened_at,
            last_used=project.last_used,
            note=" ".join(filter(None, (project.tree.note, project.tree.mostly_ignored))) or None,
            installing=project.languages.availability.installing(),
            given_up=project.languages.given_up(),
            side_languages=project.languages.side_languages(),
        )


def _nobody() -> None:
    """Is called."""


def _check_there(root: Path) -> None:
    """Raises ProjectRefused for an open project whose folder is gone, which may come back."""
    if not os.path.isdir(root):  # noqa: PTH112 - as in `check`
        raise ProjectRefused(f"The folder {quoted(root)} no longer exists. Pass project= with its current path.")


def opener_in(folder: str | None, *, person: bool) -> Opener:
    """Who asks, of a session that works in `folder`, as its client says."""
    try:
        return Opener(person, real_path(Path(folder)) if folder else None)
    except ProjectRefused:
        return Opener(person)
