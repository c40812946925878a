"""Implements the MCP methods of both eras on the SDK's low-level server.

It adds nothing to what tools answer. Transports, tokens and HTTP are not its business: it sees a `Sender`.
"""

import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from serena_central.access.auth import MAX_BODY_BYTES
from serena_central.core import tracing
from serena_central.core.client_channel import connected_to
from serena_central.core.decoding import converted, from_json
from serena_central.core.errors import (
    ClientCannotAnswer,
    ClientInputRequired,
    InvalidArguments,
    ToolRefused,
    UnknownProject,
)
from serena_central.core.late_imports import import_to_stay
from serena_central.core.progress import Listener
from serena_central.mcp_server.call_channel import CallChannel, input_required, missing_capability
from serena_central.mcp_server.completions import completed
from serena_central.mcp_server.conversation import HandshakeConversation
from serena_central.mcp_server.description import DISCOVERY_KEPT_MS, INSTRUCTIONS, LISTS_KEPT_MS, SERVER_NAME
from serena_central.mcp_server.errors import failed_result, protocol_error
from serena_central.mcp_server.plain_methods import PlainMethods
from serena_central.mcp_server.progress import relaying
from serena_central.mcp_server.protocol import LIST_CHANGED, RESOURCE_UPDATED, SUBSCRIBED
from serena_central.mcp_server.resources import OWN_SCHEME
from serena_central.mcp_server.resumption import ResumableTransport
from serena_central.mcp_server.roots import asking_for_roots, folder_in_answers
from serena_central.mcp_server.sender import ClientInfo, sender_of
from serena_central.mcp_server.sse import Message
from serena_central.mcp_server.subscriptions import Wanted
from serena_central.mcp_server.tool_methods import NOTES_LEVEL, call_result, result_of_era, wire
from serena_central.mcp_server.trust_questions import AFTER, TrustQuestions
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.tools.arguments import shown
from serena_central.tools.call import ToolCaller

if TYPE_CHECKING:
    from mcp.server.request_state import RequestStateBoundary

UPSTREAM_SEPARATOR = "__"
"""In names of their prompts."""

CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "server/discover": CacheHint(ttl_ms=DISCOVERY_KEPT_MS),
    "resources/read": CacheHint(ttl_ms=0),
    "tools/list": CacheHint(ttl_ms=LISTS_KEPT_MS["tools/list"]),
    "resources/list": CacheHint(ttl_ms=LISTS_KEPT_MS["resources/list"]),
    "resources/templates/list": CacheHint(ttl_ms=LISTS_KEPT_MS["resources/templates/list"]),
    "prompts/list": CacheHint(ttl_ms=LISTS_KEPT_MS["prompts/list"]),
}

_NOTICES: Mapping[str, Any] = {
    SUBSCRIBED: types.SubscriptionsAcknowledgedNotification,
    RESOURCE_UPDATED: types.ResourceUpdatedNotification,
    LIST_CHANGED.format("tools"): types.ToolListChangedNotification,
    LIST_CHANGED.format("prompts"): types.PromptListChangedNotification,
    LIST_CHANGED.format("resources"): types.ResourceListChangedNotification,
}

Context = ServerRequestContext[Any, Any]


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
        questions: TrustQuestions | None = None,
        secret: bytes | None = None,
        plain: PlainMethods | None = None,
    ) -> None:
        """`plain` is what the direct lane shares with it. Without `questions` no client's person is asked about trust.
        `secret` seals what clients carry for us from one round of a request to the next; without one these don't
        survive a restart."""
        self._sessions = sessions
        self._caller = caller
        self._questions = questions
        plain = plain or PlainMethods(sessions, caller, version)
        self.subscriptions, self.news = plain.subscriptions, plain.news
        self.tools, self.listings, self.direct = plain.tools, plain.listings, plain.direct
        self.server: Server[Any] = Server(
            SERVER_NAME,
            version=version,
            instructions=INSTRUCTIONS,
            cache_hints=CACHE_HINTS,
            # Without this, each call of the modern era would run a whole tools/list to find which parameters travel
            # in headers.
            get_tool_input_schema=self.tools.schema_with_headers,
        )
        self.server.middleware.append(_Seal(secret or secrets.token_bytes()))
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
        for method in self.listings.of:
            requests(method, types.PaginatedRequestParams, self._list)
        requests("resources/read", types.ReadResourceRequestParams, self._read_resource)
        requests("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
        requests("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe)
        requests("prompts/get", types.GetPromptRequestParams, self._get_prompt)
        requests("completion/complete", types.CompleteRequestParams, self._complete)
        requests("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        requests("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)

    async def _border(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Around every message: the session is known from the handshake on, and no error leaves untranslated."""
        try:
            if ctx.method in LISTS_KEPT_MS and (ctx.params or {}).get("cursor"):
                raise MCPError(code=types.INVALID_PARAMS, message="No answer had this cursor: each list is one page.")
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
            return input_required(error)
        except ClientCannotAnswer as error:
            raise protocol_error(error) if error.refusal else missing_capability(error) from error
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

    def _identify(self, context: Context, roots_folder: str | None = None) -> Session:
        meta = _mapping((context.params or {}).get("_meta"))
        return self.tools.identify(sender_of(context.request), _client(context), meta, roots_folder)

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

    async def _list(self, context: Context, _params: types.PaginatedRequestParams) -> HandlerResult:
        listing = self.listings.of[context.method]
        return await listing(self._identify(context), sender_of(context.request).connection)

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> HandlerResult:
        session = self._identify(context)
        theirs, uri = self._caller.upstream_contents, str(params.uri)
        with connected_to(CallChannel(context, params)):
            if theirs is not None and not uri.startswith(OWN_SCHEME):
                found = await theirs.read(session, uri)
                if found is not None:
                    return wire(found)
            return wire(await self.listings.own_resources.read(self._caller, session, uri))

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> HandlerResult:
        session, theirs = self._identify(context), self._caller.upstream_contents
        with connected_to(CallChannel(context, params)):
            if theirs is not None and UPSTREAM_SEPARATOR in params.name:
                found = await theirs.prompt(session, params.name, params.arguments or {})
                if found is not None:
                    return wire(found)
            return wire(await self.listings.own_prompts.get(params.name, params.arguments or {}))

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams) -> HandlerResult:
        session, connection = self._identify(context), sender_of(context.request).connection
        if connection is not None:
            self.news.met(session, connection)
        theirs, uri = self._caller.upstream_contents, str(params.uri)
        if theirs is None or uri.startswith(OWN_SCHEME) or not await theirs.subscribe(session, uri):
            self.news.subscribe(session, uri)
        return {}

    async def _unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> HandlerResult:
        session, theirs, uri = self._identify(context), self._caller.upstream_contents, str(params.uri)
        self.news.unsubscribe(session, uri)
        if theirs is not None and not uri.startswith(OWN_SCHEME):
            await theirs.unsubscribe(session, uri)
        return {}

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> HandlerResult:
        known = (params.context.arguments if params.context else None) or {}
        asked, session, theirs = params.argument, self._identify(context), self._caller.upstream_contents
        if theirs is not None:
            found = await theirs.complete(session, params.model_dump(by_alias=True, mode="json", exclude_none=True))
            if found is not None:
                return wire(found)
        return wire(await completed(self._caller, session, asked.name, asked.value, known))

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
                return await self._answer(context, params, None)
            async with relaying(context.session.report_progress) as on_progress:
                return await self._answer(context, params, on_progress)
        return failed_result(ToolRefused("The client closed the connection of this call."))

    async def _answer(
        self, context: Context, params: types.CallToolRequestParams, on_progress: Listener | None
    ) -> HandlerResult:
        """One call to its result. Every failure is a result, too, so that the model gets to read it."""
        sender, name, arguments = sender_of(context.request), params.name, params.arguments or {}
        try:
            session = self._identify(context, folder_in_answers(params.input_responses))
            if self._questions is not None and params.input_responses is not None:
                await self._questions.take(session, params.input_responses)
            channel = CallChannel(context, params)
            with connected_to(channel):
                answer = await self.tools.answer(
                    session, sender, name, arguments, request_id=context.request_id, on_progress=on_progress
                )
            if self._questions is not None and name == AFTER:
                trusted = await self._questions.trusts_now(session, context.session, context.request_id)
                if isinstance(trusted, types.InputRequiredResult):
                    return trusted
                if trusted:
                    answer = await self._caller.call(session, name, arguments, on_progress=on_progress)
            for note in answer.notes:
                await channel.log(NOTES_LEVEL, note, SERVER_NAME)
        except Exception as error:  # noqa: BLE001 (the border of a call: failed_result logs what is not ours)
            return _without_answer(context, params, error)
        return call_result(answer, self._caller.tool(name))


def _without_answer(context: Context, params: types.CallToolRequestParams, error: Exception) -> HandlerResult:
    """The result of a call that failed, or that needs something of the client first.

    Raises:
        ClientCannotAnswer: in the modern era, which has a protocol error for it.
    """
    if isinstance(error, ClientInputRequired):
        return input_required(error)
    if isinstance(error, UnknownProject):
        offered = context.session.client_capabilities
        return asking_for_roots(
            sender_of(context.request),
            error,
            params.input_responses,
            offered=offered is not None and offered.roots is not None,
        ) or failed_result(error)
    is_modern = sender_of(context.request).connection is None
    if isinstance(error, ClientCannotAnswer) and is_modern and not error.refusal:
        raise error
    return failed_result(error)


def _open(context: Context, result: Mapping[str, Any]) -> None:
    """From now on plain requests of this client don't need the SDK."""
    connection = sender_of(context.request).connection
    if connection is not None:
        connection.info, connection.version = _client(context), result.get("protocolVersion")
        capabilities = _mapping((context.params or {}).get("capabilities"))
        connection.can_be_asked, connection.offers_roots = "elicitation" in capabilities, "roots" in capabilities


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


class _Seal:
    """Middleware: seals what clients carry for us from one round of a request to the next, and opens it again. The
    SDK's own does that; it comes with 6 MB of cryptography, which requests of the handshake era, where questions travel
    beside a request, don't need."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._boundary: RequestStateBoundary | None = None

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        # Whatever claims to be a state is looked at, in any era.
        has_state = ctx.params is not None and ctx.params.get("requestState") is not None
        if sender_of(ctx.request).connection is not None and not has_state:
            return await call_next(ctx)
        if self._boundary is None:
            await anyio.to_thread.run_sync(import_to_stay, "mcp.server.request_state")
            self._boundary = _boundary(self._secret)
        return await self._boundary(ctx, call_next)


def _boundary(secret: bytes) -> "RequestStateBoundary":
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity  # late: see `_Seal`

    security = RequestStateSecurity(keys=[secret], bind_principal=_principal)
    return RequestStateBoundary(security, default_audience=SERVER_NAME)


def _principal(context: Context) -> str:
    return sender_of(context.request).credential
