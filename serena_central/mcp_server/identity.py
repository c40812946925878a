"""Collects what one MCP request says about its sender: headers, `_meta` and client info of either era.

Which of these facts decides is `sessions/claim.py`'s rule. Ids that the SDK makes per request are never among them: in
the modern era they are new each time.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from starlette.types import Scope

from serena_central.access.guard import credential_of
from serena_central.sessions.claim import Claim, shortened

SESSION_HEADER = b"x-serena-session"
CONVERSATION_HEADER = b"x-serena-conversation"
FOLDER_HEADER = b"x-serena-project"
CONTEXT_HEADER = b"x-serena-context"
CALL_HEADER = b"x-serena-call"
"""A call's own id, the same when a bridge sends it again after a broken connection."""
MODES_HEADER = b"x-serena-modes"
"""Modes that a new session begins with, separated by commas."""
PARENT_HEADER = b"x-serena-parent"
"""The process id of the client behind a bridge."""

_SENDER = frozenset((SESSION_HEADER, CONVERSATION_HEADER, FOLDER_HEADER, CONTEXT_HEADER, MODES_HEADER, PARENT_HEADER))
_OURS = _SENDER | {CALL_HEADER}

_MOST_NAMES = 20

_CONVERSATION_KEYS = ("sessionId", "threadId")
"""Where clients put their conversation's id into `_meta` (Codex)."""


class Client(NamedTuple):
    """What a client calls itself, by handshake or by envelope; empty when it does not say."""

    name: str = ""
    version: str = ""


def claim_of(
    scope: Scope,
    *,
    client: Client,
    meta: Mapping[str, Any] | None = None,
    transport_id: str | None = None,
    roots_folder: str | None = None,
) -> Claim:
    """Builds the claim of one request. `transport_id` is given in the handshake era, and only there."""
    said = headers_of(scope)
    return Claim(
        credential=credential_of(scope),
        era="handshake" if transport_id else "modern",
        explicit_id=said.get(SESSION_HEADER),
        transport_id=transport_id,
        conversation_id=said.get(CONVERSATION_HEADER) or _conversation_in(meta or {}),
        client_name=client.name,
        client_version=client.version,
        working_folder=folder_in(said.get(FOLDER_HEADER)) or roots_folder,
        context=said.get(CONTEXT_HEADER),
        modes=_names_in(said.get(MODES_HEADER, "")),
        client_pid=_pid_in(said.get(PARENT_HEADER, "")),
    )


def request_of(scope: Scope, transport_id: str | None, request_id: str | int | None) -> str | None:
    """What is the same only when the same request is sent again: the bridge's own id, else the JSON-RPC id within one
    `initialize`. None in the modern era without a bridge: a client that was started anew counts from 1 again."""
    call = headers_of(scope).get(CALL_HEADER)
    if call is not None:
        return f"call {call}"
    if transport_id is not None and request_id is not None:
        return f"{transport_id} {request_id!r}"
    return None


def said_in(scope: Scope) -> list[tuple[bytes, bytes]]:
    """What a request says about its sender, as it came."""
    return [(name, value) for name, value in scope["headers"] if name in _SENDER]


def headers_of(scope: Scope) -> dict[bytes, str]:
    """Our own headers of a request that are not empty. Folders may hold any bytes, so undecodable ones survive."""
    return {
        name: text
        for name, value in scope["headers"]
        if name in _OURS and (text := value.decode("utf-8", "surrogateescape").strip())
    }


def folder_in(text: str | None) -> str | None:
    """A folder that a client named, or None for what is none, such as a `${PWD}` that nobody filled in."""
    if text and (text.startswith("~") or PurePath(text).is_absolute()):
        return text
    return None


def _names_in(text: str) -> tuple[str, ...]:
    return tuple(shortened(name) for part in text.split(",")[:_MOST_NAMES] if (name := part.strip()))


def _pid_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _conversation_in(meta: Mapping[str, Any]) -> str | None:
    for key in _CONVERSATION_KEYS:
        value = meta.get(key)
        if isinstance(value, str) and value:
            return value
    return None
