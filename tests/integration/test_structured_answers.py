"""What clients make of an answer: data arrives as structured content, whole, whatever rule a client reads it by."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era, RawClient, sdk_client, text_of

pytestmark = pytest.mark.anyio

OPTIONAL = ["find_all_symbols", "get_call_hierarchy", "dependency_graph", "replace_in_files", "list_queryable_projects"]

EVERYTHING: list[tuple[str, dict[str, Any]]] = [
    ("find_symbol", {"name_path_pattern": "Cart"}),
    ("find_symbol", {"name_path_pattern": "nowhere"}),
    ("find_symbol", {"name_path_pattern": "Cart", "include_body": True, "max_answer_chars": 60}),
    ("get_symbols_overview", {"relative_path": "cart.py"}),
    ("find_referencing_symbols", {"name_path": "Cart/total", "relative_path": "cart.py"}),
    ("find_all_symbols", {"relative_path": ""}),
    ("get_call_hierarchy", {"name_path": "Cart/total"}),
    ("get_symbol_context", {"name_path": "Cart/total"}),
    ("get_diagnostics_for_file", {"relative_path": "cart.py"}),
    ("dependency_graph", {}),
    ("dependency_graph", {"format": "json"}),
    ("list_dir", {"relative_path": "."}),
    ("find_file", {"file_mask": "*.py"}),
    ("search_for_pattern", {"substring_pattern": "class"}),
    ("read_file", {"relative_path": "number.txt"}),
    ("read_file", {"relative_path": "list.json"}),
    ("read_file", {"relative_path": "string.json"}),
    ("read_file", {"relative_path": "digits.txt"}),
    ("read_file", {"relative_path": "deep.json"}),
    ("read_file", {"relative_path": "object.json"}),
    ("read_file", {"relative_path": "cart.py"}),
    ("list_memories", {}),
    ("list_projects", {}),
    ("list_queryable_projects", {}),
    ("get_current_config", {}),
    ("summarize_changes", {}),
    ("replace_content", {"relative_path": "cart.py", "needle": "1", "repl": "2", "mode": "literal", "dry_run": True}),
    ("replace_in_files", {"needle": "1", "repl": "2", "mode": "literal", "dry_run": True}),
    ("create_text_file", {"relative_path": "new.txt", "content": "new"}),
    ("write_memory", {"memory_name": "x", "content": "y"}),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("answers") / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 1\n\n\nCart().total()\n")
    (root / "number.txt").write_text("42")
    (root / "list.json").write_text("[1, 2]\n")
    (root / "string.json").write_text('"text"')
    (root / "digits.txt").write_text("1" * 5000)
    (root / "deep.json").write_text("[" * 20_000 + "]" * 20_000)
    (root / "object.json").write_text('{"a": 1}')
    (root / "hidden.py").write_text("NOTE = 'a\u202eb\u200b\\u200b'\n")
    return root


@pytest.fixture(scope="module")
async def central(shop: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(shop.parent, {"included_optional_tools": OPTIONAL}) as running:
        yield running


def as_gemini_reads(result: dict[str, Any]) -> Any:
    """Gemini CLI's rule: structured content, else the first text if it is JSON, which has to be an object."""
    if "structuredContent" in result:
        return result["structuredContent"]
    try:
        return json.loads(text_of(result), parse_int=float)
    except RecursionError:
        return []
    except ValueError:
        return {}


@pytest.mark.parametrize(("tool", "arguments"), EVERYTHING, ids=lambda part: str(part)[:60])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_no_client_takes_an_answer_for_data_that_is_no_object(
    central: RunningCentral, shop: Path, era: Era, tool: str, arguments: dict[str, Any]
) -> None:
    async with central.raw(era, x_serena_session="reader", x_serena_project=str(shop)) as client:
        result = await client.call(tool, **arguments)
    assert not result["isError"], text_of(result)
    assert isinstance(as_gemini_reads(result), dict)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_the_official_client_finds_every_answer_fits_its_tools_schema(
    central: RunningCentral, shop: Path, era: Era
) -> None:
    headers = central.authorized | {"x-serena-session": f"sdk-{era}", "x-serena-project": str(shop)}
    async with sdk_client(central.url, era, headers) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool, arguments in EVERYTHING:
            result = await client.call_tool(tool, arguments)  # raises where the answer does not fit
            assert (listed[tool].output_schema is None) or result.structured_content is not None, tool


@pytest.fixture
async def client(central: RunningCentral, shop: Path) -> AsyncGenerator[RawClient]:
    async with central.raw("modern", x_serena_session="me", x_serena_project=str(shop)) as client:
        yield client


async def test_structured_content_holds_all_that_the_text_says(client: RawClient) -> None:
    whole = await client.call("find_symbol", name_path_pattern="Cart")
    assert whole["structuredContent"]["result"] == json.loads(text_of(whole))
    missing = await client.call("find_symbol", name_path_pattern="nowhere")
    assert missing["structuredContent"] == {
        "result": [],
        "notes": missing["content"][1]["text"].splitlines(),
    }
    short = await client.call("find_file", file_mask="*", limit=1)
    sentence, _, data = text_of(short).rpartition("\n")
    assert short["structuredContent"]["notes"][0] == sentence
    assert short["structuredContent"]["result"] == json.loads(data)
    several = await client.call("find_file", file_mask="*.py", project="*")
    assert several["structuredContent"]["result"] == json.loads(text_of(several))


async def test_a_text_is_sent_as_text_alone_unless_it_passes_for_data(client: RawClient) -> None:
    assert "structuredContent" not in await client.call("read_file", relative_path="cart.py")
    assert "structuredContent" not in await client.call("read_file", relative_path="object.json")
    number = await client.call("read_file", relative_path="number.txt")
    assert (text_of(number), number["structuredContent"]) == ("42", {"result": "42"})


async def test_what_is_not_visible_stays_an_escape_in_both_forms(client: RawClient) -> None:
    answer = await client.call("search_for_pattern", substring_pattern="NOTE", relative_path="hidden.py")
    ((line,),) = answer["structuredContent"]["result"].values()
    assert line.endswith(r"NOTE = 'a\u202eb\u200b\u200b'")
    assert r"a\u202eb\u200b\\u200b" in text_of(answer)
