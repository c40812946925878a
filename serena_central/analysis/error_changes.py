"""What work on a project did to its errors: those that are new, those that are fixed, references that broke.

Before a file is changed for the first time, its errors are noted, and those of files that may depend on it; afterwards
they are looked at again. Errors of a file whose errors were not known before stand apart: whether they are new is not
known.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import anyio
import msgspec

from serena_central.analysis.broken_references import CODES, class_of
from serena_central.analysis.file_errors import errors_in, no_errors
from serena_central.analysis.selection import dependents
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project

MOST_FILES = 1000
"""Files whose errors are looked at, before and after, unless the caller says otherwise."""


class CodeError(msgspec.Struct, frozen=True):
    """An error in code; `line` is 0-based. `reference`: it names what is not there; None where that can't be told,
    because the codes of the server's diagnostics are not known."""

    path: str
    line: int
    message: str
    reference: bool | None = False

    @property
    def may_be_reference(self) -> bool:
        return self.reference is not False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class ErrorChanges(msgspec.Struct, kw_only=True):
    """`broken_references` are those of `new_errors` that name what is not there, or may; `fixed_errors` have the lines
    that they had. `undated`: errors of files whose errors were not known before. `notes` say what is not known,
    `caveats` which broken references can't be."""

    new_errors: list[CodeError] = []
    fixed_errors: list[CodeError] = []
    broken_references: list[CodeError] = []
    undated: list[CodeError] = []
    notes: list[str] = []
    caveats: list[str] = []


class ErrorBaseline:
    """The errors of one project before work on it began. Belongs to the event loop's thread."""

    def __init__(
        self, known: dict[str, list[CodeError]] | None = None, names: dict[str, set[str]] | None = None
    ) -> None:
        """`known`: path → errors; `names`: path → names that the file declared. Both can be stored."""
        self.known = known if known is not None else {}
        self.names = names if names is not None else {}
        self.missed: set[str] = set()
        """Files whose errors were not known before an edit that may have brought some: what is seen of them later says
        nothing about before."""
        self._missed_around: set[str] = set()
        """Edited files, of which it is not known what depends on them."""

    async def learn(self, project: Project, files: Collection[str], seconds: float) -> None:
        """Looks at files that are about to be changed, and at those that may depend on them, for a bounded time."""
        if all(path in self.known or path in self.missed for path in files):
            return
        around: Collection[str] = files
        self._missed_around |= set(files)
        with anyio.move_on_after(seconds):
            await project.fresh()
            earlier = self._missed_around.difference(files)
            self.missed |= set((await dependents(project, earlier, frozenset()))[0]) if earlier else set()
            here = [path for path in files if path in project.tree.files]
            around, _ = await dependents(project, here, frozenset()) if here else ([], None)
            self._missed_around.clear()
            # Those that are changed come first: the time may not last for all.
            await self.look(project, sorted(around, key=lambda path: path not in here))
        for path in files:
            if path not in project.tree.files:
                self.known.setdefault(path, [])  # it is made now
        self.missed |= {path for path in (*files, *around) if path not in self.known}

    def add(self, other: "ErrorBaseline") -> None:
        """Takes over what is known of files that are not known here."""
        for path, errors in other.known.items():
            if path not in self.known and path not in self.missed:
                self.known[path] = errors
                self.names.setdefault(path, other.names.get(path, set()))
        self.missed |= other.missed - self.known.keys()

    async def look(self, project: Project, paths: Iterable[str]) -> None:
        """Notes the errors of files that are not known yet."""
        wanted = [path for path in paths if path not in self.known and path not in self.missed]
        asked = no_errors()
        try:
            await errors_in(project, wanted[:MOST_FILES], asked)
        finally:  # the time may not last for all
            self.known |= {path: _errors(project, path, views) for path, views in asked.known.items()}
            for path in wanted[:MOST_FILES]:
                if path not in self.names and path in project.index:
                    self.names[path] = _declared(project, path)

    async def changes(self, project: Project, changed: Collection[str], *, most: int = MOST_FILES) -> ErrorChanges:
        """What became of errors since, in files that changed and in those that may depend on them; in so many at most.

        Raises:
            PathError
        """
        found, asked = ErrorChanges(), no_errors()
        await project.fresh()
        files = _read_by_servers(project, changed)
        await errors_in(project, files[:most], asked)  # which has their declarations known
        gone = {name for path in changed for name in self.names.get(path, set()) - _declared(project, path)}
        around, _ = await dependents(project, changed, gone)
        files = list(dict.fromkeys((*files, *_read_by_servers(project, around))))
        await errors_in(project, files[:most], asked)
        for path, views in sorted(asked.known.items()):
            self._compare(path, _errors(project, path, views), gone, found)
        found.broken_references = [one for one in found.new_errors if one.may_be_reference]
        read_by = filter(None, map(project.languages.spec_for, files))
        found.caveats = [_caveat(title) for title in sorted({one.title for one in read_by if one.name not in CODES})]
        unknown = asked.unknown | dict.fromkeys(files[most:], f"no more than {most} files are looked at")
        if unknown:
            path, why = next(iter(unknown.items()))
            found.notes.append(
                f"Errors in {counted(len(unknown), 'file')} are not determined, the first is {quoted(path)}: {why}"
            )
        return found

    def _compare(self, path: str, errors: Sequence[CodeError], gone: Collection[str], found: ErrorChanges) -> None:
        before = self.known.get(path)
        if before is None:
            for one in errors:
                # It may be old, unless it names what was there before.
                names_gone = one.may_be_reference and any(name in one.message for name in gone)
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


def _caveat(server: str) -> str:
    return (
        f"The diagnostics of {server} do not tell unresolved names from other errors: each new error counts as one, "
        "and names that it reports no error for are not checked."
    )


def _errors(project: Project, path: str, views: Iterable[DiagnosticView]) -> list[CodeError]:
    spec = project.languages.spec_for(path)
    codes = CODES.get(spec.name) if spec is not None else None
    return [
        CodeError(
            path,
            one.range.start.line0,
            one.message.splitlines()[0] if one.message else "",
            None if codes is None else class_of(one.code or "", codes) is not None,
        )
        for one in (view.diagnostic for view in views)
    ]


def _read_by_servers(project: Project, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path in project.tree.files and project.languages.spec_for(path) is not None]


def _key(one: CodeError) -> tuple[str, bool | None]:
    """What stays the same when lines move."""
    return one.message, one.reference


def _declared(project: Project, path: str) -> set[str]:
    return {symbol.name for symbol in project.index.file(path).symbols} if path in project.index else set()
