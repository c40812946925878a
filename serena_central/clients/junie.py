"""Junie, JetBrains' agent: `.junie/mcp/mcp.json` at home or in a project. It connects over stdio alone.

https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html
"""

from pathlib import Path

from serena_central.clients.client import JSON, Client, Machine


def user_files(machine: Machine) -> tuple[Path, ...]:
    return (machine.home / ".junie" / "mcp" / "mcp.json",)


CLIENT = Client(
    name="junie",
    title="Junie",
    about="The agent of JetBrains IDEs. For AI Assistant, `serena-central connect jetbrains` prints what to paste.",
    form=JSON,
    servers=("mcpServers",),
    user_files=user_files,
    project_files=(".junie/mcp/mcp.json",),
    then="Settings | Tools | Junie | MCP Settings shows the connection.",
)
