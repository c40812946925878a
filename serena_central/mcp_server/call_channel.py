"""The way back to the client of one request: log messages, elicitation, sampling, roots.

In the handshake era a question travels beside the request that it belongs to. In the modern era the request is answered
by the questions (SEP-2322) and sent again with the answers; what earlier rounds brought comes back in `requestState`,
which the SDK seals and checks.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    GetPromptRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    ReadResourceRequestParams,
)
from pydantic import ValidationError

from serena_central.core.client_channel import LEVELS, ClientRequest, Level, Method
from serena_central.core.decoding import from_json
from serena_central.core.errors import ClientCannotAnswer, ClientInputRequired
from serena_central.mcp_server.sender import sender_of

CAPABILITIES: Mapping[str, str] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability by which a client says that it answers a method."""

_REQUESTS = {
    "elicitation/create": ElicitRequest,
    "sampling/createMessage": CreateMessageRequest,
    "roots/list": ListRootsRequest,
}

_RESULTS = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": (CreateMessageResult, CreateMessageResultWithTools),
    "roots/list": ListRootsResult,
}

Context = ServerRequestContext[Any, Any]
Params = CallToolRequestParams | GetPromptRequestParams | ReadResourceRequestParams


class CallChannel:
    """A `ClientChannel` for one request."""

    def __init__(self, context: Context, params: Params) -> None:
        self._context = context
        self._params = params
        self._answers: dict[str, dict[str, Any]] | None = None
        """What was answered to this call so far; of the modern era, and read when something is asked."""

    def offers(self, method: Method) -> bool:
        capabilities = self._context.session.client_capabilities
        return getattr(capabilities, CAPABILITIES[method], None) is not None

    async def log(self, level: Level, data: Any, logger: str) -> None:
        if not self._wants(level):
            return
        message = LoggingMessageNotificationParams(level=level, logger=logger, data=data)
        await self._context.session.send_notification(
            LoggingMessageNotification(params=message), related_request_id=self._context.request_id
        )

    async def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, dict[str, Any]]:
        for request in requests.values():
            if not self.offers(request.method):
                raise ClientCannotAnswer(request.method)
        if sender_of(self._context.request).connection is None:
            return self._answers_to(requests)
        return {name: await self._send(request) for name, request in requests.items()}

    def log_level(self) -> Level | None:
        connection = sender_of(self._context.request).connection
        if connection is not None:
            return connection.log_level
        # MCP 2026-07-28: each request names its level
        allowed = allowed_log_levels(self._context.protocol_version, self._context.meta)
        return next((level for level in LEVELS if level in allowed), None)

    def _wants(self, level: Level) -> bool:
        least = self.log_level()
        return least is not None and LEVELS.index(level) >= LEVELS.index(least)

    async def _send(self, request: ClientRequest) -> dict[str, Any]:
        results: Any = _RESULTS[request.method]
        if isinstance(results, tuple):
            results = cast("tuple[Any, ...]", results)["tools" in request.params]
        try:
            answer = await self._context.session.send_request(
                _model(request),
                results,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except (MCPError, ValidationError) as error:
            raise ClientCannotAnswer(request.method, str(error)) from error
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _answers_to(self, requests: Mapping[str, ClientRequest]) -> dict[str, dict[str, Any]]:
        if self._answers is None:
            self._answers = _earlier_answers(self._params.request_state)
        known = self._answers
        given = self._params.input_responses or {}
        for name, request in requests.items():
            if isinstance(given.get(name), _RESULTS[request.method]):
                known[name] = given[name].model_dump(by_alias=True, mode="json", exclude_none=True)
        missing = {name: request for name, request in requests.items() if name not in known}
        if missing:
            raise ClientInputRequired(missing, known)
        return {name: known[name] for name in requests}


def input_required(error: ClientInputRequired) -> dict[str, Any]:
    """The result, in wire form, of a request that ended with questions."""
    requests = cast("Mapping[str, ClientRequest]", error.requests)
    result = InputRequiredResult(
        input_requests={name: _model(request) for name, request in requests.items()},
        request_state=msgspec.json.encode(error.answers).decode(),
    )
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def missing_capability(error: ClientCannotAnswer) -> MCPError:
    """What the modern era answers to a request that needs a capability which its client has not declared."""
    capability = CAPABILITIES.get(error.method, error.method)
    return MCPError(
        code=MISSING_REQUIRED_CLIENT_CAPABILITY, message=str(error), data={"requiredCapabilities": {capability: {}}}
    )


def _model(request: ClientRequest) -> Any:
    return _REQUESTS[request.method].model_validate({"method": request.method, "params": dict(request.params)})


def _earlier_answers(state: str | None) -> dict[str, dict[str, Any]]:
    """What `input_required` put into the state; the SDK has checked that it did."""
    return from_json(state, dict[str, dict[str, Any]]) if state else {}
