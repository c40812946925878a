"""A session as pages, /api and commands show it, at one moment."""

import msgspec

from serena_central.core.masking import masked
from serena_central.sessions.session import Session, SessionState
from serena_central.sessions.users import user_name


class RunningView(msgspec.Struct, frozen=True):
    """A call in flight, and what it is about; `started_at` in Unix seconds."""

    id: str
    tool: str
    about: str
    started_at: float


class SessionSnapshot(msgspec.Struct, frozen=True):
    """A session as /api and the command line show it. Times are Unix seconds."""

    session_id: str
    client_name: str
    client_version: str
    era: str
    identified_by: str
    state: SessionState
    awaited: bool
    """Disconnected only because the server was restarted: its client has not called since."""
    created_at: float
    last_activity: float
    project_name: str | None
    """Of the project that it works on, by its folder or since it made it the active one."""
    project_root: str | None
    active_project_name: str | None
    active_project_root: str | None
    active_modes: list[str]
    working_folder: str | None
    client_pid: int | None
    tool_call_count: int
    error_count: int
    edit_count: int
    running: list[str]
    open_streams: int
    """Of its client: while there is one, it counts as connected however quiet it is."""
    terminated_by: str | None
    running_calls: list[RunningView]
    user: str = ""
    """The name of the team's user whose session it is; "" for the holder of the server's own token."""


def snapshot(session: Session, now: float, idle_after_s: float) -> SessionSnapshot:
    project, active = session.project, session.active_project
    return SessionSnapshot(
        session_id=session.id,
        client_name=session.client_name,
        client_version=session.client_version,
        era=session.era,
        identified_by=session.identified_by.value,
        state=session.state(now, idle_after_s),
        awaited=session.awaited,
        created_at=session.created_at,
        last_activity=session.last_activity,
        project_name=project.name if project else None,
        project_root=project.root if project else None,
        active_project_name=active.name if active else None,
        active_project_root=active.root if active else None,
        active_modes=list(session.modes),
        working_folder=session.working_folder,
        client_pid=session.client_pid,
        tool_call_count=session.calls,
        error_count=session.errors,
        edit_count=session.edits,
        running=[call.tool for call in session.running.values()],
        open_streams=session.holders,
        terminated_by=session.termination.by if session.termination else None,
        running_calls=[
            RunningView(call.id, call.tool, masked(call.about), call.started_at) for call in session.running.values()
        ],
        user=user_name(session.credential),
    )
