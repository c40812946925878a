"""How a client is reached by the direct lane, on behalf of one plain request: on the stream of its answer."""

from collections.abc import Mapping
from typing import Any

from serena_central.core.client_channel import ClientRequest
from serena_central.mcp_server.call_channel import CallChannel
from serena_central.mcp_server.conversation import HandshakeConversation
from serena_central.mcp_server.direct_reply import DirectReply
from serena_central.mcp_server.plain_requests import AskingParams, Caller, Params
from serena_central.mcp_server.request_state import Answers
from serena_central.mcp_server.sender import Sender


class DirectChannel(CallChannel):
    """A `ClientChannel` for one plain request."""

    def __init__(self, sender: Sender, caller: Caller, params: Params, earlier: Answers, reply: DirectReply) -> None:
        given = params.given if isinstance(params, AskingParams) else {}
        super().__init__(sender, caller.offered, params.meta, given, earlier)
        self._reply = reply

    async def _send(self, request: ClientRequest) -> dict[str, Any]:
        conversation = self.sender.connection
        assert isinstance(conversation, HandshakeConversation)
        return await conversation.streams.ask(request.method, request.params, self._reply.tell)

    async def _log(self, params: Mapping[str, Any]) -> None:
        await self._reply.tell({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
