"""What this server itself saw of a task's work: its calls, edits, errors and runs of tests, and files that changed
beside its edits.

The agent's own text stands beside it. What the runner's own tools did is seen by its effect alone: files whose stamps
differ. Others who worked in the project at that time change files, too, which is why those stand apart.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec

from serena_central.agents.tasks import TaskSpec
from serena_central.agents.test_runs import ends_as_its_tests, runs_tests
from serena_central.analysis.error_changes import ErrorBaseline, ErrorChanges
from serena_central.core.errors import SerenaCentralError
from serena_central.core.masking import masked
from serena_central.files.stamp import Stamp
from serena_central.gates import log
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.editing.joint_edits import learning_before_edits
from serena_central.projects.registry import ProjectRegistry
from serena_central.sessions.manager import SessionManager
from serena_central.store.query_results import EditFilter
from serena_central.store.rows import EditRow

logger = logging.getLogger(__name__)

LOOK_S = 15.0
"""How long looking at the project may take, before and after; and how long looking at errors may."""

LEARN_S = 10.0
"""How long a task's first edit of a file waits until its errors are known."""

MOST_LISTED = 200
COMMAND_CHARS = 500

INCOMPLETE = "not determined: {}"


@dataclass
class Seen:
    """What is noted of a task while it runs. `files` are the project's before it, None where they can't be had in
    time; `baselines`: root → errors before it."""

    files: Mapping[str, Stamp] | None
    baselines: dict[Path, ErrorBaseline] = field(
        default_factory=lambda: defaultdict[Path, ErrorBaseline](ErrorBaseline)
    )
    tests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    shared: dict[Path, ErrorBaseline] | None = None
    """Errors before the wave of a plan that it belongs to."""


class TaskVerifier:
    """See `scheduler.Verifier`. It never fails a task: what could not be seen is said in `notes`."""

    def __init__(self, projects: ProjectRegistry, history: EditHistory, sessions: SessionManager) -> None:
        self._projects = projects
        self._history = history
        self._sessions = sessions
        self._seen: dict[str, Seen] = {}
        """By the sessions of tasks that run."""
        self._shared: dict[str, dict[Path, ErrorBaseline]] = {}
        """By plans that run."""

    async def before(self, spec: TaskSpec) -> Seen:
        parent = self._seen.get(spec.called_by)
        shared = parent.shared if parent is not None else self._shared.get(spec.called_by)
        seen = self._seen[spec.session] = Seen(await self._files(spec), shared=shared)
        return seen

    def share(self, plan: str) -> dict[Path, ErrorBaseline]:
        """The errors before a wave of a plan, to which its tasks add those of files that they are about to change."""
        return self._shared.setdefault(plan, defaultdict(ErrorBaseline))

    def forget(self, plan: str) -> None:
        self._shared.pop(plan, None)

    def ran(self, session: str, command: str, exit_code: int | None) -> None:
        """A command of a task's session has ended."""
        seen = self._seen.get(session)
        if seen is not None and len(seen.tests) < MOST_LISTED and runs_tests(command):
            known = exit_code if ends_as_its_tests(command) else None  # else it may be that of something else
            seen.tests.append({"command": masked(command[:COMMAND_CHARS]), "exit_code": known})

    def learns(self, session: str) -> bool:
        """Whether the edits of a session are those of a task that runs."""
        return session in self._seen

    @contextmanager
    def learning(self, session: str) -> Generator[None]:
        """Around a call in a task's session: errors are noted before its edits."""
        seen = self._seen.get(session)
        if seen is None:
            yield
            return

        async def learn(root: Path, files: Collection[str]) -> None:
            try:
                project = await self._projects.open(root)
                baseline = seen.baselines[root]
                await baseline.learn(project, files, LEARN_S)
                if seen.shared is not None:
                    seen.shared[root].add(baseline)
            except SerenaCentralError as error:
                logger.info("errors in %s before an edit of a task are not known: %s", root, error)

        with learning_before_edits(learn):
            yield

    async def after(self, spec: TaskSpec, seen: Seen | None) -> dict[str, Any]:
        """`edits` are their ids, the newest first; `files` and `symbols` are what they changed; `changed_otherwise` are
        files that changed while the task ran, and not by its edits; `new_errors`, `fixed_errors`,
        `broken_references`, `undated` and `caveats` are as in `ErrorChanges`; `tests` are commands with exit
        codes, None where these are not those of the tests."""
        self._seen.pop(spec.session, None)
        found: dict[str, Any] = {"calls": self._calls(spec), "edits": [], "files": [], "symbols": []}
        notes: list[str] = []
        files: set[str] = set()
        changed: dict[Path, set[str]] = defaultdict(set)
        try:
            with anyio.fail_after(LOOK_S):
                edits = await self._history.all_edits(EditFilter(session=spec.session))
                undone = await self._history.undone([edit.id for edit in edits])
            kept = [edit for edit in edits if edit.id not in undone and edit.undoes is None]
            files = set(files_of(edits))
            found["edits"] = [edit.id for edit in kept]
            found["files"] = sorted(set(files_of(kept)))
            found["symbols"] = sorted({edit.symbol for edit in kept if edit.symbol})
            for edit in kept:
                changed[Path(edit.project_root)].update(files_of([edit]))
        except (SerenaCentralError, TimeoutError) as error:
            notes.append("edits are " + INCOMPLETE.format(error or "the history did not answer in time"))
        now = await self._files(spec) if seen is not None and seen.files is not None else None
        if seen is None or seen.files is None or now is None:
            notes.append("files that changed otherwise are " + INCOMPLETE.format("the project could not be read"))
        else:
            differ = {path for path in seen.files.keys() | now.keys() if seen.files.get(path) != now.get(path)}
            found["changed_otherwise"] = sorted(differ - files)
            for path in differ - seen.files.keys():
                seen.baselines[Path(spec.root)].known.setdefault(path, [])  # it was made meanwhile
            changed[Path(spec.root)].update(differ - files)
        if seen is not None:
            found |= await self.errors(seen.baselines, changed, notes)
            found["tests"] = seen.tests
        _shorten(found, notes)
        return {**found, **({"notes": notes} if notes else {})}

    async def errors(
        self, baselines: Mapping[Path, ErrorBaseline], changed: Mapping[Path, Collection[str]], notes: list[str]
    ) -> dict[str, Any]:
        """What changed files did to the errors of their projects; roots → root-relative paths."""
        whole = ErrorChanges()
        for root, paths in changed.items():
            if not paths:
                continue
            try:
                with anyio.fail_after(LOOK_S):
                    project = await self._projects.open(root)
                    one = await (baselines.get(root) or ErrorBaseline()).changes(project, paths)
            except (SerenaCentralError, TimeoutError, OSError) as error:
                notes.append(f"errors in {root} are " + INCOMPLETE.format(str(error) or f"not within {LOOK_S:g} s"))
                continue
            for name in ("new_errors", "fixed_errors", "broken_references", "undated", "caveats"):
                getattr(whole, name).extend(getattr(one, name))
            notes += one.notes
        plain: dict[str, Any] = msgspec.to_builtins(whole)
        del plain["notes"]
        if not plain["caveats"]:
            del plain["caveats"]
        return plain

    def _calls(self, spec: TaskSpec) -> dict[str, int]:
        """Tool → calls."""
        try:
            session = self._sessions.get(spec.session)
        except SerenaCentralError:
            return {}
        return {name: one.calls for name, one in session.tools.items()}

    async def _files(self, spec: TaskSpec) -> Mapping[str, Stamp] | None:
        try:
            with anyio.fail_after(LOOK_S):
                project = await self._projects.open(Path(spec.root))
                await project.fresh()
                # The log of hooks is the server's own.
                return {path: stamp for path, stamp in project.tree.files.items() if path not in log.FILES}
        except (SerenaCentralError, TimeoutError, OSError) as error:
            logger.info("the files of %s are not known for a task: %s", spec.root, error)
            return None


def _shorten(found: dict[str, Any], notes: list[str]) -> None:
    for name, value in found.items():
        if isinstance(value, list) and len(value) > MOST_LISTED:  # pyright: ignore[reportUnknownArgumentType]
            notes.append(f"{name} shows {MOST_LISTED} of {len(value)}")  # pyright: ignore[reportUnknownArgumentType]
            found[name] = value[:MOST_LISTED]


def files_of(edits: Iterable[EditRow]) -> list[str]:
    """Root-relative paths of all files that edits changed."""
    return [str(file[name]) for edit in edits for file in edit.files for name in ("path", "moved_to") if file.get(name)]
