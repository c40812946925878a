"""Built-in checks, which need what this server knows of the code: errors, broken references, unused symbols, tests.

They compare with the state when the session began: before a session's first edit of a file, that file and those that
may depend on it are looked at, for a bounded time. What was not known then counts as new, and the answer says so; where
a check can't know, it stops the tool and says what a person can do about it.
"""

import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from serena_central.analysis.error_changes import CodeError, ErrorBaseline
from serena_central.analysis.unused_symbols import Unused, UnusedFound
from serena_central.analysis.validation import Validation
from serena_central.claude_config.permissions import command_is
from serena_central.claude_config.proven_commands import only_tells, proven_commands
from serena_central.claude_config.rules import BadRule, parse_rule
from serena_central.core.clock import utc
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


class Run(NamedTuple):
    """A run of a command line: when it began (Unix seconds), and the project's files then."""

    began: float
    files: Mapping[str, Stamp]


@dataclass
class Baseline:
    """Of one session in one root: what was there before the session changed it."""

    errors: ErrorBaseline = field(default_factory=ErrorBaseline)
    unused: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Path → name paths of its unused symbols."""
    edited: set[str] = field(default_factory=set[str])
    """Root-relative paths of the files that its edits changed since this server began."""
    begun: dict[str, Run] = field(default_factory=dict[str, Run])
    """By call, the oldest first."""
    succeeded: dict[str, Run] = field(default_factory=dict[str, Run])
    """By command line, in the order of their ends."""


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

    async def learn(self, checks: Collection[str], files: Collection[str]) -> None:
        """Finds out what is wrong before files are edited for the first time, within bounds. Paths are
        root-relative."""
        if ERRORS in checks or BROKEN in checks:
            await self._baseline.errors.learn(self._project, files, LEARN_S)
        if UNUSED in checks:
            with anyio.move_on_after(LEARN_S):
                await self._learn_unused(files)

    async def _learn_unused(self, files: Collection[str]) -> None:
        await self._project.fresh()
        known = self._baseline.unused
        new = [path for path in files if path not in known and path not in self._baseline.edited]
        unused = await self._unused(new)
        for path in new:
            if not unused.unasked or path not in self._project.tree.files:  # it is made now
                known[path] = Counter(one.name_path for one in unused.found if one.path == path)

    def edited(self, files: Collection[str]) -> None:
        """The session has changed files."""
        self._baseline.edited.update(files)

    async def begins(self, call: str, line: str) -> None:
        """A command line of the session is about to run."""
        if proven_commands(line):
            await self._project.fresh()
            _keep(self._baseline.begun, call, Run(time.time(), dict(self._project.tree.files)), MOST_BEGUN)

    def succeeded(self, call: str, line: str) -> None:
        """It ended with 0: for the files as they were when it began. What changed meanwhile it may not have seen."""
        run = self._baseline.begun.pop(call, None)
        if run is not None:
            _keep(self._baseline.succeeded, line, run, MOST_RUNS)

    async def check(self, hook: Hook) -> CheckEnd:
        """Makes the check that a hook names.

        Raises:
            SerenaCentralError: it can't be made.
        """
        if hook.action == TESTS:
            return await self._tests(str(hook.given.get("command") or ""), hook)
        files, whole = await self._edited()
        if not files:
            return CheckEnd()
        new = await (self._new_unused(files) if hook.action == UNUSED else self._new_errors(hook.action, files))
        if new.found:
            more = f" and {len(new.found) - LISTED} more" if len(new.found) > LISTED else ""
            doubt = (
                f" Of {new.unsure} it is not known whether they were there when the session began."
                if new.unsure
                else ""
            )
            listed = "; ".join(new.found[:LISTED])
            return CheckEnd(f"{_TOLD[hook.action]}: {listed}{more}.{doubt} {_NEXT[hook.action]}")
        if new.unknown:
            return CheckEnd(f"{new.unknown.rstrip('.')}. {_REMEDY} {hook.name}.")
        notes = (new.note, "" if whole else f"only the newest {MOST_EDITS} edits were looked at")
        return CheckEnd(note="; ".join(filter(None, notes)))

    async def edited_by_others(self, path: str) -> bool:
        """Whether another session has edited a root-relative file, as far as the history goes back."""
        wanted = EditFilter(not_session=self._session, project=str(self._project.root), file=path, limit=1)
        return bool(await self._history.edits(wanted))

    # --- what is wrong now -------------------------------------------------------------------------------------------

    async def _edited(self) -> tuple[set[str], bool]:
        """Files that the session changed, also before a restart of the server; and whether these are all.

        Raises:
            StoreError
        """
        rows = await self._history.edits(
            EditFilter(session=self._session, project=str(self._project.root), limit=MOST_EDITS)
        )
        files = set(self._baseline.edited)
        for row in rows:
            for file in row.files:
                files.update(path for path in (file.get("path"), file.get("moved_to")) if path)
        return files, len(rows) < MOST_EDITS

    async def _new_errors(self, check: str, files: Collection[str]) -> "_New":
        changes = await self._baseline.errors.changes(self._project, files, most=sys.maxsize)  # the time is bounded
        new, undated, note = changes.new_errors, changes.undated, ""
        if check == BROKEN:
            new, undated = changes.broken_references, [one for one in undated if one.may_be_reference]
            note = " ".join(changes.caveats)
        return _New([_told(one) for one in (*new, *undated)], len(undated), "; ".join(changes.notes), note)

    async def _new_unused(self, files: Collection[str]) -> "_New":
        await self._project.fresh()
        unused, known = await self._unused(files), self._baseline.unused
        left = {path: Counter(names) for path, names in known.items()}
        new: list[Unused] = []
        for one in unused.found:
            if one.path in left:
                left[one.path][one.name_path] -= 1
            if one.path not in left or left[one.path][one.name_path] < 0:
                new.append(one)
        unsure = sum(one.path not in known for one in new)
        unknown = f"{counted(unused.unasked, 'symbol')} could not be examined" if unused.unasked else ""
        places = [f"{one.path}:{one.line}: {one.name_path}" for one in new]
        return _New(places, unsure, unknown, " ".join(unused.notes))

    async def _unused(self, files: Collection[str]) -> UnusedFound:
        here = [path for path in files if path in self._project.tree.files]
        if not here:
            return UnusedFound()
        where = await self._validation.extent(self._project, "", here)
        return (await self._validation.unused(where)).whole

    async def _tests(self, pattern: str, hook: Hook) -> CheckEnd:
        try:
            rule = parse_rule(f"Bash({pattern})")
        except BadRule as error:
            return CheckEnd(f"command names no command: {error}. Correct {hook.name}.")
        await self._project.fresh()
        now = self._project.tree.files
        newest: Run | None = None
        for line, run in self._baseline.succeeded.items():
            proven = any(
                command_is(rule, one) and not only_tells(one, pattern.split()) for one in proven_commands(line)
            )
            if proven and (newest is None or run.began > newest.began):
                newest = run
        if newest is None:
            return CheckEnd(
                f"no run of {quoted(pattern)} has succeeded in this session. Run it alone, or joined by && alone: not "
                "in a pipe or another program."
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


class _New(NamedTuple):
    """What is wrong now and was not before, in places; `unsure`: of how many of these that is not known. `unknown`:
    what could not be looked at, and why; `note`: what passing does not mean."""

    found: list[str]
    unsure: int
    unknown: str
    note: str = ""


def _told(error: CodeError) -> str:
    return f"{error.path}:{error.line}: {quoted(error.message)}"


_REMEDY = (
    "Call again, or restart the language server (restart_language_server). If this stays so, further calls will not "
    "help: ask a person to make the project load, or to take the check out of"
)

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
