"""One entry of the route table: how a path is served, and all that the API's document says of it."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from serena_central.access.auth import restricted_user
from serena_central.core.errors import ToolRefused
from serena_central.web.query import Query
from serena_central.web.responses import Handler, answering


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A method of a path. `answer` is a type with a JSON schema, or the media type of what has none; `outcome` is the
    type of the last of the lines that it may answer with instead (`Lines`)."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any
    outcome: Any = None
    query: tuple[Query, ...] = ()
    body: Any = None
    status: int = 200
    is_open: bool = False
    """Needs no token."""
    for_users: bool = False
    """A team's users may ask it, too, and get what is theirs. All else is for administrators."""
    any_query: bool = False
    """Takes whatever a query string holds, as scrapers send it."""

    @property
    def name(self) -> str:
        """Unique among all operations."""
        return self.handler.__name__

    def route(self) -> Route:
        query = None if self.any_query else self.query
        check = None if self.for_users or self.is_open else _for_administrators
        endpoint = answering(self.handler, status=self.status, query=query, check=check)
        return Route(self.path, endpoint, methods=[self.method])


def _for_administrators(request: Request) -> None:
    if restricted_user(request.scope) is not None:
        raise ToolRefused("This is for administrators of the server.")
