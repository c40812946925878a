"""Implements the MCP methods of both eras on the SDK's low-level server.

It adds nothing to what tools answer. Transports, tokens and HTTP are not its business: it sees a `Sender`.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import anyio.abc
import mcp_types as types
import msgspec
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from serena_central.access.auth import MAX_BODY_BYTES
from serena_central.core import tracing
from serena_central.core.client_channel import connected_to
from serena_central.core.decoding import converted, from_json
from serena_central.core.errors import ClientInputRequired, InvalidArguments, ToolRefused
from serena_central.core.progress import Listener
from serena_central.mcp_server.call_channel import input_required
from serena_central.mcp_server.conversation import HandshakeConversation
from serena_central.mcp_server.description import INSTRUCTIONS, KEPT_MS, SERVER_NAME
from serena_central.mcp_server.errors import RequestRefused, failed_result, protocol_error
from serena_central.mcp_server.plain_methods import PlainMethods
from serena_central.mcp_server.progress import relaying
from serena_central.mcp_server.protocol import (
    LIST_CHANGED,
    RESOURCE_UPDATED,
    SUBSCRIBED,
    result_of_era,
    wire,
)
from serena_central.mcp_server.request_state import identity_of_request
from serena_central.mcp_server.resumption import ResumableTransport
from serena_central.mcp_server.sdk_channel import Context, SdkChannel
from serena_central.mcp_server.sender import ClientInfo, sender_of
from serena_central.mcp_server.sse import Message
from serena_central.mcp_server.subscriptions import Wanted
from serena_central.mcp_server.tool_methods import CallRequest, call_result
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.tools.answer import Answer
from serena_central.tools.arguments import shown
from serena_central.tools.call import ToolCaller

CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    method: CacheHint(ttl_ms=kept_ms) for method, kept_ms in KEPT_MS.items()
}

_NOTICES: Mapping[str, Any] = {
    SUBSCRIBED: types.SubscriptionsAcknowledgedNotification,
    RESOURCE_UPDATED: types.ResourceUpdatedNotification,
    LIST_CHANGED.format("tools"): types.ToolListChangedNotification,
    LIST_CHANGED.format("prompts"): types.PromptListChangedNotification,
    LIST_CHANGED.format("resources"): types.ResourceListChangedNotification,
}

_PARAMS: Mapping[str, type[types.RequestParams]] = {
    "resources/read": types.ReadResourceRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "completion/complete": types.CompleteRequestParams,
}
"""Of methods that are no lists."""

MAY_ASK = frozenset(("tools/call", "prompts/get", "resources/read"))
"""Methods that may be answered by questions, and sent again with a state."""

_CHANGES = NotificationOptions(tools_changed=True, resources_changed=True)
"""Capabilities announced to clients of the handshake era: switching modes or projects changes the listed tools, writing
memories the listed resources."""


class Adapter:
    """Builds `server`, the SDK's server with all our handlers."""

    def __init__(
        self,
        *,
        sessions: SessionManager,
        caller: ToolCaller,
        version: str,
        plain: PlainMethods | None = None,
    ) -> None:
        """`plain` is what the direct lane shares with it."""
        self._sessions = sessions
        self._caller = caller
        plain = plain or PlainMethods(sessions, caller, version)
        self.subscriptions, self.news = plain.subscriptions, plain.news
        self.tools, self.contents, self.direct = plain.tools, plain.contents, plain.direct
        self._states = plain.states
        self.server: Server[Any] = Server(
            SERVER_NAME,
            version=version,
            instructions=INSTRUCTIONS,
            cache_hints=CACHE_HINTS,
            # Without this, each call of the modern era would run a whole tools/list to find which parameters travel
            # in headers.
            get_tool_input_schema=self.tools.schema_with_headers,
        )
        self.server.middleware.append(self._border)
        if tracing.enabled():
            self.server.middleware.insert(0, _continue_trace)  # before the SDK opens its span
        self._register()
        self.modern = StreamableHTTPSessionManager(
            # `json_response` stays off: an answer that can't become a stream loses progress and cancellation.
            self.server,
            json_response=False,
            max_request_body_size=MAX_BODY_BYTES,
        )
        """Serves the modern era over HTTP, while its `run()` does."""

    async def drive(
        self, conversation: HandshakeConversation, *, task_status: anyio.abc.TaskStatus[ResumableTransport]
    ) -> None:
        """Carries messages between a transport for this conversation and the handlers until the transport ends."""
        transport = ResumableTransport(conversation.id, conversation.streams.log)
        async with transport.connect() as (incoming, outgoing):
            task_status.started(transport)
            await serve_loop(
                self.server,
                incoming,
                outgoing,
                lifespan_state={},
                session_id=conversation.id,
                init_options=self.server.create_initialization_options(_CHANGES),
            )

    def _register(self) -> None:
        """The table of methods. Lists that are empty here are asked for by clients that don't look at capabilities."""
        requests = self.server.add_request_handler
        requests("server/discover", types.RequestParams, self._discover)
        requests("tools/list", types.PaginatedRequestParams, self._list_tools)
        requests("tools/call", types.CallToolRequestParams, self._call_tool)
        for method in self.contents.of:
            requests(method, _PARAMS.get(method, types.PaginatedRequestParams), self._content)
        requests("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        requests("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)

    async def _border(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Around every message: the session is known from the handshake on, and no error leaves untranslated."""
        try:
            if ctx.method.endswith("/list") and (ctx.params or {}).get("cursor"):
                raise RequestRefused("No answer had this cursor: each list is one page.")
            if ctx.method == "tools/call" and not isinstance((ctx.params or {}).get("arguments"), Mapping | None):
                try:
                    ctx = self._with_arguments(ctx)
                except InvalidArguments as error:  # for the model to read: a protocol error often does not reach it
                    return result_of_era(failed_result(error), ctx.protocol_version)
            result = await call_next(ctx)
            if ctx.method == "initialize":
                self._identify(ctx)
                _open(ctx, _mapping(result))
        except ClientInputRequired as error:
            return input_required(error, self._states, _request(ctx))
        except Exception as error:
            raise protocol_error(error) from error
        return result

    def _with_arguments(self, ctx: Context) -> Context:
        """Arguments that a client sent as the text of an object are that object.

        Raises:
            InvalidArguments
        """
        params = dict(ctx.params or {})
        try:
            params["arguments"] = from_json(params["arguments"], dict[str, Any])
        except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
            tool = self._caller.tool(str(params.get("name")))
            problem = f"arguments must be an object, not {shown(params['arguments'])}."
            raise tool.wrong_arguments(problem) if tool else InvalidArguments(problem) from error
        return replace(ctx, params=params)

    def _identify(self, context: Context) -> Session:
        meta = _mapping((context.params or {}).get("_meta"))
        return self.tools.identify(sender_of(context.request), _client(context), meta)

    async def _discover(self, context: Context, _params: types.RequestParams) -> HandlerResult:
        capabilities = self.server.get_capabilities(protocol_version=context.protocol_version)
        if capabilities.prompts is not None:
            capabilities.prompts.list_changed = False  # the SDK assumes that all lists of a server with streams change
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=capabilities,
            instructions=self.server.instructions,
        )

    async def _listen(self, context: Context, params: types.SubscriptionsListenRequestParams) -> HandlerResult:
        asked = params.notifications.model_dump(by_alias=True, exclude_none=True)
        session, stream = self._identify(context), cast("types.RequestId", context.request_id)
        with self._sessions.held(session):
            async with self.subscriptions.opened(session, stream, converted(asked, Wanted)) as subscription:
                said: Message | None = subscription.acknowledgement
                while said is not None:
                    notice = _NOTICES[said["method"]].model_validate(
                        {"method": said["method"], "params": said["params"]}
                    )
                    await context.session.send_notification(notice, related_request_id=stream)
                    said = await subscription.next()
        return wire({"_meta": subscription.meta})

    async def _content(self, context: Context, _params: types.RequestParams) -> HandlerResult:
        method, session = self.contents.of[context.method], self._identify(context)
        with connected_to(self._channel(context)):
            return await method(session, sender_of(context.request).connection, context.params or {})

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> HandlerResult:
        await self.tools.want_logs(self._identify(context), sender_of(context.request), params.level)
        return {}

    async def _list_tools(self, context: Context, _params: types.PaginatedRequestParams) -> HandlerResult:
        return await self.tools.listed(self._identify(context), sender_of(context.request))

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> HandlerResult:
        sender = sender_of(context.request)
        # In the modern era the SDK cancels the handler itself when the client hangs up. In the handshake era a call
        # that changes something goes on: the client may send it again, and gets the answer of the first.
        reads = self._caller.only_reads(params.name)
        with sender.while_connected(str(context.request_id)) if reads else nullcontext():
            if progress_token_from_params(context.params) is None:
                return await self._called(context, params, None)
            async with relaying(context.session.report_progress) as on_progress:
                return await self._called(context, params, on_progress)
        return failed_result(ToolRefused("The client closed the connection of this call."))

    async def _called(
        self, context: Context, params: types.CallToolRequestParams, on_progress: Listener | None
    ) -> HandlerResult:
        meta = _mapping((context.params or {}).get("_meta"))
        call = CallRequest(_client(context), params.name, params.arguments or {}, meta, context.request_id)
        answer = await self.tools.called(call, self._channel(context), on_progress=on_progress)
        return call_result(answer, self._caller.tool(params.name)) if isinstance(answer, Answer) else answer

    def _channel(self, context: Context) -> SdkChannel:
        again = (context.params or {}) if context.method in MAY_ASK else {}
        state = again.get("requestState")
        earlier = {} if state is None else self._states.opened(state, _request(context))
        return SdkChannel(context, again.get("inputResponses"), earlier)


def _request(context: Context) -> bytes:
    return identity_of_request(context.method, context.params or {}, sender_of(context.request).credential)


def _open(context: Context, result: Mapping[str, Any]) -> None:
    """From now on plain requests of this client don't need the SDK."""
    connection = sender_of(context.request).connection
    if connection is not None:
        connection.info, connection.version = _client(context), result.get("protocolVersion")
        connection.offered = _mapping((context.params or {}).get("capabilities"))


def _client(context: Context) -> ClientInfo:
    if context.method == "initialize":  # the SDK commits what the client said only after this message
        info = _mapping((context.params or {}).get("clientInfo"))
        return ClientInfo(str(info.get("name", "")), str(info.get("version", "")))
    said = context.session.client_params
    return ClientInfo(said.client_info.name, said.client_info.version) if said else ClientInfo()


async def _continue_trace(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Takes the caller's trace over from the transport; the SDK looks into `_meta` alone, which wins."""
    with tracing.continuing(sender_of(ctx.request).trace):
        return await call_next(ctx)


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
