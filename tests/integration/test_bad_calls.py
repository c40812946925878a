"""Calls that can't be right: each gets a tool error that says what to do, and the server answers the next one."""

import json
import os
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.projects import project as project_module
from serena_central.tools import symbols
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import Era, RawClient, messages_in, text_of

pytestmark = pytest.mark.anyio

OPTIONAL = [
    "get_diagnostics_for_symbol",
    "find_all_symbols",
    "get_call_hierarchy",
    "get_type_hierarchy",
    "remove_project",
    "restart_language_server",
]

EVIL_REGEX = "(a|aa)+$"
EVIL_TEXT = "a" * 60 + "b"


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the project, and what the project must not reach."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def project(outside: Path) -> Path:
    root = outside / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    (root / "evil.py").write_text(f"text = '{EVIL_TEXT}'\n")
    (root / "binary.py").write_bytes(bytes(range(256)) * 8)
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe.py")
    (outside / "secret.py").write_text("class Secret: ...\n")
    (outside / "secrets").mkdir()
    (outside / "secrets" / "key.py").write_text("class Key: ...\n")
    (root / "link.py").symlink_to(outside / "secret.py")
    (root / "linked").symlink_to(outside / "secrets")
    (root / "loop.py").symlink_to(root / "loop.py")
    (root / "dangling.py").symlink_to(root / "nowhere.py")
    return root


@pytest.fixture(scope="module")
async def central(outside: Path) -> AsyncGenerator[RunningCentral]:
    """One server for all: no wrong call may leave a trace in it."""
    async with running_central(outside, {"included_optional_tools": OPTIONAL}, patience_s=600) as running:
        yield running


@pytest.fixture
async def client(central: RunningCentral, project: Path) -> AsyncGenerator[RawClient]:
    async with central.raw("modern", x_serena_session="clumsy") as client:
        await client.call("activate_project", project=str(project))
        yield client


async def refused(client: RawClient, tool: str, **arguments: Any) -> str:
    """The text of the error that the call must end with; the server answers afterwards."""
    with anyio.fail_after(60):
        result = await client.call(tool, **arguments)
    assert result["isError"], f"{tool} {arguments}: {text_of(result)}"
    assert "Traceback" not in text_of(result)
    assert "internal" not in text_of(result).lower(), text_of(result)
    still = await client.call("read_file", relative_path="cart.py")
    assert "class Cart" in text_of(still)
    return text_of(result)


WITH_A_PATH: dict[str, dict[str, Any]] = {
    "get_symbols_overview": {},
    "find_symbol": {"name_path_pattern": "Secret"},
    "find_referencing_symbols": {"name_path": "Secret"},
    "find_implementations": {"name_path": "Secret"},
    "find_declaration": {"regex": "(Secret)"},
    "get_diagnostics_for_file": {},
    "get_symbol_context": {"name_path": "Secret"},
    "find_all_symbols": {},
    "get_call_hierarchy": {"name_path": "Secret"},
    "get_type_hierarchy": {"name_path": "Secret"},
    "list_dir": {},
    "find_file": {"file_mask": "*"},
    "read_file": {},
    "search_for_pattern": {"substring_pattern": "Secret"},
}
"""Every tool that takes `relative_path`, and what it needs besides."""


@pytest.mark.parametrize(
    "path",
    [
        "../secret.py",
        "folder/../../secret.py",
        "{outside}/secret.py",
        "/etc/passwd",
        "link.py",
        "linked/key.py",
        "linked",
        "..",
        "~",
    ],
)
async def test_no_tool_follows_a_path_out_of_the_project(
    client: RawClient, project: Path, outside: Path, path: str
) -> None:
    asked = path.format(outside=outside)
    for tool, arguments in WITH_A_PATH.items():
        said = await refused(client, tool, relative_path=asked, project=str(project), **arguments)
        assert "is outside the project" in said or ("does not exist" in said and path == "~"), f"{tool}: {said}"
        assert "class Secret" not in said
        assert "class Key" not in said
    said = await refused(client, "get_diagnostics_for_symbol", name_path="Secret", reference_file=asked)
    assert "class Secret" not in said


@pytest.mark.parametrize("path", ["a/" * 100_000, "../" * 100_000, "/a" * 100_000])
async def test_no_tool_looks_up_a_path_that_no_system_has(client: RawClient, project: Path, path: str) -> None:
    """A look at each level took seconds, and the answer repeated the whole."""
    for tool, arguments in WITH_A_PATH.items():
        said = await refused(client, tool, relative_path=path, project=str(project), **arguments)
        assert "a path has at most 4096" in said, tool
        assert len(said) < 1000, tool
    said = await refused(client, "read_file", relative_path=path)
    assert len(said) < 1000


async def test_a_walk_through_the_project_leaves_links_out_of_it_alone(client: RawClient) -> None:
    for tool, arguments in {
        "find_symbol": {"name_path_pattern": "Key"},
        "search_for_pattern": {"substring_pattern": "class (Secret|Key)", "skip_ignored_files": False},
        "find_file": {"file_mask": "key.py"},
        "find_all_symbols": {},
        "list_dir": {"relative_path": ".", "recursive": True},
    }.items():
        result = await client.call(tool, **arguments)
        assert "key.py" not in text_of(result), f"{tool}: {text_of(result)}"
        assert "Secret" not in text_of(result)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nul\0.py", "NUL"),
        ("pipe.py", "named pipe"),
        ("loop.py", "loop of symlinks"),
        ("dangling.py", "does not exist"),
        ("none.py", "does not exist"),
        ("cart.py/inside.py", "uses a file as a folder"),
        ("x" * 5000, "can't be used"),
        ("/nul\0.py", "null byte"),
    ],
    ids=["NUL", "FIFO", "loop", "dangling link", "nothing", "through a file", "too long", "absolute NUL"],
)
async def test_a_path_that_can_not_be_used_is_refused_by_every_tool(client: RawClient, path: str, reason: str) -> None:
    for tool, arguments in WITH_A_PATH.items():
        assert reason in await refused(client, tool, relative_path=path, **arguments), tool


@pytest.mark.parametrize("tool", ["read_file", "get_symbols_overview", "get_diagnostics_for_file"])
async def test_a_binary_file_is_refused_as_text(client: RawClient, tool: str) -> None:
    assert "binary" in await refused(client, tool, relative_path="binary.py")


async def test_odd_files_spoil_no_answer_about_the_others(client: RawClient) -> None:
    for tool, arguments in {
        "find_symbol": {"name_path_pattern": "Cart"},
        "search_for_pattern": {"substring_pattern": "class Cart"},
        "find_all_symbols": {},
        "get_symbols_overview": {"relative_path": "."},
    }.items():
        with anyio.fail_after(60):
            result = await client.call(tool, **arguments)
        assert not result["isError"]
        assert "cart.py" in text_of(result)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("nobody-knows-me", "Known projects: 'shop'"),
        ("/nowhere/at/all", "There is no project"),
        ("/", "home folder or above it"),
        ("~", "home folder or above it"),
        (str(Path.home()), "home folder or above it"),
        ("{root}/cart.py", "There is no project"),
        (["shop", "nobody-knows-me"], "Known projects: 'shop'"),
        ("nul\0", "Known projects: 'shop'"),
        ("/nul\0", "is not a valid project path"),
        ("/a" * 100_000, "it has more than 250 levels"),
        ("~no-such-user-anywhere", "is not a valid project path"),
        ("/" + "x" * 5000, "There is no project"),
        (17, "project"),
        ({}, "project"),
    ],
    ids=lambda value: str(value).replace("\0", "NUL")[:40],
)
async def test_what_can_be_no_project_is_refused(client: RawClient, project: Path, named: Any, reason: str) -> None:
    asked = named.format(root=project) if isinstance(named, str) else named
    for tool, arguments in {
        "list_dir": {"relative_path": "."},
        "find_symbol": {"name_path_pattern": "Cart"},
        "activate_project": {},
        "remove_project": {},
    }.items():
        if isinstance(named, list) and tool.endswith("_project"):
            continue
        said = await refused(client, tool, project=asked, **arguments)
        assert reason in said, said


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("read_file", {"relative_path": 5.5}, "relative_path"),
        ("read_file", {"relative_path": ["cart.py"]}, "relative_path"),
        ("read_file", {"relative_path": "cart.py", "start_line": -1}, "start_line"),
        ("read_file", {"relative_path": "cart.py", "start_line": "one"}, "start_line"),
        ("read_file", {"relative_path": "cart.py", "start_line": 10**30}, "start_line"),
        ("read_file", {"relative_path": "cart.py", "start_line": 99, "end_line": 99}, "past the end of the file"),
        ("read_file", {}, "relative_path"),
        ("read_file", {"relative_path": "cart.py", "nonsense": 1}, "Parameters: relative_path"),
        ("find_symbol", {"name_path_pattern": ""}, "name path"),
        ("find_symbol", {"name_path_pattern": "Cart", "include_kinds": ["NoKind"]}, "NoKind"),
        ("find_symbol", {"name_path_pattern": "Cart", "include_kinds": [99]}, "99"),
        ("find_symbol", {"name_path_pattern": "Cart", "depth": 10**9}, "depth"),
        ("find_symbol", {"name_path_pattern": "Cart", "max_answer_chars": "x"}, "max_answer_chars"),
        ("find_symbol", {"name_path_pattern": "Cart", "max_answer_chars": -2}, "max_answer_chars"),
        ("get_symbol_context", {"name_path": "Nothing"}, "No symbol matches"),
        ("get_call_hierarchy", {"name_path": "Cart/total", "direction": "sideways"}, "direction"),
        ("find_declaration", {"relative_path": "cart.py", "regex": "("}, "regular expression"),
        ("find_declaration", {"relative_path": "cart.py", "regex": "total"}, "group"),
        ("search_for_pattern", {"substring_pattern": "("}, "regular expression"),
        ("search_for_pattern", {"substring_pattern": "a{99999999999}"}, "regular expression"),
        ("find_file", {"file_mask": ["*"]}, "file_mask"),
        ("list_dir", {"relative_path": "cart.py"}, "folder"),
        ("read_file", {"relative_path": "folder"}, "folder"),
        ("restart_language_server", {"language": "cobol"}, "cobol"),
    ],
)
async def test_wrong_arguments_are_told_by_name(
    client: RawClient, tool: str, arguments: dict[str, Any], says: str
) -> None:
    assert says in await refused(client, tool, **arguments)


async def test_a_huge_limit_is_no_limit(client: RawClient) -> None:
    for limit in (10**9, 2**62):
        result = await client.call("read_file", relative_path="cart.py", max_answer_chars=limit)
        assert "class Cart" in text_of(result)
    said = text_of(await client.call("read_file", relative_path="cart.py", max_answer_chars=0))
    assert "class Cart" not in said


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_unknown_tool_is_told_with_those_like_it(central: RunningCentral, era: Era) -> None:
    async with central.raw(era) as client:
        answer = await client.ask("tools/call", {"name": "find_symbl", "arguments": {}})
    said = json.dumps(answer)
    assert "find_symbol" in said
    assert answer.get("error") or answer["result"]["isError"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize(
    "value",
    ["[" * 1000 + "1" + "]" * 1000, '{"a":' * 1000 + "1" + "}" * 1000, '"\\ud800.py"', "1e999", "NaN", "9" * 5000],
    ids=["deep lists", "deep objects", "lone surrogate", "infinite", "NaN", "many digits"],
)
async def test_odd_json_harms_nobody(central: RunningCentral, project: Path, era: Era, value: str) -> None:
    async with central.raw(era, x_serena_session="deep") as client:
        await client.call("activate_project", project=str(project))
        request = client.request("tools/call", {"name": "read_file", "arguments": {"relative_path": "@"}})
        body = request.content.replace(b'"@"', value.encode())
        headers = {key: value for key, value in request.headers.items() if key != "content-length"}
        response = await client.http.post("/mcp", content=body, headers=headers)
        assert response.status_code < 500
        (answer,) = messages_in(response.text)
        assert answer.get("error") or answer["result"]["isError"]
        assert "Internal error" not in response.text
        assert "class Cart" in text_of(await client.call("read_file", relative_path="cart.py"))


async def test_a_catastrophic_regex_ends_and_holds_nobody_up(
    client: RawClient, central: RunningCentral, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_module, "search", partial(project_module.search, deadline_s=2.0))
    monkeypatch.setattr(symbols, "REGEX_S", 2.0)
    async with central.raw("handshake") as bystander, anyio.create_task_group() as tasks:
        await bystander.call("activate_project", project=str(project))
        said: dict[str, dict[str, Any]] = {}

        async def ask(tool: str, **arguments: Any) -> None:
            said[tool] = await client.call(tool, **arguments)

        with anyio.fail_after(40):
            tasks.start_soon(lambda: ask("search_for_pattern", substring_pattern=EVIL_REGEX))
            tasks.start_soon(lambda: ask("find_declaration", relative_path="evil.py", regex=EVIL_REGEX))
            answered = 0
            while len(said) < 2:
                assert "class Cart" in text_of(await bystander.call("read_file", relative_path="cart.py"))
                answered += 1
    assert answered > 2
    assert said["find_declaration"]["isError"]
    notes = " ".join(block["text"] for block in said["search_for_pattern"]["content"])
    assert said["search_for_pattern"]["isError"] or "evil.py" in notes or "in one of 3 files" in notes, notes
