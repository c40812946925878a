"""Gemini CLI without a terminal: `gemini --output-format stream-json`.

It gets a home of its own (`GEMINI_CLI_HOME`) that leads to the user's, but for the settings, which have this server as
the only MCP server, and GEMINI.md, which has the system prompt and CLAUDE.md as well. An agent's tools are rules of its
policy engine, which hold for listing and calling.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serena_central.agents.runners.commands import (
    OF_NETWORK,
    TOKEN,
    Call,
    CommandRunner,
    Invocation,
    Reading,
    called,
    mapping,
    own_tool,
    whole,
)
from serena_central.agents.tasks import Emission, Emit, TaskSpec, Usage
from serena_central.clients.forms import Malformed
from serena_central.clients.json_form import JsonForm
from serena_central.core.nofollow import read_following

SHELL = "run_shell_command"

OWN_TOOLS: Mapping[str, tuple[str, ...]] = {
    "read_file": ("Read",),
    "read_many_files": ("Read",),
    "list_directory": ("Read", "LS", "Glob"),
    "glob": ("Glob",),
    "grep_search": ("Grep",),
    "replace": ("Edit", "MultiEdit"),
    "write_file": ("Write", "Edit"),
    SHELL: ("Bash",),
    "web_fetch": ("WebFetch",),
    "google_web_search": ("WebSearch",),
    "write_todos": ("TodoWrite",),
    "invoke_agent": ("Task", "Agent"),
}
"""Its own tools → the names in a definition, any of which allows them. All others are denied where it names tools."""

SETTINGS, MEMORY = "settings.json", "GEMINI.md"

TURNS_EXCEEDED = 53
"""Exit code of a session that reached its maximum of turns."""

UNTRUSTED = 55
"""Exit code in a folder that neither this server nor Gemini CLI trusts."""


class Gemini(CommandRunner):
    """See `tasks.Runner`."""

    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    variables = re.compile(rf"GEMINI_(?!CLI_HOME|SYSTEM_MD|WRITE_SYSTEM_MD)\w+|GOOGLE_\w+|CLOUDSDK_\w+|{OF_NETWORK}")

    def invocation(self, call: Call) -> Invocation:
        spec = call.spec
        own = Path(call.environment.get("GEMINI_CLI_HOME") or call.environment.get("HOME") or Path.home())
        home = call.folder / "home"
        settings = _linked(own, home)
        ours = _name(Path(spec.root))
        headers = {"Authorization": f"Bearer ${{{TOKEN}}}", "X-Serena-Session": spec.session}
        settings["mcpServers"] = {ours: {"httpUrl": call.server.url, "headers": headers, "trust": True}}
        settings["mcp"] = {"allowed": [ours]}
        if spec.max_turns:
            settings["model"] = {**mapping(settings.get("model")), "maxSessionTurns": spec.max_turns}
        arguments: list[str | Path] = ["--output-format", "stream-json", "--allowed-mcp-server-names", ours]
        if spec.tools is not None or spec.disallowed_tools:
            rules = call.folder / "tools.toml"
            rules.write_text(_rules(spec, ours), encoding="utf-8")
            arguments += ["--admin-policy", rules]
        if spec.tools is not None:
            allowed = [tool for tool, names in OWN_TOOLS.items() if own_tool(spec, names)]
            settings["tools"] = {**mapping(settings.get("tools")), "core": allowed or ["none"]}
        if call.trusted:
            arguments.append("--skip-trust")
        if spec.model:
            arguments += ["--model", spec.model]
        (home / ".gemini" / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
        self._instruct(call, own / ".gemini" / MEMORY, home / ".gemini" / MEMORY)
        return Invocation(arguments, {"GEMINI_CLI_HOME": str(home)}, spec.instruction)

    def _instruct(self, call: Call, own: Path, file: Path) -> None:
        texts = [own.read_text("utf-8", "replace") if own.is_file() else "", call.instructions()]
        file.write_text("\n\n".join(filter(None, texts)), encoding="utf-8", errors="replace")

    def read(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        kind = event.get("type")
        if kind == "message" and event.get("role") == "assistant":
            reading.pending += str(event.get("content") or "")
            return
        if reading.pending.strip():
            reading.text = reading.pending
            emit(Emission(kind="text", text=reading.text))
        reading.pending = ""
        match kind:
            case "init":
                reading.resume_id = str(event.get("session_id") or "") or None
            case "tool_use":
                emit(called(event.get("tool_name"), event.get("parameters")))
                if event.get("tool_name") == SHELL:
                    reading.commands[str(event.get("tool_id"))] = str(mapping(event.get("parameters")).get("command"))
            case "tool_result":
                command = reading.commands.pop(str(event.get("tool_id")), None)
                if command is not None:
                    emit(Emission(kind="note", command=command))  # with which exit code, it does not tell
            case "error":
                emit(Emission(kind="note", text=str(event.get("message"))))
            case "result":
                self._end(event, reading)
            case _:
                pass

    def _end(self, event: Mapping[str, Any], reading: Reading) -> None:
        reading.ended = True
        stats = mapping(event.get("stats"))
        reading.usage = _usage(stats)
        reading.by_model = {str(name): _usage(mapping(one)) for name, one in mapping(stats.get("models")).items()}
        if event.get("status") != "success":
            reading.error = f"Gemini CLI: {mapping(event.get('error')).get('message') or event.get('status')}"

    def explained(self, call: Call, code: int | None, reading: Reading) -> None:
        if code == TURNS_EXCEEDED:
            reading.over_budget, reading.error = True, "It reached its maximum of turns."
        elif code == UNTRUSTED and not call.trusted:
            reading.error = (
                "Gemini CLI does not run in a folder that is not trusted. Review what the repository brings and run "
                f"`serena-central trust {call.spec.root}`, or trust it in Gemini CLI."
            )


def _linked(own: Path, home: Path) -> dict[str, Any]:
    """Makes a home whose `.gemini` leads to what is in the user's; returns his settings.

    Raises:
        ValueError: they can't be read.
    """
    folder = own / ".gemini"
    (home / ".gemini").mkdir(parents=True)
    # Where it keeps its conversations, from which a task can be resumed and is counted.
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    for one in folder.iterdir():
        if one.name not in (SETTINGS, MEMORY):
            (home / ".gemini" / one.name).symlink_to(one)
    if (own / ".env").is_file():
        (home / ".env").symlink_to(own / ".env")
    file = folder / SETTINGS
    if not file.is_file():
        return {}
    try:
        return JsonForm(relaxed=True).read(file.read_text("utf-8"))
    except (Malformed, ValueError) as error:
        raise ValueError(f"{file} can't be read: {error}") from error


def _name(root: Path) -> str:
    """What it knows this server by: not by a name that settings of the project give to another one."""
    try:
        project = JsonForm(relaxed=True).read(read_following(root / ".gemini" / SETTINGS).decode("utf-8"))
    except (OSError, Malformed, ValueError):
        return "serena"
    taken = mapping(project.get("mcpServers"))
    return next(name for name in ("serena", "serena-task", "serena-of-task") if name not in taken)


def _rules(spec: TaskSpec, ours: str) -> str:
    """Which of our tools it may call this server decides."""
    allowed = [tool for tool, names in OWN_TOOLS.items() if own_tool(spec, names)]
    denied = [tool for tool, names in OWN_TOOLS.items() if own_tool(spec, names) is False]
    rules = [f'mcpName = "{ours}"\ntoolName = "*"\ndecision = "allow"\npriority = 999']
    if allowed:
        rules.append(f'toolName = {json.dumps(allowed)}\ndecision = "allow"\npriority = 998')
    if spec.tools is not None:
        rules.append('toolName = "*"\ndecision = "deny"\npriority = 900')
    elif denied:
        rules.append(f'toolName = {json.dumps(denied)}\ndecision = "deny"\npriority = 998')
    return "\n\n".join(f"[[rule]]\n{rule}" for rule in rules)


def _usage(found: Mapping[str, Any]) -> Usage:
    """What thinking took is in the total alone."""
    given, cached = whole(found.get("input_tokens")), whole(found.get("cached"))
    total = whole(found.get("total_tokens"))
    return Usage(
        input=max(0, given - cached),
        output=max(whole(found.get("output_tokens")), total - given),
        cache_read=cached,
    )
