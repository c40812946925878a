"""Translates errors for MCP: into tool results, or JSON-RPC errors where no tool was called.

One of the two translators of this program (the other is `web`). What is not of our own tree is a bug: it is logged
under an id, and the client gets the id and nothing of its inside.
"""

import logging
from typing import TYPE_CHECKING, Any

from serena_central.core.errors import NO_MEMORY, ClientCannotAnswer, SerenaCentralError, UpstreamCallFailed
from serena_central.core.tracing import new_call_id
from serena_central.mcp_server.protocol import (
    CAPABILITY_OF,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_CAPABILITY,
    wire,
)

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

MOST_PROBLEMS = 5
"""Named of a request's parameters."""

logger = logging.getLogger(__name__)


class RequestRefused(SerenaCentralError):
    """A request that is no tool call can't be answered. `code` is one of JSON-RPC or MCP, `data` goes out with it."""

    def __init__(self, message: str, *, code: int = INVALID_PARAMS, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def failed_result(error: Exception) -> dict[str, Any]:
    """A tool result, in wire form, that tells the model what went wrong and what to do next."""
    return wire({"content": [{"type": "text", "text": _explain(error)}], "isError": True})


def error_of(error: Exception) -> dict[str, Any]:
    """The error of a JSON-RPC answer, for a request that is no tool call."""
    if isinstance(error, UpstreamCallFailed) and error.code:
        return _error(error.code, error.said, error.data)
    if isinstance(error, RequestRefused):
        return _error(error.code, str(error), error.data)
    if isinstance(error, ClientCannotAnswer) and not error.refusal:
        capability = CAPABILITY_OF.get(error.method, error.method)
        return _error(MISSING_CAPABILITY, str(error), {"requiredCapabilities": {capability: {}}})
    code = INVALID_REQUEST if isinstance(error, SerenaCentralError) else INTERNAL_ERROR
    return _error(code, _explain(error))


def _error(code: int, message: str, data: Any = None) -> dict[str, Any]:
    return {"code": code, "message": message, **({} if data is None else {"data": data})}


def protocol_error(error: Exception) -> "MCPError":
    """`error_of` to raise to the SDK; its own errors pass as they are."""
    # Not at the top: a server that needs no SDK needs this module.
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        return error
    if isinstance(error, ValidationError):
        return MCPError(code=INVALID_PARAMS, message=f"Invalid params: {_invalid(error)}.", data="")
    return MCPError(**error_of(error))


def _invalid(error: "ValidationError") -> str:
    """What is wrong where, without the values."""
    said = error.errors(include_url=False, include_context=False, include_input=False)[:MOST_PROBLEMS]
    return "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in said)


def _explain(error: Exception) -> str:
    if isinstance(error, SerenaCentralError):
        return str(error)
    trace = new_call_id()
    logger.error("unexpected error %s", trace, exc_info=error)
    if isinstance(error, MemoryError):
        return f"{NO_MEMORY} (log: {trace})"
    return f"Internal error. See the server's log, {trace}."
