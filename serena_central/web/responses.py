"""Serializes the answers of /api: JSON by msgspec, and errors as `{"error": {"kind", "message"}}` with a fitting
status.

One of the two translators of this program (the other is `mcp_server`). What is not of our own tree is a bug: it is
logged under an id, and the caller gets the id and nothing of its inside.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from serena_central.core import errors
from serena_central.core.decoding import from_json
from serena_central.core.groups import holds
from serena_central.core.tracing import new_call_id
from serena_central.web.query import Query, check_query

logger = logging.getLogger(__name__)

DESCRIBED = "The dashboard is at /dashboard, MCP at /mcp; GET /api/v1/openapi.json describes the API."

T = TypeVar("T")

HUNG_UP = 499
"""The client is gone; the status is for logs and counters."""

Handler = Callable[[Request], Awaitable[Any]]
"""Returns what is to be encoded, or raises one of our errors."""


class NotFound(errors.SerenaCentralError):
    """A URL names something that is not there."""


_STATUS: tuple[tuple[type[errors.SerenaCentralError], int], ...] = (
    (NotFound, 404),
    (errors.SessionNotFound, 404),
    (errors.UserNotFound, 404),
    (errors.SessionTerminated, 409),
    (errors.SessionHalted, 409),
    (errors.TooManySessions, 429),
    (errors.UnknownTool, 404),
    (errors.UnknownProject, 404),
    (errors.PathNotFound, 404),
    (errors.PathError, 400),
    (errors.SymbolNotFound, 404),
    (errors.AmbiguousSymbol, 409),
    (errors.TooManyMatches, 409),
    (errors.EditNotFound, 404),
    (errors.EditError, 409),
    (errors.TaskNotFound, 404),
    (errors.NoRunner, 503),
    (errors.PlanNotFound, 404),
    (errors.InvalidPlan, 400),
    (errors.TaskError, 409),
    (errors.TrustRefused, 409),
    (errors.ToolRefused, 403),
    (errors.ProjectRefused, 403),
    (errors.ServerUnavailable, 503),
    (errors.ServerNotInstalled, 503),
    (errors.ServerBeingInstalled, 503),
    (errors.ServerBusy, 503),
    (errors.StoreError, 503),
    (errors.LanguageServerError, 502),
    (errors.DeadlineExceeded, 504),
)
"""The first class that fits decides; all others are 400."""


def answering(
    handler: Handler,
    *,
    status: int = 200,
    query: Collection[Query] | None = (),
    check: Callable[[Request], None] | None = None,
) -> Callable[[Request], Awaitable[Response]]:
    """Wraps a handler of /api: encodes what `handler` returns, translates what it raises. `query` are the keys that its
    query string may have; None: any. `check` raises where the caller may not ask at all.

    A handler that streams returns its response itself.
    """

    async def endpoint(request: Request) -> Response:
        try:
            if check is not None:
                check(request)
            if query is not None:
                check_query(request, query)
            answer = await handler(request)
            return answer if isinstance(answer, Response) else _json(answer, status)
        except ClientDisconnect:
            return Response(status_code=HUNG_UP)
        except Exception as error:  # noqa: BLE001 (the boundary of a request: answered or logged by `problem_of`)
            failed, problem = problem_of(error)
            return _json(problem, failed)

    return endpoint


def problem_of(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body that tell of a failure. One that is not of our own tree is logged, and its inside kept."""
    if isinstance(error, errors.SerenaCentralError):
        return status_of(error), _error(_kind(error), str(error))
    status, kind, text = unexpected(error)
    return status, _error(kind, text)


def unexpected(error: Exception) -> tuple[int, str, str]:
    """Logs a failure that is not of our own tree; status, kind and words for its caller, which tell where it is
    logged."""
    trace = new_call_id()
    logger.error("unexpected error %s", trace, exc_info=error)
    if holds(error, MemoryError):
        return 503, "no_memory", f"{errors.NO_MEMORY} (log: {trace})"
    return 500, "internal", f"Internal error. See the server's log, {trace}."


async def no_such_route(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (404, 405) in our shape."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        answer = _error("method_not_allowed", f"This path does not take {request.method}. {DESCRIBED}")
    else:
        answer = _error("not_found", f"There is nothing at this path. {DESCRIBED}")
    response = _json(answer, error.status_code)
    response.headers.update(error.headers or {})
    return response


async def body_of(request: Request, kind: type[T]) -> T:
    """The request's body, checked; an empty one counts as `{}`.

    Raises:
        InvalidArguments: not JSON, or not of this kind.
    """
    try:
        return from_json(await request.body() or b"{}", kind)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise errors.InvalidArguments(f"The request body is not valid: {error}.") from error


def _json(value: Any, status: int) -> Response:
    return Response(encoded(value), status, media_type="application/json")


def encoded(value: Any) -> bytes:
    """JSON of what a handler returns."""
    return msgspec.json.encode(value, enc_hook=_encode)


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no place in an answer")


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def status_of(error: errors.SerenaCentralError) -> int:
    """The HTTP status that fits an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def _kind(error: errors.SerenaCentralError) -> str:
    """The error's place in the tree, in snake case: `SessionNotFound` → `session_not_found`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
