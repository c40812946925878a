"""Arguments of a wrong shape, for every tool: the model reads all that is wrong, and what is allowed."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.tools.catalogue import Tool
from serena_central.tools.families import CATALOGUE
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era, RawClient, text_of

pytestmark = pytest.mark.anyio

TOOLS = [tool for tool in CATALOGUE if tool.needs is None]


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    optional = [tool.name for tool in TOOLS if tool.shown != "always"]
    async with running_central(tmp_path_factory.mktemp("odd"), {"included_optional_tools": optional}) as running:
        yield running


@pytest.fixture
async def client(central: RunningCentral, tmp_path: Path) -> AsyncGenerator[RawClient]:
    async with central.raw("modern", x_serena_session="odd", x_serena_project=str(tmp_path)) as client:
        yield client


def wrong(part: dict[str, Any]) -> tuple[Any, str]:
    """A value that a parameter does not take, and what must be said of it."""
    choices = [one for one in part.get("anyOf", [part]) if one != {"type": "null"}]
    enum = next((one["enum"] for one in choices if "enum" in one), None)
    if enum:
        return "no-such-choice", f'must be one of {", ".join(one for one in enum if one is not None)}, not "no-such-'
    return (5, "not 5.") if part.get("type") == "object" else ({"a": 1}, 'not {"a":1}.')


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_every_wrong_argument_is_named_with_what_is_allowed(client: RawClient, tool: Tool) -> None:
    schema = tool.schema
    given = {name: wrong(part) for name, part in schema["properties"].items()}
    result = await client.call(tool.name, **{name: value for name, (value, _) in given.items()})
    if not given:
        assert not result["isError"]
        return
    assert result["isError"]
    for name, (_, said) in given.items():
        assert f"{name} must be " in text_of(result)
        assert said in text_of(result)
    required = schema.get("required", [])
    missing = await client.call(tool.name)
    for name in required:
        assert f"{name} is required" in text_of(missing)
    if required:
        assert missing["isError"]


async def test_a_parameter_that_is_none_is_answered_with_the_one_that_was_meant(client: RawClient) -> None:
    said = text_of(await client.call("find_symbol", name_path_patern="Cart"))
    assert "no parameter 'name_path_patern'. Did you mean name_path_pattern?" in said
    assert "Parameters: name_path_pattern, depth" in said


@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_arguments_that_are_no_object_are_a_tool_s_error(
    central: RunningCentral, era: Era, tmp_path: Path
) -> None:
    (tmp_path / "cart.py").write_text("class Cart: ...\n")
    async with central.raw(era, x_serena_session=f"shape-{era}", x_serena_project=str(tmp_path)) as client:
        for odd, shown in (([], "[]"), (3, "3"), ("Cart", '"Cart"'), (True, "true")):
            result = (await client.ask("tools/call", {"name": "find_symbol", "arguments": odd}))["result"]
            assert result["isError"]
            assert f"find_symbol: arguments must be an object, not {shown}." in text_of(result)
        missing = (await client.ask("tools/call", {"name": "find_symbol", "arguments": None}))["result"]
        assert "name_path_pattern is required" in text_of(missing)
        said = {
            "name": "find_symbol",
            "arguments": json.dumps({"name_path_pattern": "Cart", "project": str(tmp_path)}),
        }
        assert "cart.py" in text_of((await client.ask("tools/call", said))["result"])
        wrong = (await client.send("prompts/get", {"name": "x", "arguments": 3})).text
        assert "Invalid params: " in wrong
        assert "arguments: Input should be a valid dictionary" in wrong


EMPTY: dict[str, dict[str, Any]] = {
    "find_symbol": {"name_path_pattern": "Crat"},
    "find_all_symbols": {"relative_path": "blank.py"},
    "get_symbols_overview": {"relative_path": "blank.py"},
    "find_implementations": {"name_path": "Cart"},
    "find_referencing_symbols": {"name_path": "Cart"},
    "get_diagnostics_for_file": {"relative_path": "cart.py"},
    "list_dir": {"relative_path": "hollow"},
    "find_file": {"file_mask": "cart"},
    "search_for_pattern": {"substring_pattern": "nothing like it"},
    "list_memories": {},
    "get_call_hierarchy": {"name_path": "Cart/total"},
    "get_type_hierarchy": {"name_path": "Cart"},
}


async def test_an_answer_that_holds_nothing_says_what_to_do(client: RawClient, tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    (tmp_path / "blank.py").write_text("")
    (tmp_path / "hollow").mkdir()
    for tool, arguments in EMPTY.items():
        result = await client.call(tool, project=str(tmp_path), **arguments)
        assert not result["isError"], text_of(result)
        assert result["structuredContent"].get("notes"), f"{tool}: {text_of(result)}"
    (near,) = (await client.call("find_symbol", name_path_pattern="Crat"))["structuredContent"]["notes"]
    assert "Close matches: 'Cart' (cart.py)." in near
    assert "substring_matching=true" in near
    shown = await client.call("find_symbol", name_path_pattern="Cart")
    assert "notes" not in shown["structuredContent"]
