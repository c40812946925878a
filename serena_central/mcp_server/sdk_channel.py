"""How a client is reached by the SDK, on behalf of one request."""

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CreateMessageRequest,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from pydantic import ValidationError

from serena_central.core.client_channel import ClientRequest
from serena_central.core.errors import ClientCannotAnswer
from serena_central.mcp_server.call_channel import CallChannel
from serena_central.mcp_server.request_state import Answers
from serena_central.mcp_server.sender import sender_of

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


class SdkChannel(CallChannel):
    """A `ClientChannel` for one request that came by the SDK."""

    def __init__(self, context: Context, given: Mapping[str, Any] | None, earlier: Answers) -> None:
        capabilities = context.session.client_capabilities
        offered = capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {}
        meta: Mapping[str, Any] = (context.params or {}).get("_meta") or {}
        super().__init__(sender_of(context.request), offered, meta, given, earlier)
        self._context = context

    async def _send(self, request: ClientRequest) -> dict[str, Any]:
        results: Any = _RESULTS[request.method]
        if isinstance(results, tuple):
            results = cast("tuple[Any, ...]", results)["tools" in request.params]
        try:
            answer = await self._context.session.send_request(
                _REQUESTS[request.method].model_validate({"method": request.method, "params": dict(request.params)}),
                results,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except (MCPError, ValidationError) as error:
            raise ClientCannotAnswer(request.method, str(error)) from error
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def _log(self, params: Mapping[str, Any]) -> None:
        message = LoggingMessageNotificationParams.model_validate(params)
        await self._context.session.send_notification(
            LoggingMessageNotification(params=message), related_request_id=self._context.request_id
        )
