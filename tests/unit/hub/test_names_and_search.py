"""Names, search, sharing, arguments and loops: the hub's pure parts."""

import re
import subprocess
import sys
from itertools import product

import pytest

from serena_central.core.masking import MASK
from serena_central.hub.masks import Masks
from serena_central.hub.names import MAX_CHARS, upstream_names
from serena_central.hub.own_server import reaches_ourselves, starts_ourselves
from serena_central.hub.search import ToolSearch
from serena_central.hub.sharing import sharing_of
from serena_central.hub.validation import ArgumentChecker
from serena_central.hub.wire_log import WireLog


def test_names_fit_every_client_and_are_unique_and_stable() -> None:
    tools = [("git hub", "a.b"), ("git_hub", "a_b"), ("x", "y" * 80), ("own", "tool"), ("fine", "one")]
    names = upstream_names(tools, taken=["own__tool"])
    assert list(names.values()) == tools
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) and len(name) <= MAX_CHARS for name in names)
    assert names["fine__one"] == ("fine", "one")
    assert "own__tool" not in names
    assert dict(upstream_names(reversed(tools), taken=["own__tool"])) == dict(names)


def test_search_finds_by_name_description_and_parameters() -> None:
    tools = {
        "github__create_issue": {"description": "Open a new ticket", "inputSchema": {}},
        "github__list_issues": {"description": "All of a repository", "inputSchema": {}},
        "mail__send": {"description": "", "inputSchema": {"properties": {"recipient": {"description": "Whom"}}}},
        **{f"noise__tool{number}": {"description": "Does something else entirely"} for number in range(100)},
    }
    search = ToolSearch(tools)
    assert search.find("creating an issue", 3)[0] == "github__create_issue"
    assert search.find("ticket", 3) == ["github__create_issue"]
    assert search.find("recipient", 3) == ["mail__send"]
    assert search.find("xylophone", 3) == []
    assert search.find("rec", 3) == ["mail__send"]


def test_a_search_for_very_many_words_ends() -> None:
    """What is looked for comes from agents, and the words that there are from servers."""
    words = ["".join(letters) for letters in product("abcdefghijklmnop", repeat=4)]
    search = ToolSearch({f"tool{number}": {"description": f"w{word}x"} for number, word in enumerate(words)})
    assert search.find(" ".join(["tool", *(f"q{word}z" for word in words)]), 1) == ["tool0"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["npx", "-y", "@playwright/mcp@latest"], "session"),
        (["npx", "@modelcontextprotocol/server-memory"], "project"),
        (["uvx", "mcp-server-git"], "project"),
        (["npx", "-y", "@modelcontextprotocol/server-github"], "shared"),
        (["/home/ann/memory/run-weather"], "shared"),
    ],
)
def test_servers_that_keep_state_are_known(command: list[str], expected: str) -> None:
    assert sharing_of("any", command, None, {}) == expected
    assert sharing_of("any", command, "session", {}) == "session"
    assert sharing_of("any", command, "session", {"any": "shared"}) == "shared"


def test_a_hostile_schema_holds_up_nothing() -> None:
    checker = ArgumentChecker({"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}})
    text = "a" * 40 + "!"
    assert checker.checked({"text": text})[0] == {"text": text}
    loop = {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}
    assert ArgumentChecker(loop).checked({"a": 1}) == ({"a": 1}, [])
    assert ArgumentChecker({"$ref": "http://127.0.0.1:1/schema"}).checked({"a": 1})[1] == []
    assert ArgumentChecker({"type": 17}).checked({"a": 1})[1] == []


def test_arguments_that_can_not_be_checked_leave_those_of_other_calls_checked() -> None:
    tree = {"type": "object", "properties": {"in": {"$ref": "#"}, "size": {"type": "integer"}}}
    checker = ArgumentChecker(tree)
    deep: dict[str, object] = {}
    for _ in range(2000):
        deep = {"in": deep}
    assert checker.checked(deep)[1] == []
    assert checker.checked({"size": "large"})[1] == ["size: 'large' is not of type 'integer'"]


def test_our_own_server_is_known_by_command_and_address() -> None:
    assert starts_ourselves(["/usr/bin/serena-proxy"])
    assert starts_ourselves(["uvx", "--from", "serena-central", "serena-proxy"])
    assert not starts_ourselves(["serena-mcp"])
    assert reaches_ourselves("http://localhost:24280/mcp", 24280, [])
    assert reaches_ourselves("https://box.example/mcp/", 24280, ["https://box.example"])
    assert not reaches_ourselves("http://localhost:9999/mcp", 24280, [])


def test_secrets_are_masked_as_text_and_as_json(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("logs")
    log = WireLog([folder], "one", Masks(['se"cret-value']))
    log.sent('{"token": "se\\"cret-value", "other": "se"cret-value"}')
    log.close()
    text = (folder / "one.log").read_text()
    assert "cret-value" not in text
    assert text.count(MASK) == 2


def test_nothing_of_the_hub_is_imported_by_the_server() -> None:
    code = "import sys, serena_central.app, serena_central.tools.families; print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "serena_central.tools.offer" in found
    assert "serena_central.hub" not in found
    assert "'jsonschema" not in found
