"""The SDK's transport of the handshake era over the log of what its client was sent. GET requests don't come to it."""

from mcp.server.streamable_http import EventCallback, EventStore, StreamableHTTPServerTransport
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, RequestId

from serena_central.mcp_server.event_log import EventLog
from serena_central.mcp_server.sse import RETRY_MS


class ResumableTransport(StreamableHTTPServerTransport):
    """Overrides what of it is private: mcp is pinned, and tests show it."""

    def __init__(self, session_id: str, log: EventLog) -> None:
        self._log = log
        super().__init__(session_id, event_store=_Kept(log), retry_interval=RETRY_MS)

    async def let_go(self, request: str) -> None:
        """Leaves what is still to be sent on a request's stream to the log: its client follows it there."""
        await self._clean_up_memory_streams(request)

    async def _terminate_unanswered_request(self, request_id: RequestId) -> None:
        """A cancelled request ends without an answer (MCP, "Cancellation"); the SDK sends an error."""
        self._log.add(str(request_id), is_last=True)
        await self._clean_up_memory_streams(str(request_id))


class _Kept(EventStore):
    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        if message is None:
            return self._log.add(stream_id)
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        return self._log.add(stream_id, data, is_last=isinstance(message, JSONRPCResponse | JSONRPCError))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Part of the interface; `streams.py` replays."""
        raise NotImplementedError
