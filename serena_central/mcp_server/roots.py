"""Learns a client's working folder from its roots.

In the handshake era the client is asked once, beside its calls: on the stream that it keeps open, and for a while. In
the modern era a call that names no project, from a client that said nothing else of where it works, is answered by the
question, and sent again with the roots.
"""

import logging
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from serena_central.core.errors import UnknownProject
from serena_central.mcp_server.sender import Sender, sender_of

logger = logging.getLogger(__name__)

KEY = "roots"
"""Of the question and its answer in the modern era."""

ASKING_S = 10.0
"""For the client to open its stream and answer; one that does neither has no roots for us."""


async def learn_folder(context: ServerRequestContext[Any, Any], _params: types.NotificationParams) -> None:
    """A handler of `initialized` and `roots/list_changed`: asks for the roots and keeps the first folder among them."""
    connection = sender_of(context.request).connection
    offered = context.session.client_capabilities
    if connection is None or offered is None or offered.roots is None:
        return
    with anyio.move_on_after(ASKING_S):
        await connection.stream_opened.wait()
        try:
            answer = await context.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except (MCPError, ValidationError) as error:
            logger.debug("the client did not report its roots: %s", error)
            return
        connection.roots_folder = _first_folder(answer)


def asking_for_roots(
    sender: Sender,
    error: UnknownProject,
    answers: types.InputResponses | None = None,
    *,
    offered: bool,
) -> types.InputRequiredResult | None:
    """The question for a call that failed because nothing said which project it means; None where it was asked, or
    can't be. `offered`: the client has roots."""
    if error.asked is not None or KEY in (answers or {}) or not offered:
        return None
    return types.InputRequiredResult(input_requests={KEY: types.ListRootsRequest()}) if not sender.connection else None


def folder_in_answers(answers: types.InputResponses | None) -> str | None:
    """The first folder among the roots that a call was sent again with."""
    answer = (answers or {}).get(KEY)
    return _first_folder(answer) if isinstance(answer, types.ListRootsResult) else None


def _first_folder(answer: types.ListRootsResult) -> str | None:
    folders = (_folder(str(root.uri)) for root in answer.roots)
    return next((folder for folder in folders if folder), None)


def _folder(uri: str) -> str | None:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None
