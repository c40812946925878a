"""One live connection to an upstream: negotiation of the era, requests and their answers, what the server asks back.

The client is the MCP SDK's. Results pass as they are on the wire. A server's own requests (sampling, elicitation,
roots) go to the caller on whose behalf it works: over streamable HTTP that is known by the stream on which they come;
over stdio it is known where all open calls are of one session. Else nobody is asked: the tools that were called then
are remembered, and the hub calls them in a process of the session's own from then on.
"""

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import anyio
import mcp_types as types
import msgspec
from anyio.abc import TaskGroup
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED
from pydantic import TypeAdapter, ValidationError

from serena_central.core.errors import (
    InvalidArguments,
    UpstreamCallFailed,
    UpstreamQuestionRefused,
    UpstreamUnavailable,
)
from serena_central.core.periodic import contained
from serena_central.core.quoting import quoted
from serena_central.hub.callers import ONGOING, Caller, Ongoing
from serena_central.hub.catalogs import Catalog
from serena_central.hub.wire_messages import UNREACHABLE

logger = logging.getLogger(__name__)

MAX_PAGES = 100
"""Of one list: a server that never ends its list is believed no longer."""

MAX_ITEMS = 10_000

MAX_LIST_BYTES = 4_000_000
"""Of one list: a catalog holds four of them, and is kept in a file of 16 MB at most (`catalogs.MAX_BYTES`)."""

MAX_TEXT = 100_000
"""Characters of what a server says of itself."""

ROUNDS = 10
"""How often an upstream of the modern era may ask for input before one answer."""

MAX_SENTENCE = 1000
"""Characters of what a server says of a call's progress."""

MOST_QUESTIONS = 32
"""That one call may have open at its client."""

MAX_QUESTION_BYTES = 4_000_000
"""Of one of them."""

MOST_LOGGED = 100
"""Log messages of one call that wait until its client reads. Further ones stand in the wire log alone; one of more than
`MAX_TEXT` is cut."""

PLAIN_S = 10.0
"""For an answer that says nothing."""

CLOSED = "Connection closed"
"""What the SDK says of a connection that has ended. Its code is one that servers use for errors of their own, too."""

FORGOTTEN = "it does not know our session any more"

LEVELS: tuple[str, ...] = get_args(types.LoggingLevel)
"""From the least to the most severe."""

_NOBODY = Caller(session="", root=Path())

HALF_CHARACTER = "a text holds half of a surrogate pair, which is no character: an emoji was cut in two"

_RAW: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class _Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's, which says when it has ended, and tells a slow server of each call that is cancelled."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        super().__init__(incoming, outgoing)
        self.over = anyio.Event()
        self._cancellations: TaskGroup | None = None

    async def run(self, *args: Any, **options: Any) -> None:
        try:
            async with anyio.create_task_group() as self._cancellations:
                await super().run(*args, **options)
                self._cancellations.cancel_scope.cancel()
        finally:
            self.over.set()

    async def notify(self, method: str, *args: Any, **options: Any) -> None:
        """Whoever cancels a call does not wait until its server has heard of it. The SDK would, and give up after five
        seconds: messages go out one by one, and one that takes as long would make the server go on for nobody."""
        send = partial(super().notify, method, *args, **options)
        if method == "notifications/cancelled" and self._cancellations is not None and not self.over.is_set():
            self._cancellations.start_soon(contained, "cancelling a call of an MCP server", send)
        else:
            await send()


Heard = Callable[["Connection", types.ServerNotification], Awaitable[None]]


class Connection:
    """Made by `connected` alone. Safe from any task of the event loop."""

    def __init__(
        self,
        server: str,
        version: str,
        heard: Heard,
        asking: Iterable[str],
        learned: Callable[[set[str]], None],
        masked: Callable[[str], str],
    ) -> None:
        """`learned` is called with the tools that may have asked back, when there are more of them; `masked` leaves
        secrets out of what is kept."""
        self._server = server
        self._version = version
        self._masked = masked
        self._heard = heard
        self._session: ClientSession | None = None
        self._dispatcher: _Dispatcher | None = None
        self._ongoing: list[Ongoing] = []
        self.asking = set(asking)
        """Tools that may have asked back."""
        self._learned = learned
        self.calls = 0
        self._log_level: str | None = None
        """Of a server of the handshake era: the least severe level that any session has wanted."""

    @property
    def session(self) -> ClientSession:
        assert self._session is not None
        return self._session

    @property
    def is_modern(self) -> bool:
        return self.session.discover_result is not None

    def client(self, incoming: Any, outgoing: Any) -> ClientSession:
        """The SDK's session over a wire."""
        self._dispatcher = _Dispatcher(incoming, outgoing)
        self._session = ClientSession(
            dispatcher=self._dispatcher,
            sampling_callback=self._sampling,
            elicitation_callback=self._elicitation,
            list_roots_callback=self._roots,
            message_handler=self._message,
            client_info=types.Implementation(name="serena-central", version=self._version),
        )
        return self._session

    async def closed(self) -> None:
        """Returns when the server, or the way to it, has ended the connection."""
        assert self._dispatcher is not None
        await self._dispatcher.over.wait()

    # --- requests ------------------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Calls a tool; the result as it is on the wire. Cancelling the task cancels the call there, too.

        Raises:
            UpstreamCallFailed: the server answered with an error.
            UpstreamUnavailable: the connection ended before it answered.
        """
        self.calls += 1
        return await self._with_input(
            Ongoing(caller, tool),
            lambda responses, state: types.CallToolRequest(
                params=types.CallToolRequestParams(
                    name=tool,
                    arguments=arguments,
                    input_responses=responses,
                    request_state=state,
                    _meta=self._meta(caller),
                )
            ),
        )

    async def read_resource(self, uri: str, caller: Caller) -> dict[str, Any]:
        """Raises as `call` does."""
        return await self._with_input(
            Ongoing(caller, ""),
            lambda responses, state: types.ReadResourceRequest(
                params=types.ReadResourceRequestParams(
                    uri=uri, input_responses=responses, request_state=state, _meta=self._meta(caller)
                )
            ),
        )

    async def get_prompt(self, name: str, arguments: dict[str, str], caller: Caller) -> dict[str, Any]:
        """Raises as `call` does."""
        return await self._with_input(
            Ongoing(caller, ""),
            lambda responses, state: types.GetPromptRequest(
                params=types.GetPromptRequestParams(
                    name=name,
                    arguments=arguments,
                    input_responses=responses,
                    request_state=state,
                    _meta=self._meta(caller),
                )
            ),
        )

    def _meta(self, caller: Caller) -> Any:
        """In the modern era each request names the level of log messages that its caller wants."""
        return {types.LOG_LEVEL_META_KEY: caller.log_level} if self.is_modern and caller.log_level else None

    async def want_logs(self, level: str | None) -> None:
        """In the handshake era the level is the connection's: the least severe one that any session has wanted. What a
        session gets is decided at its own level.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        offered = self.session.server_capabilities
        if self.is_modern or level is None or offered is None or offered.logging is None:
            return
        known = self._log_level
        if known is not None and LEVELS.index(known) <= LEVELS.index(level):
            return
        self._log_level = level  # no await before: callers that come meanwhile don't send it again
        params = types.SetLevelRequestParams(level=cast("types.LoggingLevel", level))
        try:
            await self._plain(types.SetLevelRequest(params=params))
        except UpstreamCallFailed as error:
            logger.info("%s sends log messages as it likes: %s", self._server, error)

    async def subscribe(self, uri: str) -> None:
        """Raises as `call` does."""
        await self._plain(types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)))

    async def unsubscribe(self, uri: str) -> None:
        """Raises as `call` does."""
        await self._plain(types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri)))

    async def _plain(self, request: Any) -> None:
        """A request on behalf of nobody in particular, with an empty answer. An answer that does not come costs
        `PLAIN_S`. Raises as `_sent` does."""
        try:
            with anyio.fail_after(PLAIN_S):
                await self._sent(request)
        except TimeoutError as error:
            raise UpstreamCallFailed(self._server, f"it did not answer within {PLAIN_S:.0f} s") from error

    async def complete(self, params: dict[str, Any], caller: Caller) -> dict[str, Any]:
        """Raises as `call` does."""
        request = types.CompleteRequest(params=types.CompleteRequestParams.model_validate(params))
        return await self._request(request, Ongoing(caller, ""))

    async def _with_input(
        self, ongoing: Ongoing, request: Callable[[types.InputResponses | None, str | None], Any]
    ) -> dict[str, Any]:
        """A request to its final answer: what an upstream of the modern era needs to know is asked in between."""
        responses: types.InputResponses | None = None
        state: str | None = None
        for _ in range(ROUNDS):
            result = await self._request(request(responses, state), ongoing)
            if result.get("resultType") != "input_required":
                return result
            try:
                needed = types.InputRequiredResult.model_validate(result)
                asked = needed.input_requests or {}
                if len(asked) > MOST_QUESTIONS:
                    raise UpstreamCallFailed(
                        self._server, f"it asked {len(asked)} questions at once, the limit is {MOST_QUESTIONS}"
                    )
                responses = {key: await self._answered(ongoing, one) for key, one in asked.items()} or None
            except (ValidationError, MCPError) as error:
                raise UpstreamCallFailed(self._server, f"it asked for what can't be answered: {error}") from error
            state = needed.request_state
            if responses is None:
                await anyio.sleep(0.1)
        raise UpstreamCallFailed(self._server, f"it asked for input {ROUNDS} times without an answer")

    async def _answered(self, ongoing: Ongoing, request: types.InputRequest) -> types.InputResponse:
        data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        result = await self._ask(ongoing, data["method"], data.get("params") or {})
        kinds: dict[str, Any] = {
            "sampling/createMessage": types.CreateMessageResult,
            "elicitation/create": types.ElicitResult,
            "roots/list": types.ListRootsResult,
        }
        return kinds[data["method"]].model_validate(result)

    async def _request(self, request: Any, ongoing: Ongoing) -> dict[str, Any]:
        await self.want_logs(ongoing.caller.log_level)
        ongoing.forgotten = ongoing.refused = False
        with self._open(ongoing):
            try:
                return await self._sent(request, progress_callback=self._progress_to(ongoing.caller))
            except UpstreamCallFailed as error:
                by_protocol = ongoing.forgotten and len(self._ongoing) == 1
                refused = ongoing.forgotten or ongoing.refused
                error.forgotten = by_protocol or (refused and await self._refuses_all())
                raise

    async def _sent(self, request: Any, **options: Any) -> dict[str, Any]:
        """The answer of one request.

        Raises:
            UpstreamCallFailed, UpstreamUnavailable
            InvalidArguments: it holds what can't be sent. It is not sent in another form: many servers can't read half
                of a surrogate pair that is escaped, answer nothing then, and nobody wants another text than the one
                that was given to be written somewhere.
        """
        send = cast("Any", self.session.send_request)  # its types know no results as they are
        try:
            return cast("dict[str, Any]", await send(request, _RAW, **options))
        except (MCPError, ValidationError) as error:
            raise self._failure(error) from error
        except ValueError as error:
            why = _unsendable(error)
            if why is None:
                raise
            raise InvalidArguments(
                f"The request can't be sent to the MCP server {quoted(self._server)}: {why}."
            ) from error

    def _failure(self, error: MCPError | ValidationError) -> UpstreamUnavailable | UpstreamCallFailed:
        if not isinstance(error, MCPError):
            return UpstreamCallFailed(self._server, "its answer does not follow the protocol")
        if has_closed(error):
            return UpstreamUnavailable(self._server, "its connection ended before it answered")
        said = self._masked(error.error.message)
        return UpstreamCallFailed(self._server, said, code=error.error.code, data=error.error.data)

    @contextmanager
    def _open(self, ongoing: Ongoing) -> Generator[None]:
        self._ongoing.append(ongoing)
        token = ONGOING.set(ongoing)
        try:
            yield
        finally:
            ONGOING.reset(token)
            self._ongoing.remove(ongoing)

    def _progress_to(self, caller: Caller) -> Callable[[float, float | None, str | None], Awaitable[None]]:
        async def progress(value: float, total: float | None, message: str | None) -> None:
            part = value / total if total and total > 0 else None
            said = message or ("" if part is not None else f"{value:g}")
            # A secret that is cut in two would not be found.
            caller.progress(self._masked(said[: 2 * MAX_SENTENCE])[:MAX_SENTENCE], part)

        return progress

    # --- what the server offers ----------------------------------------------------------------------------------

    async def catalog(self) -> Catalog:
        """All its lists.

        Raises:
            UpstreamUnavailable, UpstreamCallFailed
        """
        session = self.session
        offered, info = session.server_capabilities, session.server_info
        catalog = Catalog(
            server=info.name[:MAX_TEXT] if info else "",
            version=info.version[:MAX_TEXT] if info else "",
            protocol=session.protocol_version or "",
            capabilities=offered.model_dump(by_alias=True, mode="json", exclude_none=True) if offered else {},
            asking=sorted(self.asking),
        )
        if offered is None:
            return catalog
        if offered.tools is not None:
            catalog.tools = await self._listed("tools", session.list_tools)
        if offered.resources is not None:
            catalog.resources = await self._listed("resources", session.list_resources)
            catalog.templates = await self._listed("resource_templates", session.list_resource_templates, optional=True)
        if offered.prompts is not None:
            catalog.prompts = await self._listed("prompts", session.list_prompts)
        return catalog

    async def _listed(self, what: str, ask: Callable[..., Awaitable[Any]], *, optional: bool = False) -> list[Any]:
        """All pages of a list, in wire form; of one that is too long, the beginning."""
        found: list[dict[str, Any]] = []
        room = MAX_LIST_BYTES
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await ask(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
            except MCPError as error:
                if optional and not has_closed(error):
                    return found
                said = self._masked(error.error.message)
                raise UpstreamCallFailed(self._server, said, code=error.error.code) from error
            except ValidationError as error:
                where = self._masked(_first_problem(error))
                raise UpstreamCallFailed(
                    self._server, f"its list of {what} does not follow the protocol: {where}"
                ) from error
            items = cast("list[Any]", getattr(page, what))
            for item in items:
                one = item.model_dump(by_alias=True, mode="json", exclude_unset=True)
                room -= len(msgspec.json.encode(one))
                if room < 0 or len(found) == MAX_ITEMS:
                    logger.warning("%s: only the first %d of its %s are offered", self._server, len(found), what)
                    return found
                found.append(one)
            cursor = page.next_cursor
            if cursor is None:
                return found
        logger.warning("%s: only the first %d of its %s are offered", self._server, len(found), what)
        return found

    async def trouble(self) -> str:
        """Why a ping was in vain, else "": any other answer than a refusal of our session is one. A server may refuse
        all pings: whether it knows our session is told then by what it has answered before."""
        offered = self.session.server_capabilities
        why = await self._refused(self._ping)
        if why == FORGOTTEN and offered is not None and offered.tools is not None:
            why = await self._refused(self.session.list_tools)
        return why

    async def _refused(self, ask: Callable[[], Awaitable[object]]) -> str:
        asked = Ongoing(_NOBODY, "")
        token = ONGOING.set(asked)
        try:
            await ask()
        except MCPError as error:
            if has_closed(error) or error.error.data == UNREACHABLE:
                return self._masked(error.error.message)
        except ValidationError:
            pass  # an answer, whatever it says
        finally:
            ONGOING.reset(token)
        return FORGOTTEN if asked.forgotten or asked.refused else ""

    async def _refuses_all(self) -> bool:
        """Whether our session is refused, and not this one request: a new session costs all calls in progress, and
        gateways answer 404 for what they can't pass on."""
        with anyio.move_on_after(PLAIN_S):
            return bool(await self.trouble())
        return False

    async def _ping(self) -> None:
        """Raises MCPError."""
        if self.is_modern:
            await self.session.send_discover(self.session.protocol_version or "")
        else:
            await self.session.send_ping()

    # --- what the server asks ------------------------------------------------------------------------------------

    async def _sampling(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        return await self._asked("sampling/createMessage", params, types.CreateMessageResult)

    async def _elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        return await self._asked("elicitation/create", params, types.ElicitResult)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        return await self._asked("roots/list", None, types.ListRootsResult)

    async def _asked(self, method: str, params: Any, kind: Any) -> Any:
        data: dict[str, Any] = params.model_dump(by_alias=True, mode="json", exclude_none=True) if params else {}
        data.pop("_meta", None)
        try:
            ongoing = self._on_behalf_of(method)
            return kind.model_validate(await self._ask(ongoing, method, data))
        except (UpstreamQuestionRefused, ValidationError) as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(error))

    async def _ask(self, ongoing: Ongoing, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if ongoing.caller.ask is None:
            raise UpstreamQuestionRefused(method, "the client of this call can't be asked")
        if ongoing.questions == MOST_QUESTIONS:
            raise UpstreamQuestionRefused(
                method, f"{MOST_QUESTIONS} questions of this call are open, which is the limit"
            )
        if (size := len(json.dumps(params))) > MAX_QUESTION_BYTES:
            raise UpstreamQuestionRefused(method, f"it has {size} bytes, the limit is {MAX_QUESTION_BYTES}")
        ongoing.questions += 1
        try:
            answer = await ongoing.caller.ask(method, params)
        finally:
            ongoing.questions -= 1
        try:
            msgspec.json.encode(answer)
        except UnicodeEncodeError as error:
            raise UpstreamQuestionRefused(method, f"in the client's answer {HALF_CHARACTER}") from error
        return answer

    def _on_behalf_of(self, method: str) -> Ongoing:
        """The call that a request of the server belongs to.

        Raises:
            UpstreamQuestionRefused: where that is not known.
        """
        known = ONGOING.get()
        if known is not None:
            return known
        if not self._ongoing:
            raise UpstreamQuestionRefused(method, "no call is open that it could belong to")
        self._learn({one.tool for one in self._ongoing if one.tool})
        if len({one.caller.session for one in self._ongoing}) > 1:
            raise UpstreamQuestionRefused(
                method, "calls of several sessions are open, and it is unknown which of them it belongs to; call again"
            )
        return self._ongoing[-1]

    def _learn(self, tools: set[str]) -> None:
        if not tools <= self.asking:
            self.asking |= tools
            self._learned(self.asking)

    async def _message(self, message: Any) -> None:
        if isinstance(message, types.LoggingMessageNotification):
            await self._log(message.params)
        elif not isinstance(message, Exception):
            await self._heard(self, message)

    async def _log(self, message: types.LoggingMessageNotificationParams) -> None:
        """To the caller on whose behalf the server works, where that is known."""
        ongoing = ONGOING.get()
        if ongoing is None and len({one.caller.session for one in self._ongoing}) == 1:
            ongoing = self._ongoing[-1]
        if ongoing is not None and ongoing.caller.log is not None and ongoing.logged < MOST_LOGGED:
            name = f"{self._server}.{message.logger}" if message.logger else self._server
            text = json.dumps(message.data, ensure_ascii=False)
            data = message.data if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
            ongoing.logged += 1
            try:
                await ongoing.caller.log(message.level, data, name)
            finally:
                ongoing.logged -= 1


def has_closed(error: MCPError) -> bool:
    """Whether a request failed because the connection ended, and not because the server says so."""
    return error.error.code == CONNECTION_CLOSED and error.error.message == CLOSED


def _first_problem(error: ValidationError) -> str:
    """Where a message differs from the protocol first, and how; not what stands there."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"[:MAX_TEXT]


def _unsendable(error: ValueError) -> str | None:
    """Why a value can't be sent; None where the error says something else. Pydantic says it by its message alone."""
    said = str(error)
    if "surrogates not allowed" in said:
        return HALF_CHARACTER
    return "it is nested too deeply" if "Maximum serialization depth exceeded" in said else None


@asynccontextmanager
async def connected(connection: Connection, incoming: Any, outgoing: Any) -> AsyncGenerator[Connection]:
    """Runs a session over a wire while the block is open. The era is the handshake's where the server speaks it: it
    knows no other way to ask back in the middle of a call.

    Raises:
        MCPError: the server speaks neither era.
    """
    async with connection.client(incoming, outgoing) as session:
        try:
            await session.initialize()
        except MCPError as error:
            if has_closed(error):
                raise
            await session.discover()
        yield connection
