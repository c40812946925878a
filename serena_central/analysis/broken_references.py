"""Broken references: unresolved names, found by the diagnostics of the language servers.

Which of a server's diagnostics say so is data: their codes, by class. Other diagnostics are no business of this file.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple

import anyio
import anyio.to_thread
import msgspec

from serena_central.analysis.blindspots import caveats
from serena_central.analysis.certainty import (
    Certainty,
    PythonFile,
    Within,
    is_certain_elsewhere,
    is_certain_in_restricted_go,
)
from serena_central.analysis.outcome import Finding, Outcome
from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, ServerBusy
from serena_central.core.progress import report
from serena_central.core.words import counted
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project

Break = Literal["undefined name", "unresolved import", "missing member"]

AT_ONCE = 4

ERROR = 1


class Codes(NamedTuple):
    """Codes of a server's diagnostics, by class."""

    name: frozenset[str]
    imported: frozenset[str]
    member: frozenset[str]


def _codes(name: str, imported: str, member: str) -> Codes:
    return Codes(frozenset(name.split()), frozenset(imported.split()), frozenset(member.split()))


_TYPESCRIPT = _codes("2304 2552 2503 2580 2584 18004", "2305 2306 2307 2614 2694 2724 2792 7016", "2339 2551")
_PYRIGHT = _codes("reportUndefinedVariable", "reportMissingImports", "reportAttributeAccessIssue")
_RUSTC = _codes(
    "E0425 E0412 E0405 E0408 E0574 unresolved-ident",
    "E0432 E0433 unresolved-import E0583 E0463",
    "E0599 E0609 E0610 E0026 E0559 E0560 unresolved-method unresolved-field no-such-field unresolved-assoc-item",
)

CODES: Mapping[str, Codes] = {
    "ty": _codes(
        "unresolved-reference undefined-reveal",
        "unresolved-import import-not-found",
        "unresolved-attribute missing-attribute possibly-missing-attribute",
    ),
    "pyright": _PYRIGHT,
    "basedpyright": _PYRIGHT,
    "pyrefly": _codes("unknown-name", "import-error missing-import missing-module-attribute", "missing-attribute"),
    "typescript": _TYPESCRIPT,
    "vtsls": _TYPESCRIPT,
    "typescript-language-server": _TYPESCRIPT,
    "gopls": _codes("UndeclaredName", "BrokenImport UndeclaredImportedName", "MissingFieldOrMethod"),
    "rust-analyzer": _RUSTC,
    "clangd": _codes(
        "undeclared_var_use undeclared_var_use_suggest unknown_typename unknown_typename_suggest undeclared_use",
        "pp_file_not_found",
        "no_member no_member_suggest typename_nested_not_found",
    ),
}
"""Language server → the codes, as it sends them, of what counts as a broken reference."""


class Broken(Finding, frozen=True):
    """It names what is not there. `column` is 0-based; `within` is the symbol around it. `new`: it was not there in
    the baseline that the answer is compared with."""

    column: int
    what: Break
    message: str
    code: str
    within: str | None
    certainty: Certainty = "possible"
    new: bool = False

    @property
    def counts(self) -> bool:
        """Whether a gate should close."""
        return self.certainty == "certain" or self.new


class Checked(Outcome[Broken]):
    """Of files."""


async def broken_references(project: Project, paths: Sequence[str], changed: Collection[str] = ()) -> Checked:
    """Asks the language servers about files; waits for callers before each. The caller passed the barrier.

    `changed`, some of which may be gone, is what the caller wants to know the consequences of.
    """
    result = Checked(found=[], notes=[])
    silent = {spec.title for path in paths if (spec := project.languages.spec_for(path)) and spec.name not in CODES}
    if silent:
        result.notes.append(f"Cannot classify diagnostics from: {', '.join(sorted(silent))}.")
    wanted = [path for path in paths if (spec := project.languages.spec_for(path)) and spec.name in CODES]
    queue = deque(wanted)
    again: set[str] = set()
    problems: dict[str, int] = {}

    async def worker() -> None:
        while queue:
            path = queue.popleft()
            await project.indexer.priority.give_way()
            try:
                views, note = await project.navigation.diagnostics(path)
            except ServerBusy as error:
                if path not in again:  # once more, when all others were asked
                    again.add(path)
                    queue.append(path)
                    continue
                views, note = [], str(error)
                result.failed += 1
            except (LanguageServerError, PathError, DeadlineExceeded) as error:
                views, note = [], str(error)
                result.failed += 1
            if note:
                problems[note] = problems.get(note, 0) + 1
            spec = project.languages.spec_for(path)
            if spec is not None:
                result.found += [one for view in views if (one := _broken(path, view, CODES[spec.name]))]
            result.checked += 1
            report(f"checking references: {result.checked} of {len(wanted)} files", result.checked / len(wanted))

    async with anyio.create_task_group() as tasks:
        for _ in range(min(AT_ONCE, len(wanted))):
            tasks.start_soon(worker)
    result.found = await anyio.to_thread.run_sync(_graded, project, result.found, changed)
    result.found.sort(key=lambda one: (one.path, one.line, one.column, one.code))
    result.notes += caveats(project, wanted)
    result.notes += [f"{counted(count, 'file')}: possibly incomplete: {text}" for text, count in problems.items()]
    return result


def _broken(path: str, view: DiagnosticView, codes: Codes) -> Broken | None:
    complaint = view.diagnostic
    what = class_of(complaint.code or "", codes)
    if what is None or complaint.severity > ERROR:
        return None
    start = complaint.range.start
    message = complaint.message.splitlines()[0] if complaint.message else ""
    return Broken(path, start.line0, start.column, what, message, complaint.code or "", view.name_path)


def _graded(project: Project, found: Sequence[Broken], changed: Collection[str]) -> list[Broken]:
    """With their certainty; reads files that have findings. In a thread."""
    files = project.tree.files
    within = Within(project.root, files, [path for path in changed if path not in files], project.languages.read_text)

    unloaded = {one.path.rpartition("/")[0] for one in found if one.code == "BrokenImport"}

    @cache
    def parsed(path: str) -> PythonFile:
        return PythonFile(path, within)

    def is_certain(one: Broken) -> bool:
        spec = project.languages.spec_for(one.path)
        if spec is None or project.languages.caveat(one.path):
            return False
        if spec.name in project.languages.restricted and CODES[spec.name] is not _TYPESCRIPT:
            # TypeScript lacks types of packages alone, and those are told apart
            return spec.name == "gopls" and is_certain_in_restricted_go(one.message, one.path, within, unloaded)
        if project.languages.language_of(one.path) == "python":
            return parsed(one.path).is_certain(one.what, one.line, one.message)
        return is_certain_elsewhere(one.what, one.code, one.message, one.path, within)

    return [msgspec.structs.replace(one, certainty="certain" if is_certain(one) else "possible") for one in found]


def class_of(code: str, codes: Codes) -> Break | None:
    """What a diagnostic's code says is broken; None where it says something else."""
    if code in codes.name:
        return "undefined name"
    if code in codes.imported:
        return "unresolved import"
    return "missing member" if code in codes.member else None
