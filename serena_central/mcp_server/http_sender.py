"""Describes the sender of a message over HTTP, from the request's headers. `sessions/client_identity.py` decides which
of them count.

Ids that the SDK makes per request are never among them: in the modern era they are new each time.
"""

from pathlib import PurePath

from starlette.types import Scope

from serena_central.access.auth import credential_of
from serena_central.mcp_server.sender import Sender
from serena_central.sessions.client_identity import shortened

SESSION_HEADER = b"x-serena-session"
CONVERSATION_HEADER = b"x-serena-conversation"
FOLDER_HEADER = b"x-serena-project"
CONTEXT_HEADER = b"x-serena-context"
CALL_HEADER = b"x-serena-call"
"""A call's own id, the same when a proxy sends it again after a broken connection."""
MODES_HEADER = b"x-serena-modes"
"""Modes that a new session begins with, separated by commas."""
PARENT_HEADER = b"x-serena-parent"
"""The process id of the client behind a proxy."""

HOPS_HEADER = b"x-serena-hops"
"""How many hubs of MCP servers a request has passed."""

_OURS = frozenset(
    (
        *(SESSION_HEADER, CONVERSATION_HEADER, FOLDER_HEADER, CONTEXT_HEADER, CALL_HEADER, MODES_HEADER, PARENT_HEADER),
        HOPS_HEADER,
    )
)

_MOST_NAMES = 20

_TRACE = frozenset((b"traceparent", b"tracestate", b"baggage"))


def sender_in(scope: Scope) -> Sender:
    """The sender of one HTTP request. Folders may hold any bytes, so undecodable ones survive."""
    said: dict[bytes, str] = {}
    trace: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _OURS and (text := value.decode("utf-8", "surrogateescape").strip()):
            said[name] = text
        elif name in _TRACE:
            trace[name.decode("latin-1")] = value.decode("latin-1")
    return Sender(
        credential=credential_of(scope),
        explicit_id=said.get(SESSION_HEADER),
        conversation_id=said.get(CONVERSATION_HEADER),
        working_folder=folder_in(said.get(FOLDER_HEADER)),
        context=said.get(CONTEXT_HEADER),
        modes=_names_in(said.get(MODES_HEADER, "")),
        client_pid=_pid_in(said.get(PARENT_HEADER, "")),
        through_hub=said.get(HOPS_HEADER, "0") != "0",
        call_id=said.get(CALL_HEADER),
        trace=trace,
    )


def folder_in(text: str | None) -> str | None:
    """The folder that a client named; None if it is not one, such as an unexpanded `${PWD}`."""
    if text and (text.startswith("~") or PurePath(text).is_absolute()):
        return text
    return None


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(shortened(name) for part in text.split(",")[:_MOST_NAMES] if (name := part.strip()))


def _pid_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
