"""Built-in checks, which need what this server knows of the code: errors, broken references, unused symbols, tests.

They compare with the state when the session began: before a session's first edit of a file, that file and those that
may depend on it are looked at, for a bounded time. What could not be looked at then counts as new, and the answer says
so; where a check can't know, it stops the tool.
"""

import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from serena_central.analysis.broken_references import broken_references
from serena_central.analysis.selection import dependents
from serena_central.analysis.validation import Validation
from serena_central.claude_config.command_lines import commands_of
from serena_central.claude_config.permissions import command_fits
from serena_central.claude_config.rules import BadRule, parse_rule
from serena_central.core.clock import utc
from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, StoreError
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.files.stamp import Stamp
from serena_central.gates.events import CheckEnd
from serena_central.gates.rules import Hook
from serena_central.projects.editing.edit_history import EditHistory
from serena_central.projects.project import Project
from serena_central.store.query_results import EditFilter

ERRORS, BROKEN, UNUSED, TESTS = "no-new-errors", "no-broken-references", "no-unused-symbols", "tests-fresh"

LEARN_S = 10.0
"""How long a session's first edit of a file waits until it is known what is wrong already."""

LISTED = 10
"""Places that one refusal names."""

MOST_EDITS = 5000
MOST_RUNS = 5
"""Command lines that succeeded last: each keeps a list of the project's files."""

MOST_BEGUN = 20
"""Calls of command lines that may still run, with a list each; failed ones are not reported."""

ERROR = 1
"""LSP DiagnosticSeverity."""

_CHAIN = re.compile(r"\|\||;|\||\n|\$\(|`|(?<!&)&(?!&)")
"""In a line with one of these, exit code 0 does not mean that each command succeeded."""


class Place(NamedTuple):
    """A finding: `key` stays the same when lines move; `text` names its place."""

    path: str
    key: str
    text: str


class Run(NamedTuple):
    """A run of a command line: when it began (Unix seconds), and the project's files then."""

    began: float
    files: Mapping[str, Stamp]


@dataclass
class Baseline:
    """Of one session in one root. Check → path → how often each finding was there before the session changed it."""

    known: dict[str, dict[str, Counter[str]]] = field(default_factory=dict[str, dict[str, Counter[str]]])
    edited: set[str] = field(default_factory=set[str])
    """Root-relative paths of the files that its edits changed since this server began."""
    begun: dict[str, Run] = field(default_factory=dict[str, Run])
    """By call, the oldest first."""
    succeeded: dict[str, Run] = field(default_factory=dict[str, Run])
    """By command line, in the order of their ends."""

    def of(self, check: str) -> dict[str, Counter[str]]:
        return self.known.setdefault(check, {})


class Checks:
    """Of one session in one project."""

    def __init__(
        self, project: Project, session: str, baseline: Baseline, history: EditHistory, validation: Validation
    ) -> None:
        self._project = project
        self._session = session
        self._baseline = baseline
        self._history = history
        self._validation = validation
        self._looks: dict[str, Callable[[Collection[str]], Awaitable[_Looked]]] = {
            ERRORS: self._errors,
            BROKEN: self._broken,
            UNUSED: self._unused,
        }

    async def learn(self, checks: Iterable[str], files: Collection[str]) -> None:
        """Finds out what is wrong before files are edited for the first time, within bounds. Paths are
        root-relative."""
        with anyio.move_on_after(LEARN_S):
            for check in checks:
                known = self._baseline.of(check)
                if check not in self._looks or all(path in known for path in files):
                    continue
                await self._project.fresh()
                looked = await self._looks[check](files)
                for path in looked.paths:
                    if path not in known and path not in looked.failed:
                        known[path] = Counter(one.key for one in looked.found if one.path == path)
                for path in files:
                    if path not in self._project.tree.files:
                        known.setdefault(path, Counter())  # it is made now

    def edited(self, files: Collection[str]) -> None:
        """The session has changed files."""
        self._baseline.edited.update(files)

    async def begins(self, call: str, line: str) -> None:
        """A command line of the session is about to run."""
        if _CHAIN.search(line) is None:
            await self._project.fresh()
            _keep(self._baseline.begun, call, Run(time.time(), dict(self._project.tree.files)), MOST_BEGUN)

    def succeeded(self, call: str, line: str) -> None:
        """It ended with 0: for the files as they were when it began. What changed meanwhile it may not have seen."""
        run = self._baseline.begun.pop(call, None)
        if run is not None and _CHAIN.search(line) is None:
            _keep(self._baseline.succeeded, line, run, MOST_RUNS)

    async def check(self, hook: Hook) -> CheckEnd:
        """Makes the check that a hook names.

        Raises:
            SerenaCentralError: it can't be made.
        """
        if hook.action == TESTS:
            return await self._tests(str(hook.given.get("command") or ""), hook)
        files, whole = await self._edited()
        await self._project.fresh()
        looked = await self._looks[hook.action](files) if files else _Looked([], [], {})
        known, new, unsure = self._baseline.of(hook.action), list[str](), 0
        left = {path: Counter(known[path]) for path in known}
        for one in looked.found:
            if one.path in left:
                left[one.path][one.key] -= 1
                if left[one.path][one.key] >= 0:
                    continue
            else:
                unsure += 1
            new.append(one.text)
        if not new and looked.failed:
            path, why = next(iter(looked.failed.items()))
            return CheckEnd(
                f"{counted(len(looked.failed), 'file')} could not be checked, the first is {quoted(path)}: {why}. "
                "Call again, or restart the language server (restart_language_server)."
            )
        if not new:
            return CheckEnd(note="" if whole else f"only the newest {MOST_EDITS} edits were looked at")
        more = f" and {len(new) - LISTED} more" if len(new) > LISTED else ""
        doubt = f" Of {unsure} it is not known whether they were there when the session began." if unsure else ""
        return CheckEnd(f"{_TOLD[hook.action]}: {'; '.join(new[:LISTED])}{more}.{doubt} {_NEXT[hook.action]}")

    async def edited_by_others(self, path: str) -> bool:
        """Whether another session has edited a root-relative file, as far as the history goes back."""
        wanted = EditFilter(not_session=self._session, project=str(self._project.root), file=path, limit=1)
        return bool(await self._history.edits(wanted))

    # --- what is wrong now -------------------------------------------------------------------------------------------

    async def _edited(self) -> tuple[set[str], bool]:
        """Files that the session changed, also before a restart of the server; and whether these are all."""
        files = set(self._baseline.edited)
        try:
            rows = await self._history.edits(
                EditFilter(session=self._session, project=str(self._project.root), limit=MOST_EDITS)
            )
        except StoreError:
            return files, False
        for row in rows:
            for file in row.files:
                files.update(path for path in (file.get("path"), file.get("moved_to")) if path)
        return files, len(rows) < MOST_EDITS

    async def _errors(self, files: Collection[str]) -> "_Looked":
        paths, _ = await dependents(self._project, files, frozenset())
        looked = _Looked([], [], {})
        for path in paths:
            if self._project.languages.spec_for(path) is None:
                continue
            looked.paths.append(path)
            try:
                views, _ = await self._project.navigation.diagnostics(path)
            except (LanguageServerError, PathError, DeadlineExceeded) as error:
                looked.failed[path] = str(error)
                continue
            for view in views:
                found = view.diagnostic
                if found.severity == ERROR:
                    line = found.range.start.line0
                    key = f"{found.source}: {found.code}: {found.message}"
                    looked.found.append(Place(path, key, f"{path}:{line}: {quoted(found.message)}"))
        return looked

    async def _broken(self, files: Collection[str]) -> "_Looked":
        paths, _ = await dependents(self._project, files, frozenset())
        checked = await broken_references(self._project, paths, files)
        found = [
            Place(one.path, f"{one.what}: {one.message}", f"{one.path}:{one.line}: {quoted(one.message)}")
            for one in checked.found
        ]
        why = "; ".join(checked.notes) or "no language server answered"
        return _Looked(paths, found, dict.fromkeys(paths, why) if checked.failed else {})

    async def _unused(self, files: Collection[str]) -> "_Looked":
        here = [path for path in files if path in self._project.tree.files]
        if not here:
            return _Looked([], [], {})
        where = await self._validation.extent(self._project, "", here)
        result = (await self._validation.unused(where)).whole
        found = [Place(one.path, one.name_path, f"{one.path}:{one.line}: {one.name_path}") for one in result.found]
        failed = dict.fromkeys(here, f"{result.unasked} symbols were not examined") if result.unasked else {}
        return _Looked(here, found, failed)

    async def _tests(self, pattern: str, hook: Hook) -> CheckEnd:
        try:
            rule = parse_rule(f"Bash({pattern})")
        except BadRule as error:
            return CheckEnd(f"command names no command: {error}. Correct {hook.name}.")
        await self._project.fresh()
        now = self._project.tree.files
        newest: Run | None = None
        for line, run in self._baseline.succeeded.items():
            fits = [one for one in commands_of(line) if one.words and not one.unknown]
            if fits and command_fits(rule, fits) and (newest is None or run.began > newest.began):
                newest = run
        if newest is None:
            return CheckEnd(
                f"no run of {quoted(pattern)} has succeeded in this session. Run it alone, or joined by && alone."
            )
        then = newest.files
        changed = sorted({path for path, stamp in now.items() if then.get(path) != stamp} | (then.keys() - now.keys()))
        if not changed:
            return CheckEnd()
        shown = ", ".join(changed[:LISTED]) + (f" and {len(changed) - LISTED} more" if len(changed) > LISTED else "")
        return CheckEnd(
            f"{shown} changed since the last successful run of {quoted(pattern)} began at {utc(newest.began)}. Run it "
            "again. Files that it writes itself must be ignored (.gitignore)."
        )


def _keep(runs: dict[str, Run], key: str, run: Run, most: int) -> None:
    runs.pop(key, None)
    runs[key] = run
    while len(runs) > most:
        del runs[next(iter(runs))]


class _Looked(NamedTuple):
    """What is wrong in some files; `failed`: path → why it is not known."""

    paths: list[str]
    found: list[Place]
    failed: dict[str, str]


_TOLD = {
    ERRORS: "errors that were not there when the session began",
    BROKEN: "broken references that were not there when the session began",
    UNUSED: "symbols that nothing uses since this session's edits",
}

_NEXT = {
    ERRORS: "Fix them; get_diagnostics_for_file shows each.",
    BROKEN: "Fix them; check_references shows all.",
    UNUSED: "Remove them (safe_delete_symbol), or use them.",
}
