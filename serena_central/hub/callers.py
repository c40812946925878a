"""Who calls an upstream, as data: the hub knows neither sessions nor tools."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

Question = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Puts a request of an upstream (method, params) to the caller's client, and returns the result as it is on the wire.
Raises: UpstreamQuestionRefused."""

Progress = Callable[[str, float | None], None]
"""Takes a sentence and the part done, 0 to 1, or None where that is not known. Never blocks."""


Log = Callable[[str, Any, str], Awaitable[None]]
"""Sends a log message (level, data, logger) to the caller's client, if that wants it."""


def _nowhere(_message: str, _part: float | None) -> None:
    """For callers that want no progress."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """One call's sender. `root` is the project that it works in, whose configuration counts."""

    session: str
    root: Path
    client: str = ""
    progress: Progress = _nowhere
    ask: Question | None = None
    """None: its client can't be asked anything."""
    log: "Log | None" = None
    """None: its client wants no log messages."""
    log_level: str | None = None
    """The least severe level that its client wants; None for none."""


class Ongoing(msgspec.Struct, eq=False):
    """A request to an upstream that is not answered yet. Identity is what counts."""

    caller: Caller
    tool: str
    """Of a call; empty for other requests."""
    questions: int = 0
    """Of the server, that the caller's client has not answered yet."""
    logged: int = 0
    """Log messages of the server that the caller's client has not taken yet."""
    forgotten: bool = False
    """A remote server has answered 404 to it, although it named our session: it knows that no longer (MCP, "Session
    Management"), and has not carried the request out."""
    refused: bool = False
    """A remote server has answered 400 to it without a word about it. Many do so to a session that they don't know."""


ONGOING: ContextVar[Ongoing | None] = ContextVar("upstream_request", default=None)
"""The request on whose behalf a message is sent or received. Streamable HTTP carries it: what arrives on a request's
own stream is handled in that request's context."""
