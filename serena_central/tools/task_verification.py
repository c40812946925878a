"""What this server itself saw of a task's work: its calls and edits, and files that changed beside them.

The agent's own text stands beside it. What the runner's own tools did is seen by its effect alone: files whose stamps
differ. Others who worked in the project at that time change files, too, which is why those stand apart.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from serena_central.agents.tasks import TaskSpec
from serena_central.core.errors import SerenaCentralError
from serena_central.files.stamp import Stamp
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.registry import ProjectRegistry
from serena_central.sessions.manager import SessionManager
from serena_central.store.query_results import EditFilter

logger = logging.getLogger(__name__)

LOOK_S = 15.0
"""How long looking at the project may take, before and after."""

MOST_EDITS = 1000
MOST_LISTED = 200

INCOMPLETE = "not determined: {}"


class TaskVerifier:
    """See `scheduler.Verifier`. It never fails a task: what could not be seen is said in `notes`."""

    def __init__(self, projects: ProjectRegistry, history: EditHistory, sessions: SessionManager) -> None:
        self._projects = projects
        self._history = history
        self._sessions = sessions

    async def before(self, spec: TaskSpec) -> Mapping[str, Stamp] | None:
        """The project's files; None where they can't be had in time."""
        return await self._files(spec)

    async def after(self, spec: TaskSpec, seen: Mapping[str, Stamp] | None) -> dict[str, Any]:
        """`edits` are their ids, the newest first; `files` and `symbols` are what they changed; `changed_otherwise`
        are files that changed while the task ran, and not by its edits."""
        found: dict[str, Any] = {"calls": self._calls(spec), "edits": [], "files": [], "symbols": []}
        notes: list[str] = []
        files: set[str] = set()
        try:
            with anyio.fail_after(LOOK_S):
                edits = await self._history.edits(EditFilter(session=spec.session, limit=MOST_EDITS))
                undone = await self._history.undone([edit.id for edit in edits])
            kept = [edit for edit in edits if edit.id not in undone and edit.undoes is None]
            files = {path for edit in edits for file in edit.files for path in _paths(file)}
            found["edits"] = [edit.id for edit in kept]
            found["files"] = sorted({path for edit in kept for file in edit.files for path in _paths(file)})
            found["symbols"] = sorted({edit.symbol for edit in kept if edit.symbol})
        except (SerenaCentralError, TimeoutError) as error:
            notes.append("edits are " + INCOMPLETE.format(error or "the history did not answer in time"))
        now = await self._files(spec) if seen is not None else None
        if seen is None or now is None:
            notes.append("files that changed otherwise are " + INCOMPLETE.format("the project could not be read"))
        else:
            changed = {path for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)}
            found["changed_otherwise"] = sorted(changed - files)
        for name, value in found.items():
            if isinstance(value, list) and len(value) > MOST_LISTED:  # pyright: ignore[reportUnknownArgumentType]
                notes.append(f"{name} shows {MOST_LISTED} of {len(value)}")  # pyright: ignore[reportUnknownArgumentType]
                found[name] = value[:MOST_LISTED]
        return {**found, **({"notes": notes} if notes else {})}

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
                return dict(project.tree.files)
        except (SerenaCentralError, TimeoutError, OSError) as error:
            logger.info("the files of %s are not known for a task: %s", spec.root, error)
            return None


def _paths(file: Mapping[str, Any]) -> list[str]:
    return [str(file[name]) for name in ("path", "moved_to") if file.get(name)]
