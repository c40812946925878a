"""Learns a client's working folder from its roots, in the handshake era, where a client can be asked.

Asking never holds up a call: it runs beside them, on the stream that the client keeps open, and gives up after a while.
"""

import logging
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from serena_central.mcp_server.conversation import exchange_of, scope_of

logger = logging.getLogger(__name__)

ASKING_S = 10.0
"""For the client to open its stream and answer; one that does neither has no roots for us."""


async def learn_folder(context: ServerRequestContext[Any, Any], _params: types.NotificationParams) -> None:
    """A handler of `initialized` and `roots/list_changed`: asks for the roots and keeps the first folder among them."""
    exchange = exchange_of(scope_of(context.request))
    offered = context.session.client_capabilities
    if exchange is None or offered is None or offered.roots is None:
        return
    with anyio.move_on_after(ASKING_S):
        await exchange.conversation.stream_opened.wait()
        try:
            answer = await context.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except (MCPError, ValidationError) as error:
            logger.debug("the client did not tell its roots: %s", error)
            return
        folders = (_folder(str(root.uri)) for root in answer.roots)
        exchange.conversation.roots_folder = next((folder for folder in folders if folder), None)


def _folder(uri: str) -> str | None:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None
