"""Workflows as MCP prompts."""

from collections.abc import Mapping
from typing import Any

from serena_central.core.errors import InvalidArguments
from serena_central.mcp_server.errors import RequestRefused
from serena_central.tools.workflow_prompts import WORKFLOWS, WorkflowPrompt


class WorkflowPrompts:
    """The `Prompts` of the server itself."""

    def listed(self) -> list[dict[str, Any]]:
        return [_listed(one) for one in WORKFLOWS.values()]

    async def get(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        found = WORKFLOWS.get(name)
        if found is None:
            names = ", ".join(WORKFLOWS)
            raise RequestRefused(f"There is no prompt {name!r}. Prompts: {names}.")
        try:
            text = found.text(arguments)
        except InvalidArguments as error:
            raise RequestRefused(str(error)) from error
        content = {"type": "text", "text": text}
        return {"description": found.description, "messages": [{"role": "user", "content": content}]}


def _listed(one: WorkflowPrompt) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "description": one.description,
        "arguments": [argument._asdict() for argument in one.arguments],
    }
