"""What any MCP server asks its client in the middle of a call, and the answers, through a proxy."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from tests.support.child import environment
from tests.support.proxy import PROXY
from tests.support.serving import serving

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*SEP-2577"),  # the newest era drops what the one before asks in this way
]


class Colour(BaseModel):
    colour: str


def curious() -> MCPServer:
    """A server of the official SDK with a tool for each kind of question."""
    server = MCPServer("curious")

    @server.tool()
    async def person(context: Context[Any, Any]) -> str:
        answer = await context.elicit("Which colour?", Colour)
        return f"{answer.action}: {answer.data.colour if answer.action == 'accept' else ''}"

    @server.tool()
    async def model(context: Context[Any, Any]) -> str:
        question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Why?"))
        answer = await context.session.create_message([question], max_tokens=9, related_request_id=context.request_id)
        assert isinstance(answer.content, types.TextContent)
        return answer.content.text

    @server.tool()
    async def roots(context: Context[Any, Any]) -> str:
        return str((await context.session.list_roots()).roots[0].uri)

    return server


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    app = curious().streamable_http_app()
    async with serving(uvicorn.Server(uvicorn.Config(app, log_level="warning"))) as running:
        yield f"{running}/mcp"


async def test_questions_to_person_and_model_and_for_roots_are_answered_while_calls_wait(
    tmp_path: Path, url: str
) -> None:
    async def person(_context: Any, asked: types.ElicitRequestParams) -> types.ElicitResult:
        assert asked.message == "Which colour?"
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async def model(_context: Any, asked: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="Because.")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ann/shop")])

    command, *arguments = PROXY
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "--url", url], env=environment(tmp_path), cwd=tmp_path
    )
    answers: dict[str, str] = {}
    with anyio.fail_after(60):
        async with Client(
            stdio_client(parameters),
            mode="legacy",
            elicitation_callback=person,
            sampling_callback=model,
            list_roots_callback=roots,
        ) as client:

            async def ask(tool: str) -> None:
                result = await client.call_tool(tool, {})
                assert isinstance(result.content[0], types.TextContent)
                answers[tool] = result.content[0].text

            async with anyio.create_task_group() as tasks:
                for tool in ("person", "model", "roots"):
                    tasks.start_soon(ask, tool)
    assert answers == {"person": "accept: green", "model": "Because.", "roots": "file:///home/ann/shop"}
