"""The one normaliser of clients' hooks: what they say of a tool call becomes searches, and a decision becomes what they
read. Their tools' names don't clash, so that one table serves all; only the answers differ by client.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from serena_central.hook.lines import searches_in
from serena_central.hook.programs import as_python, globs_of_type
from serena_central.hook.search import Search, compiled

Json = dict[str, Any]

SHELLS = frozenset(("bash", "shell", "run_shell_command", "run_in_terminal", "runterminalcommand", "local_shell"))
TEXT_SEARCHES = frozenset(("grep", "search", "grep_search", "search_file_content", "ripgrep", "rg", "findtextinfiles"))
NAME_SEARCHES = frozenset(("glob", "file_search", "find_files", "findfiles"))


class ToolUse(NamedTuple):
    """A tool that a client is about to run. `folder` is where the client works, "" if it doesn't say."""

    session: str
    folder: str
    tool: str
    arguments: Json


class Event(NamedTuple):
    """The input of every hook. `why` is what began or ended a session."""

    session: str
    folder: str
    why: str


def event_of(said: Json) -> Event:
    roots = said.get("workspace_roots")
    first = cast("list[Any]", roots)[0] if isinstance(roots, list) and roots else ""
    return Event(
        session=_text(said, "session_id", "sessionId", "conversation_id"),
        folder=_text(said, "cwd") or (first if isinstance(first, str) else ""),
        why=_text(said, "source", "reason", "trigger"),
    )


def tool_use_of(said: Json) -> ToolUse:
    """Of a client's JSON. Cursor's shell hook names no tool: the command stands alone."""
    session, folder, _ = event_of(said)
    arguments = said.get("tool_input", said.get("toolArgs"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = None
    tool = _text(said, "tool_name", "toolName")
    if not tool and isinstance(said.get("command"), str):
        tool, arguments = "shell", said
    return ToolUse(session, folder, tool, cast("Json", arguments) if isinstance(arguments, dict) else {})


def searches_of(use: ToolUse) -> list[Search]:
    """The searches that a tool would make; none where it does anything else."""
    tool, given = use.tool.lower(), use.arguments
    if tool in SHELLS:
        folder = _text(given, "working_directory", "workdir", "dir_path", "directory", "cwd")
        return [one._replace(folder=folder or one.folder) for one in searches_in(_text(given, "command"))]
    path = _text(given, "path", "dir_path", "target_directory", "directory", "folder")
    paths = (path,) if path else ()
    if tool in NAME_SEARCHES:
        pattern = _text(given, "pattern", "glob_pattern", "query", "glob")
        return [Search(pattern, by_name=True, paths=_inside(paths, pattern))] if pattern else []
    if tool not in TEXT_SEARCHES:
        return []
    pattern = _text(given, "pattern", "query", "regex")
    glob = _text(given, "glob", "include", "include_pattern", "includePattern", "file_pattern")
    globs = (*([glob] if glob else []), *globs_of_type(_text(given, "type")))
    if not pattern or _text(given, "output_mode") == "count" or given.get("multiline") is True:
        return []
    if compiled(pattern := as_python(pattern)) is None:
        return []
    names = tuple(one.rpartition("/")[2] for one in globs)
    no_case = given.get("-i") is True or given.get("case_insensitive") is True
    return [Search(pattern, paths=_inside(paths, glob), globs=names, no_case=no_case)]


def _inside(paths: tuple[str, ...], glob: str) -> tuple[str, ...]:
    """A glob such as `src/**/*.ts` begins with the folder that it means."""
    steps = glob.split("/")[:-1]
    plain = steps[
        : next((place for place, step in enumerate(steps) if any(mark in step for mark in "*?[{")), len(steps))
    ]
    folder = "/".join(plain)
    if not folder:
        return paths
    return (folder,) if not paths or folder.startswith("/") else tuple(f"{path.rstrip('/')}/{folder}" for path in paths)


def _text(said: Mapping[str, Any], *names: str) -> str:
    """The first of these that is a text; "" for none."""
    return next((value for name in names if isinstance(value := said.get(name), str) and value), "")


# --- what clients read -----------------------------------------------------------------------------------------------


def _claude_stop(verdict: str, reason: str) -> Json:
    output = {"hookEventName": "PreToolUse", "permissionDecision": verdict, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": output}


def _copilot_stop(verdict: str, reason: str) -> Json:
    """Its own harness reads the outer ones, the older one of VS Code the inner ones."""
    return {"permissionDecision": verdict, "permissionDecisionReason": reason, **_claude_stop(verdict, reason)}


def _gemini_stop(_verdict: str, reason: str) -> Json:
    return {"decision": "deny", "reason": reason}


def _cursor_stop(_verdict: str, reason: str) -> Json:
    return {"permission": "deny", "user_message": "serena-central answers this search better.", "agent_message": reason}


def _claude_tell(text: str) -> Json:
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def _copilot_tell(text: str) -> Json:
    return {"additionalContext": text, **_claude_tell(text)}


def _cursor_tell(text: str) -> Json:
    return {"additional_context": text}


class Dialect(NamedTuple):
    """How one client takes answers. `can_ask`: it can leave a decision to its user."""

    stop: Callable[[str, str], Json]
    """From "deny" or "ask", and the reason."""
    tell: Callable[[str], Json]
    """From a text that its model is to know from the beginning."""
    can_ask: bool = False


DIALECTS: dict[str, Dialect] = {
    "claude-code": Dialect(_claude_stop, _claude_tell, can_ask=True),
    "codex": Dialect(_claude_stop, _claude_tell),
    "gemini": Dialect(_gemini_stop, _claude_tell),
    "cursor": Dialect(_cursor_stop, _cursor_tell),
    "vscode": Dialect(_copilot_stop, _copilot_tell, can_ask=True),
}
