"""Runs warm-ups of many projects, and reports their outcome in a file for scripts.

`warmup-status.json` describes the last one, `warmup.log` all. Which roots are meant is the caller's business.
"""

import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.core.clock import utc
from serena_central.core.errors import DeadlineExceeded, SerenaCentralError
from serena_central.core.places import Places
from serena_central.core.progress import report, reporting_to
from serena_central.files.atomic import write_whole
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.root_settings import SuperRepos
from serena_central.projects.warming.project_warm_up import Warmed
from serena_central.projects.warming.warm_up_roots import Chosen, choose

logger = logging.getLogger(__name__)

MODULE_S = 900.0
"""How long one module may take: rust-analyzer and jdtls load large projects for minutes."""

MODULE_BYTES = 1 << 30
"""What the language servers of one module take while they load it, of the larger kind (rust-analyzer, tsserver)."""

NOTHING = "It has no files that a language server supports."
"""The message for a module that needs no warming up."""

LOG_BYTES = 1_000_000
"""A log that has grown beyond this is started again."""


class Warming(Protocol):
    """Warms projects up where they are open."""

    async def choose(self, folder: Path, modules: Sequence[str] = (), *, only_default: bool = False) -> Chosen:
        """The roots that are meant by a folder (`warm_up_roots.choose`)."""
        ...

    async def warm(self, root: Path) -> list[Warmed]:
        """Warms a checked root up; nothing where no server supports it.

        Raises:
            SerenaCentralError
        """
        ...


class LocalWarming:
    """`Warming` of the registry's projects."""

    def __init__(self, projects: ProjectRegistry, super_repos: SuperRepos) -> None:
        self._projects = projects
        self._super_repos = super_repos

    async def choose(self, folder: Path, modules: Sequence[str] = (), *, only_default: bool = False) -> Chosen:
        return choose(self._projects, self._super_repos, folder, modules, only_default=only_default)

    async def warm(self, root: Path) -> list[Warmed]:
        return await (await self._projects.open(root)).warm()


class WarmUpJob:
    """One warm-up: its progress so far, and its outcome once it is done. Any number of callers may follow it."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.modules: list[Warmed] = []
        self.done = False
        self._said: list[str] = []
        self._more = anyio.Event()

    def say(self, message: str, _part: float | None = None) -> None:
        self._said.append(message)
        self._wake()

    def finish(self) -> None:
        self.done = True
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = anyio.Event()

    async def follow(self) -> AsyncIterator[str]:
        """Every message from the first on; ends when the warm-up is done."""
        told = 0
        while not self.done or told < len(self._said):
            if told == len(self._said):
                await self._more.wait()
                continue
            yield self._said[told]
            told += 1


class WarmUp:
    """All warm-ups of this server. Belongs to the event loop's thread."""

    def __init__(self, by: Warming, places: Places, *, memory_budget_bytes: int) -> None:
        self.by = by
        self._places = places
        self._running: dict[Path, anyio.Event] = {}
        self._tasks: TaskGroup | None = None
        self._turns = anyio.Semaphore(modules_at_once(memory_budget_bytes, usable_cores()))

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the warm-ups until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    def start(self, chosen: Chosen) -> WarmUpJob:
        """Begins to warm checked roots up; the default one is that whose languages scripts look for."""
        assert self._tasks is not None, "it runs before anything is warmed up"
        job = WarmUpJob(chosen)
        self._tasks.start_soon(self._work, job)
        return job

    def start_at(self, folder: Path, session: str, *, only_default: bool = False) -> None:
        """Begins to warm up what is meant by a session's folder, if it is in a project."""
        assert self._tasks is not None, "it runs before anything is warmed up"
        self._tasks.start_soon(self._begin_at, folder, session, only_default)

    async def _begin_at(self, folder: Path, session: str, only_default: bool) -> None:
        try:
            chosen = await self.by.choose(folder, only_default=only_default)
        except SerenaCentralError as error:
            logger.info("nothing to warm up: %s", error, extra={"session": session})
            return
        except Exception:  # the tasks beside this one are of other warm-ups
            logger.exception("what to warm up for %s is not known", folder)
            return
        if chosen.roots:
            self.start(chosen)

    async def _work(self, job: WarmUpJob) -> None:
        roots, default_root = job.chosen.roots, job.chosen.default
        outcome: dict[Path, list[Warmed]] = {}

        async def one(root: Path) -> None:
            name = job.chosen.name_of(root)
            async with self._turns:
                outcome[root] = await self._module(root, name)
            if len(roots) > 1:
                report(f"{name}: done, {len(outcome)} of {len(roots)} modules")

        try:
            with reporting_to(job.say):
                async with anyio.create_task_group() as tasks:
                    for root in roots:
                        tasks.start_soon(one, root)
            job.modules = [warmed for root in roots for warmed in outcome[root]]
            default = outcome.get(default_root, []) if default_root else []
            await anyio.to_thread.run_sync(_write, self._places, job.modules, default)
        except Exception as error:  # the tasks beside this one are of other warm-ups
            logger.exception("the outcome of a warm-up could not be written")
            job.say(f"The outcome could not be written for scripts: {error}")
        finally:
            job.finish()

    async def _module(self, root: Path, name: str) -> list[Warmed]:
        """Warms one root up; after another warm-up of it that is on its way, so that nothing is done twice."""
        while root in self._running:
            await self._running[root].wait()
        mine = self._running[root] = anyio.Event()
        began = time.monotonic()
        failure = str(DeadlineExceeded(f"Warming {name} up", MODULE_S))
        try:
            with anyio.move_on_after(MODULE_S):
                warmed = await self.by.warm(root)
                took = round(time.monotonic() - began, 3)
                return warmed or [Warmed(name, "", took, success=True, error=NOTHING)]
        except SerenaCentralError as error:
            failure = str(error)
        except Exception as error:  # the tasks beside this one are of other roots
            logger.exception("warming %s up failed", name)
            failure = f"Internal error ({type(error).__name__}). See the server's log."
        finally:
            del self._running[root]
            mine.set()
        report(f"{name}: {failure}")
        took = round(time.monotonic() - began, 3)
        return [Warmed(name, "", took, success=False, error=failure)]


def modules_at_once(memory_budget_bytes: int, cores: int) -> int:
    """How many modules load at the same time: each keeps a core busy, and all have to fit into the memory budget."""
    return max(1, min(cores, memory_budget_bytes // MODULE_BYTES))


def usable_cores() -> int:
    """What this process may use of the machine's."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _write(places: Places, modules: Sequence[Warmed], default: Sequence[Warmed]) -> None:
    """Leaves the outcome where scripts look for it."""
    now = utc(time.time())
    write_whole(places.warmup_status_file, msgspec.json.format(msgspec.json.encode(status(now, modules, default))))
    log = places.warmup_log
    size = log.stat().st_size if log.exists() else 0
    with log.open("w" if size > LOG_BYTES else "a", encoding="utf-8", errors="replace") as file:
        for one in modules:
            outcome = "warm" if one.success else "failed"
            reason = f": {' '.join(one.error.split())}" if one.error else ""
            file.write(f"{now} {one.project} {one.language or '-'} {outcome} {one.duration_seconds:.1f} s{reason}\n")
        os.fchmod(file.fileno(), 0o600)


def status(timestamp: str, modules: Sequence[Warmed], default: Sequence[Warmed]) -> Mapping[str, Any]:
    """What `warmup-status.json` holds."""
    by_language = {
        f"{one.language}_warmup": {
            "project": one.project,
            "duration_seconds": one.duration_seconds,
            "success": one.success,
        }
        for one in default
        if one.language
    }
    return {"timestamp": timestamp, "modules": list(modules), **by_language}
