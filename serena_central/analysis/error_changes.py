"""What work on a project did to its errors: those that are new, those that are fixed, references that broke.

Before a file is changed for the first time, its errors are noted, and those of files that may depend on it; afterwards
they are looked at again. Errors of a file that nobody looked at before stand apart: whether they are new is not known.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import anyio
import msgspec

from serena_central.analysis.broken_references import CODES, class_of
from serena_central.analysis.selection import dependents
from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError
from serena_central.core.words import counted
from serena_central.projects.project import Project

ERROR = 1
"""LSP DiagnosticSeverity."""

AT_ONCE = 4

MOST_FILES = 1000
"""Files whose errors are looked at, before and after."""


class CodeError(msgspec.Struct, frozen=True):
    """An error in code; `line` is 0-based. `reference`: it names what is not there."""

    path: str
    line: int
    message: str
    reference: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class ErrorChanges(msgspec.Struct, kw_only=True):
    """`broken_references` are those of `new_errors` that name what is not there; `fixed_errors` have the lines that
    they had. `undated`: errors of files that nobody looked at before. `notes` say what was not looked at."""

    new_errors: list[CodeError] = []
    fixed_errors: list[CodeError] = []
    broken_references: list[CodeError] = []
    undated: list[CodeError] = []
    notes: list[str] = []


class ErrorBaseline:
    """The errors of one project before work on it began. Belongs to the event loop's thread."""

    def __init__(
        self, known: dict[str, list[CodeError]] | None = None, names: dict[str, set[str]] | None = None
    ) -> None:
        """`known`: path → errors; `names`: path → names that the file declared. Both can be stored."""
        self.known = known if known is not None else {}
        self.names = names if names is not None else {}

    async def learn(self, project: Project, files: Collection[str], seconds: float) -> None:
        """Looks at files that are about to be changed, and at those that may depend on them, for a bounded time."""
        if all(path in self.known for path in files):
            return
        with anyio.move_on_after(seconds):
            await project.fresh()
            here = [path for path in files if path in project.tree.files]
            around, _ = await dependents(project, here, frozenset()) if here else ([], None)
            # Those that are changed come first: the time may not last for all.
            await self.look(project, sorted(around, key=lambda path: path not in here))
        for path in files:
            if path not in project.tree.files:
                self.known.setdefault(path, [])  # it is made now

    def add(self, other: "ErrorBaseline") -> None:
        """Takes over what is known of files that are not known here."""
        for path, errors in other.known.items():
            if path not in self.known:
                self.known[path] = errors
                self.names.setdefault(path, other.names.get(path, set()))

    async def look(self, project: Project, paths: Iterable[str]) -> None:
        """Notes the errors of files that are not known yet."""
        await _errors_of(project, [path for path in paths if path not in self.known], self.known, {})
        for path in self.known:
            if path not in self.names and path in project.index:
                self.names[path] = {symbol.name for symbol in project.index.file(path).symbols}

    async def changes(self, project: Project, changed: Collection[str]) -> ErrorChanges:
        """What became of errors since, in files that changed and in those that may depend on them.

        Raises:
            PathError
        """
        found = ErrorChanges()
        await project.fresh()
        now: dict[str, list[CodeError]] = {}
        failed: dict[str, str] = {}
        await _errors_of(project, [path for path in changed if path in project.tree.files], now, failed)
        gone = {name for path in changed for name in self.names.get(path, set()) - _declared(project, path)}
        around, _ = await dependents(project, changed, gone)
        await _errors_of(project, [path for path in around if path not in now and path not in failed], now, failed)
        for path, errors in sorted(now.items()):
            self._compare(path, errors, gone, found)
        found.broken_references = [one for one in found.new_errors if one.reference]
        if failed:
            path, why = next(iter(failed.items()))
            found.notes.append(
                f"Errors in {counted(len(failed), 'file')} are not determined, the first is {path}: {why}"
            )
        return found

    def _compare(self, path: str, errors: Sequence[CodeError], gone: Collection[str], found: ErrorChanges) -> None:
        before = self.known.get(path)
        if before is None:
            for one in errors:
                # It may be old, unless it names what was there before.
                names_gone = one.reference and any(name in one.message for name in gone)
                (found.new_errors if names_gone else found.undated).append(one)
            return
        left = Counter(map(_key, before))
        for one in errors:
            left[_key(one)] -= 1
            if left[_key(one)] < 0:
                found.new_errors.append(one)
        for one in before:
            if left[_key(one)] > 0:
                left[_key(one)] -= 1
                found.fixed_errors.append(one)


async def _errors_of(
    project: Project, paths: Sequence[str], into: dict[str, list[CodeError]], failed: dict[str, str]
) -> None:
    """Asks the language servers about the errors of files; what they can't say is `failed`: path → why."""
    waiting = [path for path in paths if project.languages.spec_for(path) is not None]
    for path in waiting[MOST_FILES:]:
        failed[path] = f"no more than {MOST_FILES} files are looked at"
    queue = waiting[:MOST_FILES][::-1]

    async def worker() -> None:
        while queue:
            path = queue.pop()
            try:
                views, _ = await project.navigation.diagnostics(path)
            except (LanguageServerError, PathError, DeadlineExceeded) as error:
                failed[path] = str(error)
                continue
            spec = project.languages.spec_for(path)
            codes = CODES.get(spec.name) if spec is not None else None
            into[path] = [
                CodeError(
                    path,
                    one.range.start.line0,
                    one.message.splitlines()[0] if one.message else "",
                    codes is not None and class_of(one.code or "", codes) is not None,
                )
                for one in (view.diagnostic for view in views)
                if one.severity == ERROR
            ]

    async with anyio.create_task_group() as tasks:
        for _ in range(min(AT_ONCE, len(queue))):
            tasks.start_soon(worker)


def _key(one: CodeError) -> tuple[str, bool]:
    """What stays the same when lines move."""
    return one.message, one.reference


def _declared(project: Project, path: str) -> set[str]:
    return {symbol.name for symbol in project.index.file(path).symbols} if path in project.index else set()
