"""`tools/list` and `tools/call` as both lanes serve them: the SDK's handlers (`adapter.py`) and the direct lane.

Results are in wire form. What a message looks like on the wire, and how its client is asked something meanwhile, is the
lanes' business.

Clients differ in what they show a model of an answer. Most show the text. Codex and Claude Code show
`structuredContent` in its place: it holds all that the text says, and what is not visible as escapes. Gemini CLI makes
structured content of a text that is JSON, and rejects the result if that is not an object. One rule serves all: data is
sent in both forms, and so is a text that a client could take for data.
"""

import json
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from serena_central.core.client_channel import ClientRequest, Level, connected_to
from serena_central.core.decoding import from_json
from serena_central.core.errors import ClientCannotAnswer, ClientInputRequired, UnknownProject
from serena_central.core.progress import Listener
from serena_central.core.quoting import with_escapes_shown
from serena_central.mcp_server.call_channel import CallChannel
from serena_central.mcp_server.description import SERVER_NAME
from serena_central.mcp_server.errors import failed_result
from serena_central.mcp_server.protocol import TOOLS_CHANGED, wire
from serena_central.mcp_server.roots import KEY, METHOD, folder_in_answers
from serena_central.mcp_server.sender import ClientInfo, Sender, identity_of, request_of
from serena_central.mcp_server.subscriptions import Subscriptions
from serena_central.mcp_server.trust_questions import AFTER, TrustQuestions
from serena_central.mcp_server.upstream_news import UpstreamNews
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import Session
from serena_central.tools.answer import Answer
from serena_central.tools.call import ToolCaller, Waiting
from serena_central.tools.catalogue import Tool
from serena_central.tools.upstream_tool import UpstreamTool

_STARTS = frozenset('["-0123456789tfn')
"""First characters of JSON values other than objects."""


NOTES_LEVEL: Level = "notice"

SHOWN_AT_ONCE = frozenset(("find_symbol", "get_symbols_overview", "find_referencing_symbols", "replace_symbol_body"))
"""Tools that Claude Code shows its model from the start. The others are found by its tool search, where that is on: a
model that has not seen these does not look for them, and searches text."""


class CallRequest(NamedTuple):
    """One `tools/call`, in wire form."""

    client: ClientInfo
    name: str
    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]
    request_id: str | int | None


class ToolMethods:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        sessions: SessionManager,
        caller: ToolCaller,
        subscriptions: Subscriptions,
        upstream_news: UpstreamNews,
        questions: TrustQuestions | None,
    ) -> None:
        """Without `questions` no client's person is asked about trust."""
        self._sessions = sessions
        self._questions = questions
        self._caller = caller
        self._subscriptions = subscriptions
        self._upstream_news = upstream_news
        self._shown: WeakKeyDictionary[Session, Hashable] = WeakKeyDictionary()
        """What decided about the tools that a session was shown last: permission rules, and its upstreams."""
        self._in_headers: dict[str, Mapping[str, Any] | None] = {}
        """Schemas of tools by name; None for those without a parameter that travels in a header."""
        self._listings: dict[tuple[bool | str, ...], list[dict[str, Any]]] = {}

    def identify(
        self, sender: Sender, client: ClientInfo, meta: Mapping[str, Any], roots_folder: str | None = None
    ) -> Session:
        """The session that a message belongs to.

        Raises:
            SerenaCentralError: there can be none.
        """
        session = self._sessions.identify(identity_of(sender, client=client, meta=meta, roots_folder=roots_folder))
        if sender.connection is not None:
            sender.connection.session_id = session.id
        return session

    def tool(self, name: str) -> Tool | None:
        """One of our own tools."""
        return self._caller.tool(name)

    def only_reads(self, name: str) -> bool:
        return self._caller.only_reads(name)

    def schema_with_headers(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool that has parameters which travel in headers, too."""
        if name not in self._in_headers:
            tool = self._caller.tool(name)
            if tool is None:
                return None
            self._in_headers[name] = tool.schema if _has_headers(tool.schema) else None
        return self._in_headers[name]

    async def listed(self, session: Session, sender: Sender) -> dict[str, Any]:
        """The result of `tools/list`."""
        tools, plain = self._caller.tools_for(session), self._caller.wants_plain_schemas(session)
        upstreams = await self._caller.upstreams_tools_for(session)
        self._shown[session] = self._deciding(session)
        if upstreams and sender.connection is not None:
            self._upstream_news.met(session, sender.connection)
        shown = (plain, *(tool.name for tool in tools))
        listing = self._listings.get(shown)
        if listing is None:
            listing = self._listings[shown] = [_listed(tool, plain=plain) for tool in tools]
        return wire({"tools": [*listing, *(_listed(tool, plain=plain) for tool in upstreams)]})

    async def want_logs(self, session: Session, sender: Sender, level: Level) -> None:
        """The client wants log messages of this level and those more severe."""
        if sender.connection is not None:
            sender.connection.log_level = level
        theirs = self._caller.upstream_contents
        if theirs is not None:
            await theirs.want_logs(session, level)

    async def called(
        self,
        call: CallRequest,
        channel: CallChannel,
        *,
        on_progress: Listener | None = None,
        waiting: Waiting | None = None,
    ) -> Answer | dict[str, Any]:
        """The answer of one call; a failure is a result in wire form, so that the model gets to read it. `waiting` as
        in `ToolCaller.call`.

        Raises:
            ClientInputRequired: the client has to answer something first, and to send the call again.
            ClientCannotAnswer: in the modern era, which has a protocol error for it.
        """
        sender = channel.sender
        try:
            session = self.identify(sender, call.client, call.meta, folder_in_answers(channel.given))
            if channel.given and self._questions is not None:
                await self._questions.take(session, channel.given)
            with connected_to(channel):
                answer = await self._answer(session, sender, call, on_progress, waiting)
                questions = self._questions if call.name == AFTER else None
                if questions is not None and await questions.trusts_now(session, channel):
                    answer = await self._caller.call(session, call.name, call.arguments, on_progress=on_progress)
            for note in answer.notes:
                await channel.log(NOTES_LEVEL, note, SERVER_NAME)
        except ClientInputRequired:
            raise
        except UnknownProject as error:
            may_ask = error.asked is None and sender.connection is None and KEY not in channel.given
            if may_ask and channel.offers(METHOD):
                raise ClientInputRequired({KEY: ClientRequest(METHOD)}, {}) from error
            return failed_result(error)
        except Exception as error:  # (the border of a call: failed_result logs what is not ours)
            if isinstance(error, ClientCannotAnswer) and sender.connection is None and not error.refusal:
                raise
            return failed_result(error)
        return answer

    async def _answer(
        self,
        session: Session,
        sender: Sender,
        call: CallRequest,
        on_progress: Listener | None,
        waiting: Waiting | None,
    ) -> Answer:
        """A client whose list of tools changes by the call, or has changed since, is told."""
        self._follow_rules(session, sender)
        before = session.modes, session.active_project
        request = request_of(sender, call.request_id)
        answer = await self._caller.call(
            session, call.name, call.arguments, on_progress=on_progress, request=request, waiting=waiting
        )
        if before != (session.modes, session.active_project):
            self._tools_changed(session, sender)
        return answer

    def _tools_changed(self, session: Session, sender: Sender) -> None:
        if sender.connection is not None:
            sender.connection.notify(TOOLS_CHANGED)
        self._subscriptions.list_changed(session, "tools")

    def _follow_rules(self, session: Session, sender: Sender) -> None:
        """Tells a client that its list is another one, if permission rules switch other tools off than when it was
        listed, or its upstreams are others. Seen at its next call: who does not call needs no list."""
        now = self._deciding(session)
        if self._shown.setdefault(session, now) != now:
            self._shown[session] = now
            self._tools_changed(session, sender)

    def _deciding(self, session: Session) -> Hashable:
        return self._caller.switched_off(session), self._caller.upstreams_version(session)


def _has_headers(schema: Mapping[str, Any]) -> bool:
    if b"x-mcp-header" not in msgspec.json.encode(schema):
        return False
    from mcp.shared.inbound import x_mcp_header_map  # none of our own tools comes here

    return bool(x_mcp_header_map(schema))


def _listed(tool: Tool, *, plain: bool) -> dict[str, Any]:
    if isinstance(tool, UpstreamTool):
        return dict(tool.wire)
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.plain_schema if plain else tool.schema,
        **({"outputSchema": tool.output_schema} if tool.output_schema else {}),
        "annotations": {
            "readOnlyHint": tool.read_only,
            **({} if tool.read_only else {"destructiveHint": tool.destructive}),
            **({"idempotentHint": True} if tool.idempotent and not tool.read_only else {}),
            "openWorldHint": tool.open_world,
        },
        **({"_meta": {"anthropic/alwaysLoad": True}} if tool.name in SHOWN_AT_ONCE else {}),
    }


def call_result(answer: Answer, tool: Tool | None, *, raw: bool = False) -> dict[str, Any]:
    """The result in wire form. `structuredContent` fits the tool's `output_schema`; `raw`, for who encodes the result
    by msgspec, leaves the answer's data in it as the JSON that it is."""
    if answer.passed is not None:
        return _passed_on(answer.passed, answer)
    texts: list[Mapping[str, Any]] = [{"type": "text", "text": block} for block in answer.blocks]
    result: dict[str, Any] = {
        "content": texts if answer.content is None else [*answer.content.blocks, *texts[1:]],
        "isError": False,
        "_meta": {"tokenEstimate": answer.token_estimate},
    }
    if answer.content is not None:
        if answer.content.structured is not None:
            result["structuredContent"] = answer.content.structured
    elif answer.data is not None:
        data = with_escapes_shown(answer.data)
        result["structuredContent"] = _structured(msgspec.Raw(data.encode()) if raw else from_json(data), answer.notes)
    elif (tool is not None and tool.answers is not None) or _passes_for_data(answer.blocks[0]):
        result["structuredContent"] = _structured(answer.blocks[0], answer.notes)
    return wire(result)


def _passed_on(result: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """An upstream's result as it came; notes of ours follow its content."""
    notes = [{"type": "text", "text": note} for note in answer.notes]
    return wire({**result, "content": [*(result.get("content") or ()), *notes]})


def _structured(result: Any, notes: list[str]) -> dict[str, Any]:
    return {"result": result, "notes": notes} if notes else {"result": result}


def _passes_for_data(text: str) -> bool:
    """Whether a client that parses the text as JSON gets something other than an object."""
    if text.lstrip("\t\n\r ")[:1] not in _STARTS:
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)  # no limit to the number of digits
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
