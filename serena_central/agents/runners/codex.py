"""Codex without a terminal: `codex exec --json`.

Its own configuration counts, but for its MCP servers, apps and plugins: it has this server alone. CLAUDE.md and the
system prompt are developer instructions. Codex reads, searches and edits by its shell; an agent whose definition names
tools gets the shell only if `Bash` is among them, and writes nothing but through this server unless `Edit`, `Write` or
`Bash` is.
"""

import json
import os
import re
import shlex
import tomllib
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
from serena_central.core.nofollow import read_following

OTHER_MCP = ("apps", "plugins")
"""Features by which it gets MCP servers that its configuration does not name."""

EDITS = ("Edit", "MultiEdit", "Write")

OWN_TOOLS: Mapping[str, tuple[str, ...]] = {
    "shell_tool": ("Bash",),
    "unified_exec": ("Bash",),
    "view_image": ("Read",),
    "multi_agent": ("Task", "Agent"),
    "image_generation": (),
    "goals": (),
}
"""Features that are tools of its own → the names in a definition, any of which allows them."""

MAX_ARGUMENT = 100_000
"""Bytes of developer instructions; Linux takes 128 KiB in one argument. Longer ones stand before the instruction."""


class Codex(CommandRunner):
    """See `tasks.Runner`."""

    name = "codex"
    title = "Codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    variables = re.compile(
        rf"OPENAI_\w+|AZURE_OPENAI_\w+|CODEX_(?:HOME|API_KEY|ACCESS_TOKEN|CA_CERTIFICATE)|{OF_NETWORK}"
    )

    def invocation(self, call: Call) -> Invocation:
        spec, files = call.spec, _files(call)
        configured = list(map(_configured, files))
        taken = {name: mapping(one) for file in configured for name, one in mapping(file.get("mcp_servers")).items()}
        ours = next(name for name in ("serena", "serena_task", f"serena_{spec.id}") if name not in taken)
        servers: dict[str, Any] = {name: _disabled(one) for name, one in taken.items()}
        servers[ours] = {
            "url": call.server.url,
            "bearer_token_env_var": TOKEN,
            "http_headers": {"X-Serena-Session": spec.session},
            "default_tools_approval_mode": "approve",
            "required": True,
        }
        settings: dict[str, Any] = {"mcp_servers": servers, "tools.experimental_request_user_input.enabled": False}
        settings |= {f"features.{name}": False for name in OTHER_MCP}
        for feature, names in OWN_TOOLS.items():
            allowed = own_tool(spec, names)
            if allowed is not None:
                settings[f"features.{feature}"] = allowed
        searches = own_tool(spec, ("WebSearch",))
        if searches is not None:
            settings["web_search"] = "live" if searches else "disabled"
        instructions, given = call.instructions(), spec.instruction
        if len(instructions.encode("utf-8", "replace")) > MAX_ARGUMENT:
            given = f"{instructions}\n\n# Task\n\n{given}"
        elif instructions:
            settings["developer_instructions"] = instructions
        arguments: list[str | Path] = ["exec", "--json", "--skip-git-repo-check", *_sandbox(spec)]
        if spec.model:
            arguments += ["--model", spec.model]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={_toml(value)}"]
        # A project's file may not choose which variables reach whom.
        return Invocation([*arguments, "-"], _keys(configured[:-1], call.environment), given)

    def model_of(self, call: Call) -> str:
        if call.spec.model:
            return call.spec.model
        named = [one["model"] for one in map(_configured, _files(call)) if "model" in one]
        return str(named[-1]) if named else ""

    def read(self, event: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        match event.get("type"):
            case "thread.started":
                reading.resume_id = str(event.get("thread_id") or "") or None
            case "item.started":
                self._begun(mapping(event.get("item")), emit)
            case "item.completed":
                self._item(mapping(event.get("item")), reading, emit)
            case "turn.completed":
                reading.ended = True
                reading.usage = _usage(mapping(event.get("usage")))
            case "turn.failed":
                reading.error = f"Codex: {mapping(event.get('error')).get('message') or 'the turn failed'}"
            case "error":
                emit(Emission(kind="note", text=str(event.get("message"))))
            case _:
                pass

    def _begun(self, item: Mapping[str, Any], emit: Emit) -> None:
        match item.get("type"):
            case "command_execution":
                emit(called("shell", _line(str(item.get("command")))))
            case "mcp_tool_call":
                emit(called(item.get("tool"), item.get("arguments")))
            case "web_search":
                emit(called("web_search", item.get("query")))
            case _:
                pass

    def _item(self, item: Mapping[str, Any], reading: Reading, emit: Emit) -> None:
        match item.get("type"):
            case "agent_message":
                reading.text = str(item.get("text") or "")
                emit(Emission(kind="text", text=reading.text))
            case "command_execution":
                code = item.get("exit_code")
                emit(Emission(kind="note", command=_line(str(item.get("command"))), exit_code=code))
            case "file_change":
                emit(called("apply_patch", item.get("changes")))
            case "error":
                emit(Emission(kind="note", text=str(item.get("message"))))
            case _:
                pass


def _sandbox(spec: TaskSpec) -> list[str]:
    """Where the definition says what may be changed by Codex itself; else as its configuration has it."""
    edits, runs = own_tool(spec, EDITS), own_tool(spec, ("Bash",))
    if edits is None and runs is None:
        return []
    return ["--sandbox", "workspace-write" if edits or runs else "read-only"]


def _files(call: Call) -> tuple[Path, Path, Path]:
    """Its configuration files; the last one is the project's and counts most."""
    own = call.environment.get("CODEX_HOME") or os.path.join(call.environment.get("HOME", ""), ".codex")  # noqa: PTH118
    return Path("/etc/codex/config.toml"), Path(own) / "config.toml", Path(call.spec.root) / ".codex" / "config.toml"


def _configured(file: Path) -> dict[str, Any]:
    """What a file holds. One that can't be read Codex reports itself."""
    try:
        return tomllib.loads(read_following(file).decode("utf-8"))
    except (OSError, ValueError):
        return {}


def _disabled(server: Mapping[str, Any]) -> dict[str, Any]:
    """An MCP server of its configuration, switched off; whole, since Codex may not read the file that it is of."""
    how = {key: server[key] for key in ("command", "url") if isinstance(server.get(key), str)}
    return {**(how or {"command": "false"}), "enabled": False}


def _keys(configured: list[dict[str, Any]], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables in which the providers of its configuration have their keys."""
    providers = [mapping(one) for file in configured for one in mapping(file.get("model_providers")).values()]
    names = {str(one.get("env_key") or "") for one in providers}
    names |= {str(name) for one in providers for name in mapping(one.get("env_http_headers")).values()}
    return {name: environment[name] for name in names if name in environment}


def _line(command: str) -> str:
    """The command line that a shell was given (`/bin/bash -lc 'pytest -q'`)."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def _usage(found: Mapping[str, Any]) -> Usage:
    """Its input tokens include those of the cache."""
    cached, written = whole(found.get("cached_input_tokens")), whole(found.get("cache_write_input_tokens"))
    return Usage(
        input=max(0, whole(found.get("input_tokens")) - cached - written),
        output=whole(found.get("output_tokens")),
        cache_write=written,
        cache_read=cached,
    )


def _toml(value: object) -> str:
    """A value as TOML, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in mapping(value).items()) + "}"  # pyright: ignore[reportUnknownArgumentType]
    # A string of JSON is one of TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
