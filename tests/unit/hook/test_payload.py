"""Examples of each client's hooks, made of the fields that its documentation names (`examples/`; each says where)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.hook.payload import DIALECTS, Event, event_of, searches_of, tool_use_of
from serena_central.hook.search import Search

EXAMPLES = {file.stem: json.loads(file.read_text()) for file in Path(__file__).with_name("examples").glob("*.json")}


def test_every_client_has_an_example() -> None:
    assert set(EXAMPLES) == set(DIALECTS)


@pytest.mark.parametrize(
    ("client", "example"), [(client, example) for client in EXAMPLES for example in EXAMPLES[client]["tool_uses"]]
)
def test_a_tool_use_is_read_as_its_searches(client: str, example: dict[str, Any]) -> None:
    use = tool_use_of(example["said"])
    assert use.session
    assert use.folder == "/home/ann/shop"
    assert searches_of(use) == [
        Search(
            one["pattern"], one["by_name"], paths=tuple(one["paths"]), globs=tuple(one["globs"]), folder=one["folder"]
        )
        for one in example["searches"]
    ]


@pytest.mark.parametrize(
    ("client", "example"), [(client, example) for client in EXAMPLES for example in EXAMPLES[client]["sessions"]]
)
def test_the_beginning_and_end_of_a_session_are_read(client: str, example: dict[str, Any]) -> None:
    assert event_of(example["said"]) == Event(*example["event"])


@pytest.mark.parametrize(
    ("client", "stopped", "told"),
    [
        (
            "claude-code",
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "because",
                }
            },
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "text"}},
        ),
        (
            "gemini",
            {"decision": "deny", "reason": "because"},
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "text"}},
        ),
        (
            "cursor",
            {
                "permission": "deny",
                "user_message": "serena-central answers this search better.",
                "agent_message": "because",
            },
            {"additional_context": "text"},
        ),
    ],
)
def test_a_client_is_answered_in_its_own_words(client: str, stopped: Any, told: Any) -> None:
    assert DIALECTS[client].stop("deny", "because") == stopped
    assert DIALECTS[client].tell("text") == told


def test_codex_is_answered_like_claude_code_and_vscode_like_both_its_harnesses() -> None:
    claude = DIALECTS["claude-code"].stop("deny", "because")
    assert DIALECTS["codex"].stop("deny", "because") == claude
    outer = {"permissionDecision": "ask", "permissionDecisionReason": "because"}
    asked = DIALECTS["vscode"].stop("ask", "because")
    assert asked == {**outer, "hookSpecificOutput": {"hookEventName": "PreToolUse", **outer}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["tool_name", "tool_input", "session_id", "cwd", "command", "workspace_roots", "toolArgs"])
TOOLS = st.sampled_from(["Bash", "Grep", "Glob", "file_search", "run_in_terminal"])
INPUTS = st.dictionaries(st.sampled_from(["command", "pattern", "path", "glob", "type", "query"]), JSON)


@given(st.dictionaries(FIELDS, JSON))
def test_no_payload_is_too_strange(said: dict[str, Any]) -> None:
    assert all(isinstance(search, Search) for search in searches_of(tool_use_of(said)))


@given(TOOLS, INPUTS)
def test_no_input_of_a_tool_is_too_strange(tool: str, given_to_it: dict[str, Any]) -> None:
    for search in searches_of(tool_use_of({"tool_name": tool, "tool_input": given_to_it})):
        assert isinstance(search.pattern, str)
