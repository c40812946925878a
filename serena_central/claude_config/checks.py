"""Checks of settings that a schema cannot express: rules, matchers, timeouts, servers and hooks, each with its place.

A wrong entry is left out and reported; the others of its list count.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from serena_central.claude_config.document import Document, as_list
from serena_central.claude_config.merge import canonical, get
from serena_central.claude_config.problems import KeyPath, Severity, brief
from serena_central.claude_config.rules import SYNTAX, VERDICTS, BadRule, doubts, parse_rule

EVENTS = (
    *("PreToolUse", "PostToolUse", "UserPromptSubmit", "Notification", "Stop", "SubagentStop", "PreCompact"),
    *("SessionStart", "SessionEnd", "SubagentStart"),
)
"""Events that hooks run at here."""

_OTHER_EVENTS = frozenset(
    (
        *("PostToolUseFailure", "PermissionRequest", "PermissionDenied", "TeammateIdle", "Setup"),
        *("TaskCompleted", "TaskCreated", "ConfigChange", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded"),
        *("PostCompact", "Elicitation", "ElicitationResult", "StopFailure", "CwdChanged", "FileChanged"),
    )
)
"""Events of Claude Code alone."""

_NEEDED = {
    "command": "command",
    "check": "check",
    "prompt": "prompt",
    "agent": "prompt",
    "http": "url",
    "mcp_tool": "tool",
}
"""Type of a hook → the key that it needs."""

MOST_SECONDS = 600
"""A larger timeout of a hook is milliseconds: Claude Code reads seconds, and nobody waits longer than ten minutes."""

MOST_ITEMS = 5000
"""Rules of one list, or groups of hooks at one event: more would make every call wait."""

_PLAIN_MATCHER = re.compile(r"[\w|, *-]*")


def check_settings(document: Document, value: dict[str, Any]) -> dict[str, Any]:
    """The settings without what can't work; problems are added to the document."""
    checked = dict(value)
    if "permissions" in checked:
        checked["permissions"] = _permissions(document, checked["permissions"])
    if "hooks" in checked:
        checked["hooks"] = _hooks(document, checked["hooks"])
    if "mcpServers" in checked:
        checked["mcpServers"] = check_servers(document, checked["mcpServers"], ("mcpServers",))
    return checked


# --- permissions -----------------------------------------------------------------------------------------------------


def _permissions(document: Document, value: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(value)
    seen: dict[str, str] = {}
    for verdict in VERDICTS:
        if verdict not in checked:
            continue
        kept: list[str] = []
        places = _Places(document, ("permissions", verdict))
        for text in _bounded(document, checked[verdict], ("permissions", verdict)):
            path = places.of(text)
            try:
                rule = parse_rule(text)
            except BadRule as error:
                document.report(Severity.ERROR, path, f"the rule {brief(text)} has no effect: {error}", SYNTAX)
                continue
            doubt = doubts(rule)
            if doubt is not None:
                document.report(doubt[0], path, doubt[1], doubt[2])
            if text in seen and seen[text] != verdict:
                document.report(
                    Severity.WARNING,
                    path,
                    f"the rule {brief(text)} stands among {seen[text]}, too, which is looked at before {verdict}",
                    "keep one",
                )
            seen.setdefault(text, verdict)
            kept.append(text)
        checked[verdict] = kept
    return checked


class _Places:
    """Where the items of a list stand in the document: places may have moved since it was read."""

    def __init__(self, document: Document, path: KeyPath) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        for place, item in enumerate(as_list(get(document.value, path)) or ()):
            self._places.setdefault(canonical(item), place)

    def of(self, item: Any) -> KeyPath:
        place = self._places.get(canonical(item))
        return self._path if place is None else (*self._path, place)


def _bounded(document: Document, items: list[Any], path: KeyPath) -> list[Any]:
    if len(items) > MOST_ITEMS:
        text = f"the list has {len(items)} items, and those after the first {MOST_ITEMS} have no effect"
        document.report(Severity.ERROR, path, text, "write fewer, with patterns")
    return items[:MOST_ITEMS]


# --- hooks -----------------------------------------------------------------------------------------------------------


def _hooks(document: Document, value: Mapping[str, list[Any]]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for event, groups in value.items():
        if event not in EVENTS:
            known = event in _OTHER_EVENTS
            document.report(
                Severity.NOTE,
                ("hooks", event),
                "hooks at this event run in Claude Code alone" if known else f"no event is called {brief(event)}",
                f"events here are {', '.join(EVENTS)}",
            )
        checked[event] = list(_groups(document, event, groups))
    return checked


def _groups(document: Document, event: str, groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: dict[str, KeyPath] = {}
    places = _Places(document, ("hooks", event))
    for group in _bounded(document, groups, ("hooks", event)):
        path = places.of(group)
        matcher = group.get("matcher", "")
        problem = bad_matcher(matcher)
        if problem is not None:
            document.report(Severity.ERROR, (*path, "matcher"), f"{brief(matcher)} is no matcher: {problem}", _MATCHERS)
            continue
        hooks: list[dict[str, Any]] = []
        for place, hook in enumerate(group["hooks"]):
            inside = (*path, "hooks", place)
            checked = _hook(document, hook, inside)
            if checked is None:
                continue
            same = canonical([matcher, checked])
            if same in seen:
                first = document.place(seen[same]).line
                document.report(Severity.ERROR, inside, f"the same hook stands in line {first}", "remove one of them")
                continue
            seen[same] = inside
            hooks.append(checked)
        if hooks:
            yield {**group, "hooks": hooks}


_MATCHERS = "a tool's name, A|B, a glob or regular expression of names, or a rule such as Bash(git commit:*)"


def bad_matcher(matcher: str) -> str | None:
    """Why a hook's matcher can match nothing; None for a good one."""
    if not matcher or _PLAIN_MATCHER.fullmatch(matcher):
        return None
    if "(" in matcher and matcher[:1].isalpha() and matcher.endswith(")") and "|" not in matcher.partition("(")[0]:
        try:
            parse_rule(matcher)
        except BadRule as error:
            return str(error)
        return None
    try:
        re.compile(matcher)
    except (re.error, OverflowError, RecursionError) as error:
        return f"as a regular expression, {error}"
    return None


def _hook(document: Document, hook: Mapping[str, Any], path: KeyPath) -> dict[str, Any] | None:
    needed = _NEEDED[hook["type"]]
    if not hook.get(needed):
        document.report(
            Severity.ERROR,
            path,
            f"a hook of type {hook['type']} needs {needed}, so that it has no effect",
            f"add {needed}",
        )
        return None
    condition = hook.get("if")
    if condition is not None and not condition.strip():
        document.report(Severity.ERROR, (*path, "if"), "the condition is empty", "remove it")
        return None
    timeout = hook.get("timeout")
    if timeout is not None and timeout > MOST_SECONDS:
        document.report(
            Severity.NOTE,
            (*path, "timeout"),
            f"{timeout} is read as milliseconds here; Claude Code reads timeouts of hooks as seconds",
            f"write {max(round(timeout / 1000), 1)}",
        )
    return dict(hook)


def timeout_ms(hook: Mapping[str, Any], default_ms: int) -> int:
    """How long a checked hook may run."""
    timeout = hook.get("timeout")
    if timeout is None:
        return default_ms
    return round(timeout * 1000) if timeout <= MOST_SECONDS else round(timeout)


# --- servers ---------------------------------------------------------------------------------------------------------


def check_servers(document: Document, servers: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """The servers that can be started or reached, by name."""
    checked: dict[str, Any] = {}
    for name, entry in servers.items():
        problem = _bad_server(name, entry)
        if problem is None:
            checked[name] = entry
        else:
            document.report(Severity.ERROR, (*path, name), f"{problem[0]}, so that it has no effect", problem[1])
    return checked


def _bad_server(name: str, entry: Mapping[str, Any]) -> tuple[str, str] | None:
    if not re.fullmatch(r"[\w .@/:-]{1,100}", name):
        return f"{brief(name)} is no name for a server", "letters, digits, - and _"
    kind = entry.get("type") or entry.get("transport")
    if "type" in entry and "transport" in entry and _plain(entry["type"]) != _plain(entry["transport"]):
        return f"type is {entry['type']} and transport is {entry['transport']}", "keep one of them"
    command, url = entry.get("command"), entry.get("url")
    if not command and not url:
        return "the server has neither command nor url", 'add "command" for a program, or "url" for a remote server'
    if command and url:
        return "the server has both command and url", "keep one of them"
    if kind == "stdio" and not command:
        return "a stdio server needs a command", 'add "command", or make it "type": "http"'
    if kind in ("http", "streamable-http", "sse", "ws") and not url:
        return f"a server of type {kind} needs a url", 'add "url", or remove "type"'
    return None


def _plain(kind: str) -> str:
    return "http" if kind == "streamable-http" else kind
