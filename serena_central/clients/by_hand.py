"""Clients that `connect` cannot configure by a file: it prints what a person pastes, and where.

JetBrains' AI Assistant keeps its servers in the IDE's own settings; Goose in YAML with comments of its user's.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

from serena_central.clients.client import Proxy, plain_stdio


class ByHand(NamedTuple):
    """`where` ends a sentence that begins with "Paste this"; `text` makes what is pasted."""

    name: str
    title: str
    where: str
    text: Callable[[Proxy], str]


def _json(proxy: Proxy) -> str:
    return json.dumps({"mcpServers": {"serena": plain_stdio(proxy)}}, indent=2)


def _goose(proxy: Proxy) -> str:
    # A JSON string is a YAML string.
    lines = [
        "extensions:",
        "  serena:",
        "    enabled: true",
        "    type: stdio",
        "    name: serena",
        f"    cmd: {json.dumps(proxy.command)}",
        "    args: []",
        f"    envs: {json.dumps(dict(proxy.environment))}",
        "    timeout: 300",
    ]
    return "\n".join(lines)


BY_HAND: dict[str, ByHand] = {
    one.name: one
    for one in (
        ByHand(
            "jetbrains",
            "JetBrains AI Assistant",
            "into Settings | Tools | AI Assistant | Model Context Protocol (MCP) | Add | As JSON, and set the working "
            "directory to your project. For Junie, `serena-central connect junie` writes the file",
            _json,
        ),
        ByHand(
            "goose",
            "Goose",
            "into ~/.config/goose/config.yaml (on Windows %APPDATA%\\Block\\goose\\config\\config.yaml), under "
            "`extensions` where that exists, and start a new session",
            _goose,
        ),
    )
}
