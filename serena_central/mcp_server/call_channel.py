"""The way back to the client of one request: log messages, elicitation, sampling, roots.

In the handshake era a question travels beside the request that it belongs to; how is the lanes' business. In the modern
era the request is answered by the questions (SEP-2322) and sent again with the answers; what earlier rounds brought
comes back in `requestState`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from serena_central.core.client_channel import LEVELS, ClientRequest, Level, Method
from serena_central.core.errors import ClientCannotAnswer, ClientInputRequired
from serena_central.mcp_server.protocol import CAPABILITY_OF, LOG_LEVEL_KEY
from serena_central.mcp_server.request_state import Answers, RequestStates
from serena_central.mcp_server.sender import Sender

_TELLS: Mapping[Method, str] = {
    "elicitation/create": "action",
    "sampling/createMessage": "role",
    "roots/list": "roots",
}
"""The member that only results of this method have."""


class CallChannel(ABC):
    """A `ClientChannel` for one request."""

    def __init__(
        self,
        sender: Sender,
        offered: Mapping[str, Any],
        meta: Mapping[str, Any],
        given: Mapping[str, Any] | None = None,
        earlier: Answers | None = None,
    ) -> None:
        """`offered`: the client's capabilities; `meta`: of the request. In the modern era, `given` is what this request
        was sent again with, `earlier` what came with it before. All in wire form."""
        self.sender = sender
        self.offered = offered
        self.given = given or {}
        self._meta = meta
        self._answers = dict(earlier or {})

    @abstractmethod
    async def _send(self, request: ClientRequest) -> dict[str, Any]:
        """Asks a client of the handshake era.

        Raises:
            ClientCannotAnswer: it refused.
        """

    @abstractmethod
    async def _log(self, params: Mapping[str, Any]) -> None:
        """Sends a log message before the answer."""

    def offers(self, method: Method) -> bool:
        return self.offered.get(CAPABILITY_OF[method]) is not None

    def log_level(self) -> Level | None:
        if self.sender.connection is not None:
            return self.sender.connection.log_level
        return self._meta.get(LOG_LEVEL_KEY)  # MCP 2026-07-28: each request names its level

    async def log(self, level: Level, data: Any, logger: str) -> None:
        least = self.log_level()
        if least is not None and LEVELS.index(level) >= LEVELS.index(least):
            await self._log({"level": level, "logger": logger, "data": data})

    async def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, dict[str, Any]]:
        for request in requests.values():
            if not self.offers(request.method):
                raise ClientCannotAnswer(request.method)
        if self.sender.connection is not None:
            return {name: await self._asked(request) for name, request in requests.items()}
        given = {name: answer for name, answer in self.given.items() if name in requests}
        self._answers |= {name: one for name, one in given.items() if _TELLS[requests[name].method] in one}
        missing = {name: request for name, request in requests.items() if name not in self._answers}
        if missing:
            raise ClientInputRequired(missing, self._answers)
        return {name: self._answers[name] for name in requests}

    async def _asked(self, request: ClientRequest) -> dict[str, Any]:
        answer = await self._send(request)
        if (member := _TELLS[request.method]) not in answer:
            raise ClientCannotAnswer(request.method, f"its answer has no {member!r}")
        return answer


def input_required(error: ClientInputRequired, states: RequestStates, request: bytes) -> dict[str, Any]:
    """The result, in wire form, of a request that ended with questions. `request` as for `RequestStates`."""
    asked = {
        name: {"method": one.method, **({"params": dict(one.params)} if one.params else {})}
        for name, one in error.requests.items()
    }
    state = states.signed(error.answers, request)
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}
