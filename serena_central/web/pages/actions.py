"""The dashboard's actions. Each action calls a part of the server and returns a sentence on the outcome. `csrf` has
checked the sender."""

from serena_central.core.errors import SessionNotFound
from serena_central.projects.editing.undo import undo
from serena_central.web.ownership import check_edits
from serena_central.web.pages.forms import Form
from serena_central.web.pages.page import Visit
from serena_central.web.responses import NotFound

BY = "a user in the dashboard"
"""The author of these actions, in errors and the log."""


def by(visit: Visit) -> str:
    """The author of an action on this visit."""
    return BY if visit.user is None else f"{visit.user.name} in the dashboard"


async def terminate(visit: Visit, form: Form) -> str:
    """Kills the sessions that were chosen; those that are gone by themselves are no failure."""
    chosen = form.get("session", ())
    if not chosen:
        return "No session selected. Select the sessions to terminate."
    ended = 0
    for session_id in chosen:
        try:
            if visit.owner not in (None, visit.parts.sessions.get(session_id).credential):
                continue
            visit.parts.sessions.terminate(session_id, by(visit))
        except SessionNotFound:
            continue
        ended += 1
    return f"Terminated {_sessions(ended)}. Their calls are refused from now on."


async def revive(visit: Visit, form: Form) -> str:
    """Lifts the kill of one session."""
    session = visit.parts.sessions.revive(_one(form, "session"))
    return f"{session.client_name} was unblocked."


async def cancel(visit: Visit, form: Form) -> str:
    """Cancels one running call; the session continues."""
    session = visit.parts.sessions.get(_one(form, "session"))
    call = session.running.get(_one(form, "call"))
    if call is None:
        return "This call has already ended."
    call.cancel(f"The call was cancelled by {BY}.")
    return f"Cancelled {call.tool}."


async def undo_edit(visit: Visit, form: Form) -> str:
    """Undoes an edit."""
    edit = _one(form, "edit")
    await check_edits(visit.owner, edit, visit.parts)
    undone = await undo(edit, visit.parts.history, visit.parts.projects, by=by(visit))
    return f"Undone as {undone.id}."


def _one(form: Form, name: str) -> str:
    """The only value of a field.

    Raises:
        NotFound
    """
    values = form.get(name, ())
    if len(values) != 1:
        raise NotFound(f"The form field {name} is missing.")
    return values[0]


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"
