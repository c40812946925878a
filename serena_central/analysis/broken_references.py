"""Broken references: unresolved names, found by the diagnostics of the language servers.

Which of a server's diagnostics say so is data: their codes, by class. Other diagnostics are no business of this file.
"""

import math
from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
import anyio.from_thread
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
from serena_central.analysis.other_platforms import OtherPlatforms
from serena_central.analysis.outcome import Finding, Outcome
from serena_central.analysis.word_index import is_go
from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, ServerBusy, ServerSilent
from serena_central.core.progress import report
from serena_central.core.words import counted
from serena_central.lsp.go_platforms import other_platform_of_text
from serena_central.projects.navigation.symbol_views import DiagnosticView
from serena_central.projects.project import Project

Break = Literal["undefined name", "unresolved import", "missing member"]

AT_ONCE = 4

KEPT_S = 600.0
"""How long it is kept what a check that was cut short has found."""

MOST_KEPT = 20
"""Checks that were cut short, of which that is kept."""

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


class Kept:
    """What a check that was cut short had made out of one project's files, for the next one, which goes on there."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[list[Broken], str | None]] = {}
        """File that a server answered for → what is broken in it; what that may lack."""
        self.failed: set[str] = set()
        """Files that no server answered for the last time: the others come first."""


class Interrupted:
    """What checks that were cut short had made out, by what they were asked."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[float, Hashable, dict[Path, Kept]]] = {}

    def of(self, question: Hashable, state: Hashable) -> dict[Path, Kept]:
        """What a check begins with, and adds to, by root; empty when the `state` of what answers depend on is another.
        Call `ended` when nothing is left to check."""
        kept = self._kept.pop(question, None)
        now = anyio.current_time()
        known = kept[2] if kept is not None and kept[1] == state and now - kept[0] <= KEPT_S else {}
        while len(self._kept) >= MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[question] = now, state, known
        return known

    def ended(self, question: Hashable) -> None:
        self._kept.pop(question, None)


async def broken_references(
    project: Project,
    paths: Sequence[str],
    changed: Collection[str] = (),
    *,
    until: float = math.inf,
    kept: Kept | None = None,
) -> Checked:
    """Asks the language servers about files, first about those that are not `kept`, and `until` then (the loop's
    clock); waits for callers before each. The caller passed the barrier.

    `changed`, some of which may be gone, is what the caller wants to know the consequences of.
    """
    specs = {path: spec for path in paths if (spec := project.languages.spec_for(path)) is not None}
    silent = {spec.title for spec in specs.values() if spec.name not in CODES}
    wanted = [path for path, spec in specs.items() if spec.name in CODES]
    check = _Check(project, wanted, kept or Kept())
    with anyio.CancelScope(deadline=until):
        await check.run(until)
    answered = [check.found[path] for path in wanted if path in check.found]
    checked = len(answered) + len(check.failed)
    result = Checked(checked=checked, failed=len(check.failed), unasked=len(wanted) - checked)
    found = [one for some, _ in answered for one in some]
    lacking = Counter([note for _, note in answered if note] + list(check.failed.values()))
    result.found = await anyio.to_thread.run_sync(_graded, project, found, changed)
    result.found.sort(key=lambda one: (one.path, one.line, one.column, one.code))
    if silent:
        result.notes.append(f"Cannot classify diagnostics from: {', '.join(sorted(silent))}.")
    result.notes += caveats(project, wanted)
    result.notes += [f"{counted(count, 'file')}: possibly incomplete: {text}" for text, count in lacking.items()]
    if result.unasked:
        result.notes.append(
            f"Out of time: {result.unasked} of {counted(len(wanted), 'file')} were not checked. The result so far is "
            "kept: call again to resume, or pass a higher seconds."
        )
    return result


class _Check:
    """Of one project's files. What is made out is added to what is `kept`."""

    def __init__(self, project: Project, wanted: Sequence[str], kept: Kept) -> None:
        self._project = project
        self._wanted = wanted
        self._kept = kept
        self.found = {path: kept.found[path] for path in wanted if path in kept.found}
        self.failed: dict[str, str] = {}
        """File that no server answered for → why."""
        self._left = len(wanted) - len(self.found)
        self._again: set[str] = set()
        self._began = 0.0

    async def run(self, until: float) -> None:
        """First comes what is not known, then what no server answered for before and what findings are known of: what
        was missing may have been installed since. Of both those last that are built on another platform."""
        left = [path for path in self._wanted if path not in self.found]
        broken = [path for path, (some, _) in self.found.items() if some]
        platforms = await anyio.to_thread.run_sync(self._platforms, [*left, *broken], abandon_on_cancel=True)
        failed = self._kept.failed.copy()
        self._began = anyio.current_time()
        others = OtherPlatforms()
        for some in (
            [path for path in left if path not in failed],
            [*(path for path in left if path in failed), *broken],
        ):
            here = deque(path for path in some if path not in platforms)
            others.has_begun = others.has_begun or bool(here)
            async with anyio.create_task_group() as tasks:
                for _ in range(min(AT_ONCE, len(here))):
                    tasks.start_soon(self._work, here)
            for path in sorted((path for path in some if path in platforms), key=platforms.__getitem__):
                if not others.begins(platforms[path], until - anyio.current_time()):
                    continue
                if await self._check(path) or (path not in self.failed and await self._check(path)):
                    others.answered(platforms[path])

    def _platforms(self, paths: Sequence[str]) -> dict[str, str]:
        """What files are built for, if that is not this platform. Reads files of Go, in a thread."""
        found = {path: self._platform(path) for path in paths if is_go(self._project, path)}
        return {path: platform for path, platform in found.items() if platform is not None}

    def _platform(self, path: str) -> str | None:
        try:
            content = self._project.languages.read_text(self._project.root / path).content
        except PathError:
            return None
        return other_platform_of_text(path, content)

    async def _work(self, queue: deque[str]) -> None:
        while queue:
            path = queue.popleft()
            if not await self._check(path) and path not in self.failed:
                queue.append(path)  # once more, when all others were asked

    async def _check(self, path: str) -> bool:
        """Whether a server has answered; what has not failed then may be asked about once more."""
        await self._project.indexer.priority.give_way()
        try:
            views, note = await self._project.navigation.diagnostics(path)
        except (LanguageServerError, PathError, DeadlineExceeded) as error:
            if isinstance(error, ServerBusy | ServerSilent) and path not in self._again:
                self._again.add(path)
            else:
                self._fail(path, error)
            self._report()
            return False
        spec = self._project.languages.spec_for(path)
        codes = CODES.get(spec.name) if spec else None
        broken = [one for view in views if codes and (one := _broken(path, view, codes))]
        self.found[path] = self._kept.found[path] = broken, note
        self._kept.failed.discard(path)
        self._report()
        return True

    def _fail(self, path: str, error: Exception) -> None:
        self.found.pop(path, None)
        self._kept.found.pop(path, None)
        self._kept.failed.add(path)
        self.failed[path] = str(error)

    def _report(self) -> None:
        total, done = len(self._wanted), len(self.found) + len(self.failed)
        answered, left = done - (total - self._left), total - done
        left_s = (anyio.current_time() - self._began) * left / answered if answered > 0 else 0.0
        said = f", about {left_s:.0f} s left" if left and answered > 0 else ""
        report(f"checking references: {done} of {total} files{said}", done / total)


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
    languages, gone = project.languages, [path for path in changed if path not in files]
    within = Within(
        project.root, files, gone, languages.read_text, partial(anyio.from_thread.run, languages.syntax.python)
    )
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
