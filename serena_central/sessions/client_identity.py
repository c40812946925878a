"""Client identity: the facts that a request gives about its caller, and the rule that derives a session id from them.

The rule needs no memory, so that a conversation is recognized after a restart of the server as before it. It knows no
HTTP: `mcp_server/sender.py` and `web` collect the facts.
"""

import hashlib
import re
from enum import StrEnum
from typing import Literal

import msgspec

from serena_central.core.errors import InvalidArguments
from serena_central.core.quoting import escaped

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_NAME_LIMIT = 200
"""Characters kept of what a client says about itself: enough for any name, harmless in logs and pages."""


class IdentifiedBy(StrEnum):
    """What a conversation was identified by, strongest first."""

    EXPLICIT = "explicit"
    """X-Serena-Session: set by the client's configuration, or by a proxy in front of it."""
    TRANSPORT = "transport"
    """Mcp-Session-Id of the handshake era."""
    CONVERSATION = "conversation"
    """An id that the client puts into `_meta` of each request."""
    SHARED = "shared"
    """Only token, client name and folder are known: two windows may hide behind it."""


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What one request says about its sender. `credential` is a digest of the token, never the token."""

    credential: str
    era: Literal["handshake", "modern"] = "modern"
    explicit_id: str | None = None
    transport_id: str | None = None
    conversation_id: str | None = None
    client_name: str = ""
    client_version: str = ""
    working_folder: str | None = None
    context: str | None = None
    modes: tuple[str, ...] = ()
    """Modes that a new session begins with; an older one keeps its own."""
    through_hub: bool = False
    """The client is a hub of MCP servers, perhaps this very server's: it is offered no other servers' tools."""
    client_pid: int | None = None
    """The process behind the proxy, as the proxy says."""

    def resolve(self) -> tuple[str, IdentifiedBy]:
        """The session id that this request belongs to, and what it was identified by.

        Raises:
            InvalidArguments: an explicit id that is no plain identifier.
        """
        if self.explicit_id:
            return _checked(self.explicit_id), IdentifiedBy.EXPLICIT
        if self.transport_id:
            return _checked(self.transport_id), IdentifiedBy.TRANSPORT
        if self.conversation_id:
            return "conversation-" + _digest(self.credential, self.conversation_id), IdentifiedBy.CONVERSATION
        marks = (self.credential, self.client_name, self.working_folder or "")
        return "shared-" + _digest(*marks), IdentifiedBy.SHARED


def shortened(text: str) -> str:
    """What a client says about itself, bounded, on one line."""
    return escaped(text[:_NAME_LIMIT])[:_NAME_LIMIT]


def _checked(identifier: str) -> str:
    if not _SAFE_ID.fullmatch(identifier):
        raise InvalidArguments(
            "A session id consists of at most 128 letters, digits and . _ : -, and starts with a letter or digit."
        )
    return identifier


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
