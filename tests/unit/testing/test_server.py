"""The server in memory that others test with."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from serena_central.core.errors import SymbolNotFound
from serena_central.testing import Call, ScriptedServer, answered, found, nothing_found, symbol
from serena_central.testing.server import URL, Era
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).parents[3] / "docs" / "testing.md"


def text_of(result: Any) -> str:
    return result.content[0].text


async def test_the_documented_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.S)
    example, start, _ = example.partition("asyncio.run(")
    assert start
    names: dict[str, Any] = {}
    exec(compile(example, str(DOCUMENT), "exec"), names)
    await names["test_the_lines_of_a_class_are_found"]()


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_it_answers_as_scripted_in_turn_and_keeps_the_calls(era: Era) -> None:
    server = ScriptedServer()
    server.answer("find_symbol", nothing_found(), found(symbol("A", "Class", "a.py"), notes=["indexing"]))
    server.answer("read_file", answered("text"), when={"relative_path": "a.py"})
    async with server.client(era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "name_path_pattern" in listed["find_symbol"].input_schema["properties"]
        asked = {"name_path_pattern": "A"}
        assert json.loads(text_of(await client.call_tool("find_symbol", asked))) == []
        for _ in range(2):
            result = await client.call_tool("find_symbol", asked)
            assert json.loads(text_of(result))[0]["name_path"] == "A"
            assert [block.text for block in result.content[1:]] == ["indexing"]
        assert text_of(await client.call_tool("read_file", {"relative_path": "a.py"})) == "text"
    assert server.calls == [*[Call("find_symbol", asked)] * 3, Call("read_file", {"relative_path": "a.py"})]


async def test_failures_are_scripted_and_what_is_not_is_refused() -> None:
    server = ScriptedServer()
    server.answer("find_symbol", SymbolNotFound("A", "shop"))
    async with server.client() as client:
        for tool, arguments, says in (
            ("find_symbol", {"name_path_pattern": "A"}, "shop"),
            ("read_file", {"relative_path": "b.py"}, "scripted no answer for read_file"),
            ("find_symbol", {"wrong": 1}, "wrong"),
            ("find_symbols", {}, "find_symbol"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert says in text_of(result)
    assert [call.tool for call in server.calls] == ["find_symbol", "read_file"]


async def test_any_http_client_reaches_it_in_memory() -> None:
    server = ScriptedServer()
    server.answer("list_projects", answered({"known": []}))
    async with (
        server.running() as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as http,
    ):
        assert json.loads((await RawClient(http, "modern").call("list_projects"))["content"][0]["text"]) == {
            "known": []
        }


def test_a_script_for_no_tool_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no tool 'find_symbols'"):
        ScriptedServer().answer("find_symbols", nothing_found())
    with pytest.raises(ValueError, match="needs an answer"):
        ScriptedServer().answer("find_symbol")
