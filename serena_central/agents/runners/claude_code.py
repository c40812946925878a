"""Claude Code without a terminal: `claude -p --output-format stream-json`.

It reads CLAUDE.md and its settings itself; in a repository that is not trusted, those of the user alone. Its built-in
tools are those that the agent's definition names, or, where it names none, all that the user's own permissions allow;
of MCP servers it has ours alone.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from serena_central.agents.runners.commands import (
    OF_NETWORK,
    TOKEN,
    Call,
    CommandRunner,
    Invocation,
    Reading,
    called,
    dollars,
    mapping,
    objects,
    whole,
)
from serena_central.agents.tasks import Emission, Emit, TaskSpec, Usage

BUILT_IN = re.compile(r"[A-Z]\w*")
"""How its own tools are spelt, before their parentheses."""

EXIT_CODE = re.compile(r"\bexit code:? (\d{1,3})\b", re.IGNORECASE)

_BUDGETS = {
    "error_max_budget_usd": "It reached its budget in dollars.",
    "error_max_turns": "It reached its maximum of turns.",
}


class ClaudeCode(CommandRunner):
    """See `tasks.Runner`."""

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    # Not CLAUDECODE and what else a session of its own gives to its children.
    variables = re.compile(
        rf"ANTHROPIC_\w+|CLAUDE_CONFIG_DIR|CLAUDE_CODE_(?!ENTRYPOINT|SSE_PORT|SESSION)\w+|AWS_\w+|GOOGLE_\w+|VERTEX_\w+"
        rf"|CLOUD_ML_REGION|IS_SANDBOX|DISABLE_\w+|API_TIMEOUT_MS|{OF_NETWORK}"
    )

    def reads_memory(self, *, trusted: bool) -> bool:
        return trusted

    def invocation(self, call: Call) -> Invocation:
        spec, folder = call.spec, call.folder
        headers = {"Authorization": f"Bearer ${{{TOKEN}}}", "X-Serena-Session": spec.session}
        config = folder / "mcp.json"
        config.write_text(
            json.dumps({"mcpServers": {"serena": {"type": "http", "url": call.server.url, "headers": headers}}})
        )
        arguments: list[str | Path] = ["-p", "--output-format", "stream-json", "--verbose"]
        arguments += ["--mcp-config", config, "--strict-mcp-config", "--session-id", call.spec.transcript.session]
        arguments += self._tools(spec)
        if not call.trusted:
            # Without a terminal it asks nobody, and would run the hooks that a repository brings.
            arguments += ["--setting-sources", "user"]
        if instructions := call.instructions():
            prompt = folder / "system-prompt.md"
            prompt.write_text(instructions, encoding="utf-8", errors="replace")
            arguments += ["--append-system-prompt-file", prompt]
        if spec.model:
            arguments += ["--model", spec.model]
        if spec.max_turns:
            arguments += ["--max-turns", str(spec.max_turns)]
        if spec.budget.cost_usd:
            arguments += ["--max-budget-usd", f"{spec.budget.cost_usd:g}"]
        # Our tools are described to the model at once, not after a search.
        return Invocation(arguments, {"ENABLE_TOOL_SEARCH": "false"}, spec.instruction)

    def _tools(self, spec: TaskSpec) -> list[str]:
        # Which of our tools it may call, this server decides.
        chosen = ["--allowedTools", ",".join(["mcp__serena", *(spec.tools or ())])]
        if spec.tools is not None:
            names = dict.fromkeys(found[0] for one in spec.tools if (found := BUILT_IN.match(one)))
            chosen += ["--tools", ",".join(names)]
        if spec.disallowed_tools:
            chosen += ["--disallowedTools", ",".join(spec.disallowed_tools)]
        return chosen

    def read(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        reading.resume_id = str(event.get("session_id") or reading.resume_id or "") or None
        match event.get("type"):
            case "assistant":
                for block in objects(mapping(event.get("message")).get("content")):
                    if block.get("type") == "text":
                        emit(Emission(kind="text", text=str(block.get("text"))))
                    elif block.get("type") == "tool_use":
                        emit(called(block.get("name"), block.get("input")))
                        if block.get("name") == "Bash" and mapping(block.get("input")).get("command"):
                            reading.commands[str(block.get("id"))] = str(mapping(block.get("input"))["command"])
                self._count(event, reading, emit)
            case "user":
                for block in objects(mapping(event.get("message")).get("content")):
                    command = reading.commands.pop(str(block.get("tool_use_id")), None)
                    if command is not None:
                        emit(Emission(kind="note", command=command, exit_code=_exit_code(block)))
            case "result":
                self._end(event, reading, emit)
            case _:
                pass

    def _count(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        """Tokens so far, so that a budget ends the task in its course; the result has the right totals."""
        message = mapping(event.get("message"))
        if str(message.get("id")) in reading.counted:
            return  # one message comes in several events
        reading.counted.add(str(message.get("id")))
        reading.usage = (reading.usage or Usage()).plus(_usage(mapping(message.get("usage"))))
        emit(Emission(kind="usage", usage=reading.usage))

    def _end(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        reading.ended = True
        usage, cost = _usage(mapping(event.get("usage"))), dollars(event.get("total_cost_usd"))
        if usage.total:
            reading.usage = usage
        if cost is not None:
            reading.cost_usd, reading.cost_source = cost, "runner"
        subtype, text = str(event.get("subtype") or ""), str(event.get("result") or "")
        if subtype in _BUDGETS:
            reading.over_budget, reading.error = True, _BUDGETS[subtype]
        elif event.get("is_error") or subtype != "success":
            found: object = event.get("errors") or ()
            errors = "; ".join(map(str, cast("list[object]", found))) if isinstance(found, list) else str(found or "")
            reading.error = f"Claude Code: {text or errors or subtype}"
        else:
            reading.text = text
        emit(Emission(kind="usage", usage=reading.usage, cost_usd=reading.cost_usd))


def _exit_code(result: Mapping[str, Any]) -> int | None:
    """Of a command, by what the model was told of its end."""
    if not result.get("is_error"):
        return 0
    content = result.get("content")
    text = content if isinstance(content, str) else " ".join(str(one.get("text")) for one in objects(content))
    found = EXIT_CODE.search(text)
    return int(found[1]) if found else None


def _usage(found: Mapping[str, Any]) -> Usage:
    return Usage(
        input=whole(found.get("input_tokens")),
        output=whole(found.get("output_tokens")),
        cache_write=whole(found.get("cache_creation_input_tokens")),
        cache_read=whole(found.get("cache_read_input_tokens")),
    )
