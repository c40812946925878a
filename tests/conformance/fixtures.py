"""What the official suite asks a server under test to have, on this server's own catalogue, adapter and transport.

Names, texts and shapes are the suite's: each scenario describes the fixture that it needs.
"""

import base64
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import fields
from typing import Annotated, Any

import anyio
from msgspec import Meta
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serena_central.core.client_channel import ClientRequest, Level, client_channel
from serena_central.core.errors import ToolRefused
from serena_central.core.progress import report
from serena_central.mcp_server.direct_reply import STREAM_AFTER_S
from serena_central.mcp_server.errors import RequestRefused
from serena_central.mcp_server.prompts import WorkflowPrompts
from serena_central.mcp_server.resources import ProjectResources
from serena_central.sessions.session import Session
from serena_central.tools.answer import Content
from serena_central.tools.call import ToolCaller
from serena_central.tools.catalogue import Catalogue, Tool, tool, tool_of, tools_in
from serena_central.tools.context import ToolCall
from serena_central.tools.families import CATALOGUE

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""One pixel."""

WAV = base64.b64encode(
    b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data" + struct.pack("<I", 2) + b"\x80\x80"
).decode()  # fmt: skip
"""Two samples of silence."""

IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}

PAUSE_S = 1.0
"""Between two reports of progress. The server sends at most five a second, and of those that are made while it is slow
to send one, the last alone."""


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def embedded(uri: str, media_type: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": said}}


def form(message: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> ClientRequest:
    schema = {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}
    return ClientRequest("elicitation/create", {"message": message, "requestedSchema": schema})


def asked_of_a_model(prompt: str, most: int = 100) -> ClientRequest:
    message = {"role": "user", "content": text(prompt)}
    return ClientRequest("sampling/createMessage", {"messages": [message], "maxTokens": most})


ROOTS = ClientRequest("roots/list")
NAME = form("What is your name?", {"name": {"type": "string"}}, ["name"])
STRING: Mapping[str, Any] = {"type": "string"}


@tool("Text")
async def test_simple_text(call: ToolCall) -> str:
    """Answers with a text."""
    return "This is a simple text response for testing."


@tool("Image")
async def test_image_content(call: ToolCall) -> Content:
    """Answers with an image."""
    return Content([IMAGE])


@tool("Audio")
async def test_audio_content(call: ToolCall) -> Content:
    """Answers with a sound."""
    return Content([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])


@tool("Embedded resource")
async def test_embedded_resource(call: ToolCall) -> Content:
    """Answers with a resource."""
    return Content([embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")])


@tool("Several kinds of content")
async def test_multiple_content_types(call: ToolCall) -> Content:
    """Answers with a text, an image and a resource."""
    resource = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return Content([text("Multiple content types test:"), IMAGE, resource])


@tool("Log messages")
async def test_tool_with_logging(call: ToolCall) -> str:
    """Logs three messages."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await client_channel().log("info", said, "conformance")
        await anyio.sleep(0.05)
    return "Logged three messages."


@tool("Log messages of several levels")
async def test_logging_tool(call: ToolCall) -> str:
    """Logs a message of each level."""
    levels: tuple[Level, ...] = ("debug", "info", "warning", "error")
    for level in levels:
        await client_channel().log(level, f"A message of level {level}", "conformance")
    return "Logged."


@tool("An error")
async def test_error_handling(call: ToolCall) -> str:
    """Fails."""
    raise ToolRefused("This tool intentionally returns an error for testing")


@tool("Progress")
async def test_tool_with_progress(call: ToolCall) -> str:
    """Reports progress."""
    for part in (0.0, 0.5, 1.0):
        report(f"{part:.0%}", part)
        await anyio.sleep(PAUSE_S)
    return "Done."


@tool("Sampling")
async def test_sampling(call: ToolCall, prompt: Annotated[str, Meta(description="The prompt")]) -> str:
    """Asks the client's model."""
    answers = await client_channel().ask({"sampled": asked_of_a_model(prompt)})
    return f"LLM response: {answers['sampled']['content']['text']}"


@tool("Elicitation")
async def test_elicitation(call: ToolCall, message: Annotated[str, Meta(description="The question")]) -> str:
    """Asks the user."""
    parts = {
        "username": STRING | {"description": "User's response"},
        "email": STRING | {"description": "User's email address"},
    }
    answers = await client_channel().ask({"user": form(message, parts, [*parts])})
    return f"User response: {_elicited(answers['user'])}"


@tool("Elicitation with defaults")
async def test_elicitation_sep1034_defaults(call: ToolCall) -> str:
    """Asks the user for values that have defaults."""
    parts = {
        "name": STRING | {"default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answers = await client_channel().ask({"user": form("Please review the values", parts)})
    return f"Elicitation completed: {_elicited(answers['user'])}"


@tool("Elicitation with choices")
async def test_elicitation_sep1330_enums(call: ToolCall) -> str:
    """Asks the user to choose, in each form that there is."""
    options = ["option1", "option2", "option3"]
    parts = {
        "untitledSingle": STRING | {"enum": options},
        "titledSingle": STRING | {"oneOf": _titled("value", "Option")},
        "legacyEnum": STRING
        | {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": STRING | {"enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("value", "Choice")}},
    }
    answers = await client_channel().ask({"user": form("Please choose", parts)})
    return f"Elicitation completed: {_elicited(answers['user'])}"


@tool("Input: elicitation")
async def test_input_required_result_elicitation(call: ToolCall) -> str:
    """Needs a name."""
    answers = await client_channel().ask({"user_name": NAME})
    return f"Hello, {answers['user_name']['content']['name']}!"


@tool("Elicitation on a stream")
async def test_streaming_elicitation(call: ToolCall) -> str:
    """Needs a name."""
    return f"Hello, {(await client_channel().ask({'user_name': NAME}))['user_name'].get('content')}!"


@tool("Input: sampling")
async def test_input_required_result_sampling(call: ToolCall) -> str:
    """Needs the client's model."""
    answers = await client_channel().ask({"capital_question": asked_of_a_model("What is the capital of France?")})
    return f"The model said: {answers['capital_question']['content']['text']}"


@tool("Input: roots")
async def test_input_required_result_list_roots(call: ToolCall) -> str:
    """Needs the client's roots."""
    answers = await client_channel().ask({"client_roots": ROOTS})
    return f"Roots: {', '.join(root['uri'] for root in answers['client_roots']['roots'])}"


@tool("Input: state")
async def test_input_required_result_request_state(call: ToolCall) -> str:
    """Needs a confirmation."""
    await client_channel().ask({"confirm": form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])})
    return "state-ok"


@tool("Input: several requests")
async def test_input_required_result_multiple_inputs(call: ToolCall) -> str:
    """Needs three answers at once."""
    asked = {"user_name": NAME, "greeting": asked_of_a_model("Generate a greeting", 50), "client_roots": ROOTS}
    answers = await client_channel().ask(asked)
    return f"Got {', '.join(answers)}."


@tool("Input: several rounds")
async def test_input_required_result_multi_round(call: ToolCall) -> str:
    """Needs a name, and then a color."""
    first = await client_channel().ask({"step1": form("Step 1: What is your name?", {"name": STRING}, ["name"])})
    color = form("Step 2: What is your favorite color?", {"color": STRING}, ["color"])
    second = await client_channel().ask({"step2": color})
    return f"{first['step1']['content']['name']} likes {second['step2']['content']['color']}."


@tool("Input: sealed state")
async def test_input_required_result_tampered_state(call: ToolCall) -> str:
    """Needs a confirmation."""
    await client_channel().ask({"confirm": form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])})
    return "state-ok"


@tool("Input: what the client offers")
async def test_input_required_result_capabilities(call: ToolCall) -> str:
    """Asks only what the client can answer."""
    asked = {"user_name": NAME, "greeting": asked_of_a_model("Generate a greeting", 50)}
    client = client_channel()
    answers = await client.ask({name: request for name, request in asked.items() if client.offers(request.method)})
    return f"Got {', '.join(answers)}."


@tool("A capability that is not declared")
async def test_missing_capability(call: ToolCall) -> str:
    """Needs the client's model."""
    return str(await client_channel().ask({"sampled": asked_of_a_model("Hello")}))


@tool("Other tools", reads=False)
async def test_trigger_tool_change(call: ToolCall) -> str:
    """Changes which tools are listed."""
    session = call.session
    call.services.sessions.switch_modes(session, ["editing"] if session.modes != ("editing",) else ["planning"])
    return "The tools are others now."


@tool("Parameters in headers")
async def test_custom_headers(
    call: ToolCall,
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Takes a parameter that travels in a header, too."""
    return f"The region is {region}."


@tool("JSON Schema")
async def json_schema_2020_12_tool(call: ToolCall) -> str:
    """Tool with JSON Schema 2020-12 features"""
    return "Listed for its schema."


def _elicited(answer: Mapping[str, Any]) -> str:
    return f"action={answer['action']}, content={answer.get('content', {})}"


def _titled(value: str, title: str) -> list[dict[str, str]]:
    numbers = enumerate(("First", "Second", "Third"), start=1)
    return [{"const": f"{value}{number}", "title": f"{name} {title}"} for number, name in numbers]


class SchemaTool(Tool):
    """A tool with a schema that is not made of its parameters."""

    @property
    def schema(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return SCHEMA


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def catalogue() -> Catalogue:
    """The server's own tools and the suite's."""
    ours = [one for one in tools_in(sys.modules[__name__]) if one.name != json_schema_2020_12_tool.__name__]
    found = tool_of(json_schema_2020_12_tool)
    assert found is not None
    schema_tool = SchemaTool(**{field.name: getattr(found, field.name) for field in fields(found)})
    return Catalogue([*CATALOGUE, *ours, schema_tool])


cut: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("cut")
"""Ends the response to the request that is being answered."""


class Cut:
    """Stands for a proxy between client and server: a tool can have it end the response to its own call (`cut`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_cut = False

        async def end() -> None:
            nonlocal is_cut
            is_cut = True
            await send({"type": "http.response.body", "body": b""})

        async def pass_on(message: Message) -> None:
            if not is_cut:
                await send(message)

        token = cut.set(end)
        try:
            await self._app(scope, receive, pass_on)
        finally:
            cut.reset(token)


@tool("A stream that is closed")
async def test_reconnection(call: ToolCall) -> str:
    """The stream of its answer is closed while it runs, once it has begun; the client comes back for it."""
    await anyio.sleep(STREAM_AFTER_S + PAUSE_S)
    await cut.get()()
    await anyio.sleep(PAUSE_S)
    return "The stream was closed and taken up again."


class Resources(ProjectResources):
    """The server's own and the suite's."""

    templates = (
        *ProjectResources.templates,
        {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
    )

    async def listed(self, caller: ToolCaller, session: Session) -> list[dict[str, Any]]:
        static = [
            {
                "uri": f"test://static-{kind}",
                "name": f"Static {kind}",
                "description": "Never changes",
                "mimeType": media,
            }
            for kind, media in (("text", "text/plain"), ("binary", "image/png"))
        ]
        return [*await super().listed(caller, session), *static]

    async def read(self, caller: ToolCaller, session: Session, uri: str) -> dict[str, Any]:
        number = uri.removeprefix("test://template/").removesuffix("/data")
        data = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
        static = "This is the content of the static text resource."
        match uri:
            case "test://static-text":
                found = {"mimeType": "text/plain", "text": static}
            case "test://static-binary":
                found = {"mimeType": "image/png", "blob": PNG}
            case _ if uri == f"test://template/{number}/data":
                found = {"mimeType": "application/json", "text": data}
            case _:
                return await super().read(caller, session, uri)
        return {"contents": [{"uri": uri, **found}]}


class Prompts(WorkflowPrompts):
    """The server's own and the suite's."""

    def listed(self) -> list[dict[str, Any]]:
        return [*super().listed(), *({"name": name, **prompt} for name, prompt in PROMPTS.items())]

    async def get(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        if name not in PROMPTS:
            return await super().get(name, arguments)
        for argument in PROMPTS[name].get("arguments", ()):
            if argument["name"] not in arguments:
                raise RequestRefused(f"{argument['name']} is required.")
        return {"messages": [{"role": "user", "content": one} for one in await _prompt(name, arguments)]}


PROMPTS: Mapping[str, dict[str, Any]] = {
    "test_simple_prompt": {"description": "A text"},
    "test_prompt_with_arguments": {
        "description": "A text of two arguments",
        "arguments": [
            {"name": "arg1", "description": "First test argument", "required": True},
            {"name": "arg2", "description": "Second test argument", "required": True},
        ],
    },
    "test_prompt_with_embedded_resource": {
        "description": "A resource",
        "arguments": [{"name": "resourceUri", "description": "URI of the resource to embed", "required": True}],
    },
    "test_prompt_with_image": {"description": "An image"},
    "test_input_required_result_prompt": {"description": "Needs the user's answer"},
}


async def _prompt(name: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [IMAGE, text("Please analyze the image above.")]
        case _:
            question = form("What context should the prompt use?", {"context": STRING}, ["context"])
            answers = await client_channel().ask({"user_context": question})
            return [text(f"Context: {answers['user_context'].get('content')}")]
