"""Turns a tool's name and arguments, as people or the store have them, into what hooks are compared with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serena_central.gates.matching import ToolUse


def use_of(name: str, arguments: Mapping[str, Any], root: Path, files: Sequence[str] = ()) -> ToolUse:
    """A use of a tool of this server, or of the format's (`Bash`, `Edit`). `files` are relative to the root; without
    any, the one that the arguments name."""
    # Late: all tools and what they are made of, a third of a second, for which only trials ask.
    from serena_central.tools.families import CATALOGUE
    from serena_central.tools.tool_effects import SHELL, hook_names

    tool = CATALOGUE.get(name)
    path = arguments.get("relative_path") or arguments.get("file_path")
    named = files or ([path] if isinstance(path, str) and path else [])
    paths = [str(root / one) for one in named]
    command = arguments.get("command")
    if tool is not None:
        effect, names = hook_names(tool)
        line = command if tool.name == SHELL and isinstance(command, str) else None
        return ToolUse(names, effect, arguments, command=line, files=paths)
    if name == "Bash":
        return ToolUse((name,), "run", arguments, command=str(command or ""))
    return ToolUse((name,), "edit" if name in ("Edit", "Write", "MultiEdit") else "read", arguments, files=paths)
