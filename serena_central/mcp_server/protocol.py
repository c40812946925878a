"""What the protocol names, as data: the SDK has the same, and takes half a second to import. A test compares."""

from typing import Any

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions with `initialize`, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""Those of self-contained requests."""

VERSIONS = HANDSHAKE_VERSIONS + MODERN_VERSIONS

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

STATUS_OF = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32021: 400, -32022: 400, -32601: 404}
"""HTTP status of errors in the modern era; 200 of all others."""

INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
ROOTS_CHANGED = "notifications/roots/list_changed"
LIST_CHANGED = "notifications/{}/list_changed"
TOOLS_CHANGED = LIST_CHANGED.format("tools")
RESOURCES_CHANGED = LIST_CHANGED.format("resources")
RESOURCE_UPDATED = "notifications/resources/updated"
SUBSCRIBED = "notifications/subscriptions/acknowledged"

RESERVED = "io.modelcontextprotocol/"
"""Prefix of the keys in `_meta` that the protocol defines."""

PROGRESS = "progressToken"
"""The key by which a client asks for the progress of a call: an integer or a text."""

PROTOCOL_VERSION_KEY = f"{RESERVED}protocolVersion"
CLIENT_INFO_KEY = f"{RESERVED}clientInfo"
CLIENT_CAPABILITIES_KEY = f"{RESERVED}clientCapabilities"
SERVER_INFO_KEY = f"{RESERVED}serverInfo"
LOG_LEVEL_KEY = f"{RESERVED}logLevel"
SUBSCRIPTION_ID_KEY = f"{RESERVED}subscriptionId"

ENVELOPE = frozenset((PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CLIENT_CAPABILITIES_KEY))
"""What each request of the modern era says of its client."""

CAPABILITY_OF = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability by which a client says that it answers a method."""


def wire(result: dict[str, Any]) -> dict[str, Any]:
    """A result as the modern era wants it; in the handshake era the SDK drops what that era does not know."""
    return {"resultType": "complete", **result}


def result_of_era(result: dict[str, Any], version: str) -> dict[str, Any]:
    """A result in wire form that does not go through the SDK, for a protocol version."""
    if version in MODERN_VERSIONS:
        return result
    return {key: value for key, value in result.items() if key != "resultType"}
