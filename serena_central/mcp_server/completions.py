"""Completion of what prompts and resource templates ask for: names of projects, memories, symbols and files, found by
the tools that a session may call.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from serena_central.core.decoding import from_json
from serena_central.core.errors import SerenaCentralError
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller

MOST_VALUES = 100
"""What MCP lets a server answer at once."""

SYMBOLS = 50


async def completed(
    caller: ToolCaller, session: Session, argument: str, begun: str, known: Mapping[str, str]
) -> dict[str, Any]:
    """What `completion/complete` answers. `known` are arguments that were filled in before."""
    project = {"project": known["project"]} if known.get("project") else {}
    found: Sequence[str] = []
    with suppress(SerenaCentralError):  # no such project, or a tool that is switched off: there is nothing to offer
        found = await _found(caller, session, argument, begun, project)
    values = list(dict.fromkeys(found))
    shown = values[:MOST_VALUES]
    return {"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}}


async def _found(
    caller: ToolCaller, session: Session, argument: str, begun: str, project: Mapping[str, str]
) -> Sequence[str]:
    async def data(tool: str, **arguments: Any) -> Any:
        answer = await caller.call(session, tool, arguments)
        return from_json(answer.data) if answer.data else None

    names: list[str] = []
    match argument:
        case "project":
            names = [str(one["name"]) for one in await data("list_projects") or ()]
        case "memory":
            names = _names(await data("list_memories", **project), "memories")
        case "symbol" if begun:
            pattern = {"name_path_pattern": begun, "substring_matching": True, "limit": SYMBOLS}
            return [str(one["name_path"]) for one in await data("find_symbol", **pattern, **project) or ()]
        case "path" if begun:
            mask = f"*{begun}*" if "/" not in begun else f"**/{begun.lstrip('/')}*"
            return _names(await data("find_file", file_mask=mask, limit=MOST_VALUES, **project), "files")
        case _:
            return []
    lower = begun.lower()
    fitting = [name for name in names if lower in name.lower()]
    return sorted(fitting, key=lambda name: not name.lower().startswith(lower))


def _names(answer: Any, key: str) -> list[str]:
    return [str(name) for name in cast("dict[str, list[Any]]", answer or {}).get(key, [])]
