"""Runs analyses that people start: in the background, cancellable, kept until the next one.

At most one of a kind and root is on its way. The last of each lies beside the caches, so that it can be shown at once
after a restart, with its age and whether the code has changed since.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.analysis.analysis_run import (
    AnalysisRun,
    FindingsRun,
    GraphRun,
    Kind,
    Whole,
    looked_at,
    whole_graph,
)
from serena_central.analysis.graph import Granularity
from serena_central.analysis.report import GraphReport
from serena_central.core.decoding import from_msgpack
from serena_central.core.errors import SerenaCentralError
from serena_central.core.event_kinds import AnalysisEnded
from serena_central.core.events import EventBus
from serena_central.core.groups import reported_failure
from serena_central.core.lru import Lru
from serena_central.core.progress import reporting_to
from serena_central.files.atomic import write_whole
from serena_central.store.cache_file import name_of

logger = logging.getLogger(__name__)

MOST_S = 7200.0
"""How long an analysis run may take: rust-analyzer needs half an hour for what has 10,000 symbols."""

LOADED = 6
"""AnalysisRuns held in memory: those of Django take 30 MB."""

DERIVED = 40
"""Graphs made of them that are held, for who looks again."""

S = TypeVar("S", bound=AnalysisRun)
T = TypeVar("T")


class Job:
    """One analysis run on its way, or how it ended: `failure` says why there is none. `began` is in Unix seconds."""

    def __init__(self, root: Path, kind: Kind) -> None:
        self.root = root
        self.kind: Kind = kind
        self.began = time.time()
        self.says = "opening the project"
        self.part: float | None = None
        self.done = False
        self.failure = ""
        self.scope = anyio.CancelScope()

    def say(self, message: str, part: float | None = None) -> None:
        self.says, self.part = message, part


class GraphRequest(NamedTuple):
    """What somebody wants to see of a graph; folders are relative to the root, "" for the whole."""

    granularity: Granularity = "file"
    folder: str = ""
    opened: tuple[str, ...] = ()
    shut: tuple[str, ...] = ()
    max_nodes: int = 60


class Analyses(Protocol):
    """Makes analysis runs where the projects are open."""

    async def analyze(self, root: Path, kind: Kind) -> GraphRun | FindingsRun:
        """Makes an analysis run of a root.

        Raises:
            SerenaCentralError
        """
        ...

    async def fingerprints(self, roots: Sequence[str]) -> dict[str, str]:
        """Root → digest of its files as they are; of those that are open."""
        ...

    async def rules(self, root: Path, roots: Sequence[str]) -> str:
        """A fingerprint of the rules that close paths in the roots of an analysis run of `root`."""
        ...


class AnalysisRuns:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        by: Analyses,
        folder: Path,
        bus: EventBus,
    ) -> None:
        """`by` makes them; what was found is kept in `folder`."""
        self.by = by
        self._folder = folder
        self._bus = bus
        self._jobs: dict[tuple[Path, Kind], Job] = {}
        self._kept: Lru[tuple[Path, Kind], AnalysisRun | None] = Lru(LOADED)
        self._derived: Lru[Hashable, object] = Lru(DERIVED)
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the analysis runs in progress, until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    # --- making ---------------------------------------------------------------------------------------------------

    def start(self, root: Path, kind: Kind) -> Job:
        """Begins an analysis run of a checked root; the one that is on its way, if there is one."""
        assert self._tasks is not None, "it runs before anything is analyzed"
        job = self._jobs.get((root, kind))
        if job is None or job.done:
            job = self._jobs[root, kind] = Job(root, kind)
            self._tasks.start_soon(self._work, job)
        return job

    def cancel(self, root: Path, kind: Kind) -> bool:
        """Cancels a running analysis run; what was collected is kept, and the next one resumes there."""
        job = self._jobs.get((root, kind))
        if job is None or job.done:
            return False
        job.scope.cancel()
        return True

    def job(self, root: Path, kind: Kind) -> Job | None:
        """The last one that was begun since the server started."""
        return self._jobs.get((root, kind))

    async def _work(self, job: Job) -> None:
        job.failure = f"It took longer than {MOST_S / 3600:.0f} hours. Start it again to resume."
        try:
            with reporting_to(job.say), job.scope, anyio.move_on_after(MOST_S):
                analysis_run = await self.by.analyze(job.root, job.kind)
                await self.keep(job.root, analysis_run)
                if isinstance(analysis_run, GraphRun):
                    await self.look(job.root, analysis_run, GraphRequest())  # who looks at it finds it drawn
                job.failure = ""
            if job.scope.cancelled_caught:
                job.failure = "It was cancelled. Start it again to resume."
        except Exception as error:
            cause = reported_failure(error)
            if not isinstance(cause, SerenaCentralError):
                logger.exception("analyzing %s failed", job.root)
            told = isinstance(cause, SerenaCentralError)
            job.failure = str(cause) if told else "Internal error. See the server's log."
        finally:
            job.done = True
            self._bus.publish(AnalysisEnded(message=job.failure, keep=False, project=job.root.name, analysis=job.kind))

    # --- what is kept ---------------------------------------------------------------------------------------------

    async def keep(self, root: Path, analysis_run: GraphRun | FindingsRun) -> None:
        """Puts an analysis run in place of the last one of its kind."""
        kind: Kind = "graph" if isinstance(analysis_run, GraphRun) else "findings"
        file = self._file(root, kind)
        try:
            await anyio.to_thread.run_sync(lambda: write_whole(file, msgspec.msgpack.encode(analysis_run)))
        except OSError:
            logger.warning("the analysis of %s could not be stored in %s", root, file, exc_info=True)
        self._hold(root, kind, analysis_run)

    async def graph(self, root: Path) -> GraphRun | None:
        """The last graph, if there is one.

        Raises:
            SerenaCentralError: whether it may be shown can't be determined.
        """
        return await self._last(root, "graph", GraphRun)

    async def findings(self, root: Path) -> FindingsRun | None:
        """The last findings, if there are some.

        Raises:
            SerenaCentralError: as above.
        """
        return await self._last(root, "findings", FindingsRun)

    async def changed_since(self, analysis_run: AnalysisRun) -> bool | None:
        """Whether code has changed since an analysis run; None if a project is not open and this cannot be
        determined."""
        try:
            now = await self.by.fingerprints(list(analysis_run.fingerprints))
        except SerenaCentralError as error:
            logger.info("whether code has changed since an analysis is unknown: %s", error)
            return None
        if any(analysis_run.fingerprints[root] != fingerprint for root, fingerprint in now.items()):
            return True
        return False if len(now) == len(analysis_run.fingerprints) else None

    async def look(self, root: Path, analysis_run: GraphRun, look: GraphRequest) -> GraphReport:
        """A graph as somebody wants to see it."""

        async def whole() -> Whole:
            return await anyio.to_thread.run_sync(whole_graph, analysis_run, look.granularity, look.folder)

        async def report() -> GraphReport:
            graph = await self.derived((root, analysis_run.at, look.granularity, look.folder), whole)
            shown = partial(looked_at, max_nodes=look.max_nodes, opened=look.opened, shut=look.shut)
            return await anyio.to_thread.run_sync(shown, analysis_run, graph, look.folder)

        return await self.derived((root, analysis_run.at, look), report)

    async def derived(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What was made of an analysis run before, or is made now. A key always means one kind of thing."""
        if key not in self._derived:
            self._derived[key] = made = await make()
            return made
        return cast("T", self._derived[key])

    async def _last(self, root: Path, kind: Kind, form: type[S]) -> S | None:
        if (root, kind) not in self._kept:
            analysis_run = await anyio.to_thread.run_sync(_read, self._file(root, kind), form)
            if (root, kind) not in self._kept:  # none was made meanwhile
                self._hold(root, kind, analysis_run)
        found = self._kept[root, kind]
        if not isinstance(found, form):
            return None
        # What was found by other rules is not shown: it may name what is closed now.
        return found if found.rules == await self.by.rules(root, list(found.fingerprints)) else None

    def _hold(self, root: Path, kind: Kind, analysis_run: AnalysisRun | None) -> None:
        self._kept[root, kind] = analysis_run

    def _file(self, root: Path, kind: Kind) -> Path:
        return self._folder / f"{name_of(root)}.{kind}.analysis_run"


def _read(file: Path, form: type[S]) -> S | None:
    try:
        return from_msgpack(file.read_bytes(), form)
    except (OSError, msgspec.DecodeError):  # none yet, or of another version
        return None
