"""The errors that language servers report in files, and of which files these are not known, and why.

No errors and unknown errors are told apart here, once for all who judge by them: a server that failed, was not ready or
could not load the project reports too few.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import anyio

from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, ServerBusy, ServerSilent
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project

AT_ONCE = 4

ERROR = 1
"""LSP DiagnosticSeverity."""


class FileErrors(NamedTuple):
    """`found`: path → its errors, as far as its server reported any; `unknown`: path → why these may not be all. Files
    that no server reads are in neither. Filled while servers are asked, so that something is left if that is cancelled.
    """

    found: dict[str, list[DiagnosticView]]
    unknown: dict[str, str]

    @property
    def known(self) -> dict[str, list[DiagnosticView]]:
        """Of files whose errors are all known."""
        return {path: views for path, views in self.found.items() if path not in self.unknown}


def no_errors() -> FileErrors:
    return FileErrors({}, {})


async def errors_in(project: Project, paths: Iterable[str], into: FileErrors) -> None:
    """Asks language servers about the errors of files that were not asked about; once more, at the end, about those for
    which one was busy. The caller passed the barrier."""
    asked = into.found.keys() | into.unknown.keys()
    queue = deque(path for path in paths if path not in asked and project.languages.spec_for(path) is not None)
    again: set[str] = set()

    async def worker() -> None:
        while queue:
            path = queue.popleft()
            try:
                views, note = await project.navigation.diagnostics(path)
            except (LanguageServerError, PathError, DeadlineExceeded) as error:
                if isinstance(error, ServerBusy | ServerSilent) and path not in again:
                    again.add(path)
                    queue.append(path)
                else:
                    into.unknown[path] = str(error)
                continue
            into.found[path] = [view for view in views if view.diagnostic.severity == ERROR]
            if note:
                into.unknown[path] = note

    async with anyio.create_task_group() as tasks:
        for _ in range(min(AT_ONCE, len(queue))):
            tasks.start_soon(worker)
