"""Errors of edits: what kept one from being made, or being known."""

from collections.abc import Sequence

from serena_central.core.errors.base import CANDIDATES_LISTED, SerenaCentralError, listed
from serena_central.core.quoting import escaped, quoted


class EditError(SerenaCentralError):
    """An edit was not made."""


class EditConflict(EditError):
    """A symbol is not any more what the session saw. `changed_by` names a session and client, or says that it was none
    of this server's; `at` is ISO 8601 (UTC); `current` is its source now, None for a whole file."""

    several_lines = True

    def __init__(self, symbol: str, path: str, changed_by: str, at: str, current: str | None) -> None:
        what = "file" if current is None else "symbol"
        shown = f" Its current text:\n{current}" if current is not None else " read_file shows its current text."
        super().__init__(
            f"{escaped(symbol)} in {escaped(path)} was changed by {escaped(changed_by)} at {at}, after this session "
            f"last read it. Nothing was written. Re-read the {what} and retry the edit.{shown}"
        )
        self.symbol = symbol
        self.path = path
        self.changed_by = changed_by
        self.at = at
        self.current = current


class EditRefused(EditError):
    """An edit that would break something, or of which not all consequences can be known; the message says what."""


class JointEditRefused(EditError):
    """An edit of several projects that one of them can't take part in. `error` is that one's."""

    several_lines = True

    def __init__(self, project: str, error: SerenaCentralError, projects: Sequence[str]) -> None:
        others = [name for name in projects if name != project]
        rest = f" {listed(others)} {'was' if len(others) == 1 else 'were'} not changed either." if others else ""
        super().__init__(f"Nothing was changed, because of {quoted(project)}: {error}{rest}")
        self.project = project
        self.error = error


class UndoRefused(EditError):
    """An edit cannot be undone; the message says why."""

    def __init__(self, edit: str, reason: str) -> None:
        super().__init__(f"{edit} can't be undone: {reason}. Nothing was changed.")
        self.edit = edit


class EditNotFound(UndoRefused):
    """No edit has this id."""

    def __init__(self, edit: str) -> None:
        super().__init__(edit, "there is no edit with this id; `serena-central history` lists all edits")


class EditNotInTime(EditError):
    """Others edited a file until the time of this edit was over; `ahead` counts those that were still before it."""

    def __init__(self, path: str, ahead: int, waited_s: float) -> None:
        super().__init__(
            f"{path!r} is being edited by other calls; after {waited_s:.1f} s this call was still "
            f"number {ahead + 1} in the file's queue. Nothing was changed. Call again, or make fewer and larger "
            "edits."
        )
        self.path = path
        self.ahead = ahead


class FileChanged(EditError):
    """A file is not any more what an edit was planned on. Nothing was changed."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed on disk during the edit. Nothing was written; re-read it and call again.")
        self.path = path


class WriteFailed(EditError):
    """The disk refused. `changed` names files that could not be brought back to what they were."""

    def __init__(self, path: str, reason: str, changed: Sequence[str] = ()) -> None:
        state = f"These files could not be restored: {', '.join(changed)}." if changed else "No file was changed."
        super().__init__(f"{path!r} could not be written: {reason}. {state}")
        self.path = path
        self.changed = list(changed)


class EditTakenOver(EditError):
    """Another process writes the project since this edit was begun, and brings it to an end."""

    def __init__(self, edit: str, files: Sequence[str]) -> None:
        super().__init__(
            f"Another host took the project over while {edit} was being made, and completes or undoes it. It is "
            f"unknown whether it was written; check {listed(files)} before you send it again."
        )
        self.edit = edit
        self.files = list(files)


class OutcomeUnknown(EditError):
    """A repeated call: the server was killed while its edit was made, and it is unknown whether it was written.
    `front`: the server that made it, if that is another one."""

    def __init__(self, edit: str, files: Sequence[str], front: str | None = None) -> None:
        where = ", ".join(files[:CANDIDATES_LISTED]) or "its files"
        how = (
            f"This call was already made as {edit}, before the server restarted. It is unknown whether its edit was "
            f"written: the server was killed, and {where} changed since."
            if front is None
            else f"This call was already begun as {edit} by the front {front}, which has not reported its end. It is "
            f"unknown whether its edit of {where} is or will be written."
        )
        super().__init__(f"{how} It was not repeated; check the current state and send what is missing as a new call.")
        self.front = front
        self.edit = edit
        self.files = list(files)
