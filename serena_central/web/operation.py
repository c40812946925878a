"""One entry of the route table: how a path is served, and all that the API's document says of it."""

from dataclasses import dataclass
from typing import Any

from starlette.routing import Route

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
    any_query: bool = False
    """Takes whatever a query string holds, as scrapers send it."""

    @property
    def name(self) -> str:
        """Unique among all operations."""
        return self.handler.__name__

    def route(self) -> Route:
        query = None if self.any_query else self.query
        return Route(self.path, answering(self.handler, status=self.status, query=query), methods=[self.method])
