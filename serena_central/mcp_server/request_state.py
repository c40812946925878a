"""What clients of the modern era carry for us from one round of a request to the next: their own earlier answers.

The state is signed, and not encrypted: whoever holds it gave the answers. The signature says that it was made here, for
which request of whom, and until when it counts.
"""

import hmac
import logging
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.encoding import canonical_json
from serena_central.mcp_server.errors import RequestRefused
from serena_central.mcp_server.sse import encoded

logger = logging.getLogger(__name__)

KEPT_S = 600.0
"""For the client to send its request again."""

Answers = dict[str, dict[str, Any]]
"""Results of the client in wire form, by the names of the questions."""


class _State(msgspec.Struct):
    until: float
    """Seconds since the epoch: it has to hold after a restart."""
    answers: Answers


class RequestStates:
    """Signs states, and checks them."""

    def __init__(self, secret: bytes | None = None) -> None:
        """Without a `secret` states do not survive a restart."""
        self._secret = secret or secrets.token_bytes()

    def signed(self, answers: Mapping[str, Any], request: bytes) -> str:
        """The state of a request (`identity_of_request`)."""
        state = encoded({"until": time.time() + KEPT_S, "answers": answers})
        text = urlsafe_b64encode(state).decode("ascii")
        return f"{text}.{self._signature(text, request)}"

    def opened(self, state: Any, request: bytes) -> Answers:
        """The answers in a state that came with a request; not every lane has checked that it is a text.

        Raises:
            RequestRefused: it was not made for this request, or too long ago.
        """
        text, _, signature = state.rpartition(".") if isinstance(state, str) else ("", "", "")
        # Bytes, since what a client sends may be no ASCII.
        if not hmac.compare_digest(self._signature(text, request).encode(), signature.encode(errors="replace")):
            raise _refusal("its signature is that of no state of this request")
        found = from_json(urlsafe_b64decode(text), _State)
        if found.until < time.time():
            raise _refusal("it has expired")
        return found.answers

    def _signature(self, text: str, request: bytes) -> str:
        signed = text.encode(errors="replace") + b"\n" + request
        return urlsafe_b64encode(hmac.digest(self._secret, signed, "sha256")).decode("ascii")


def identity_of_request(method: str, params: Mapping[str, Any], credential: str) -> bytes:
    """What stays the same when a request is sent again with answers."""
    target = params.get("uri") if method == "resources/read" else params.get("name")
    return canonical_json([method, target, params.get("arguments") or {}, credential])


def _refusal(why: str) -> RequestRefused:
    logger.warning("a requestState was refused: %s", why)
    return RequestRefused("Invalid or expired requestState", data={"reason": "invalid_request_state"})
