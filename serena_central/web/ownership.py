"""What of the server belongs to who asks: a team's user sees and changes own things alone, administrators everything.

What is another's is answered as if it were not there.
"""

from collections.abc import Iterable

from starlette.requests import Request

from serena_central.access.auth import restricted_user, user_of
from serena_central.core.errors import EditNotFound, SessionNotFound
from serena_central.projects.registry import ProjectRegistry
from serena_central.projects.visible_projects import VisibleProjects
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session, shortened
from serena_central.store.rows import EditRow
from serena_central.tools.context import Services


def owner_of(request: Request) -> str | None:
    """The credential whose things alone the request is about; None: everybody's."""
    user = restricted_user(request.scope)
    return None if user is None else user.credential


def by_of(request: Request) -> str:
    """Who asks, for the log: a team's user by name, else whom the request names."""
    user = user_of(request.scope)
    return user.name if user is not None else shortened(request.query_params.get("by") or "a person")


def own_session(request: Request, sessions: SessionManager, session_id: str) -> Session:
    """Raises: SessionNotFound: also of another's session."""
    session = sessions.get(session_id)
    owner = owner_of(request)
    if owner is not None and session.credential != owner:
        raise SessionNotFound(session_id)
    return session


def own_projects(request: Request, projects: ProjectRegistry) -> ProjectRegistry:
    """Those that the one who asks may open."""
    user = restricted_user(request.scope)
    return projects if user is None else VisibleProjects(projects, user.may_open)


async def check_edits(owner: str | None, edit_id: str, services: Services) -> None:
    """Raises: EditNotFound: an edit, or a part of its operation, is another's."""
    if owner is not None and not await owns_edits(owner, await services.history.parts(edit_id), services):
        raise EditNotFound(edit_id)


async def owns_edits(owner: str, rows: Iterable[EditRow], services: Services) -> bool:
    """Whether all of these, and at least one, were made in sessions of this credential."""
    found = list(rows)
    return bool(found) and all([await owns(owner, row.session, row.at, services) for row in found])


async def owns(owner: str, session_id: str, at: float, services: Services) -> bool:
    """Whether a session was this credential's at that time (Unix seconds)."""
    try:
        session = services.sessions.get(session_id)
    except SessionNotFound:
        return await services.store.ask(lambda queries: queries.is_owner(owner, session_id, at))
    return session.credential == owner and session.created_at <= at
