"""A project's memories, overview and findings as MCP resources. What they hold is what tools answer, by the same way:
permissions, frames, bounds and records are theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from serena_central.core.decoding import from_json
from serena_central.core.errors import MemoryNotFound, SerenaCentralError, UnknownProject
from serena_central.mcp_server.errors import RequestRefused
from serena_central.sessions.session import Session
from serena_central.tools.call import ToolCaller

OWN_SCHEME = "serena:"
"""Of our own resources; all others are of other MCP servers."""

PREFIX = f"{OWN_SCHEME}//projects/"

MARKDOWN, JSON = "text/markdown", "application/json"

OVERVIEW: Mapping[str, Mapping[str, Any]] = {
    "list_dir": {"relative_path": "."},
    "get_symbols_overview": {"relative_path": "."},
    "list_memories": {},
}
"""The calls whose answers are a project's overview."""

FINDINGS: Mapping[str, Mapping[str, Any]] = {"check_references": {}, "find_unused_symbols": {}}

PARTS = {
    "overview": ("Overview", "Folders, symbols and memories of the project", OVERVIEW),
    "findings": ("Open findings", "Unresolved references and unused symbols; is computed when it is read", FINDINGS),
}

TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": f"{PREFIX}{{project}}/memories/{{+memory}}",
        "name": "memory",
        "title": "Memory of a project",
        "mimeType": MARKDOWN,
    },
    *(
        {"uriTemplate": f"{PREFIX}{{project}}/{name}", "name": name, "title": title, "mimeType": MARKDOWN}
        for name, (title, _, _) in PARTS.items()
    ),
]


def memory_uri(project: str, name: str) -> str:
    return f"{PREFIX}{quote(project, safe='')}/memories/{quote(name, safe='/')}"


class ProjectResources:
    """The `Resources` of the server itself."""

    templates: Sequence[Mapping[str, Any]] = TEMPLATES

    async def listed(self, caller: ToolCaller, session: Session) -> list[dict[str, Any]]:
        """The resources of the project that a session works on; none where that is not known."""
        try:
            answer = await caller.call(session, "list_memories", {})
        except SerenaCentralError:  # no project, or memories are switched off or closed by a rule
            return []
        project = session.project
        if project is None:
            return []
        names: list[str] = from_json(answer.data or "{}", dict[str, Any]).get("memories", [])
        return [
            *(
                {
                    "uri": f"{PREFIX}{quote(project.name, safe='')}/{part}",
                    "name": f"{project.name}/{part}",
                    "title": title,
                    "description": description,
                    "mimeType": MARKDOWN,
                }
                for part, (title, description, _) in PARTS.items()
            ),
            *(
                {
                    "uri": memory_uri(project.name, name),
                    "name": name,
                    "title": f"Memory {name}",
                    "mimeType": MARKDOWN,
                }
                for name in names
            ),
        ]

    async def read(self, caller: ToolCaller, session: Session, uri: str) -> dict[str, Any]:
        """The contents of one resource.

        Raises:
            RequestRefused: there is none of this URI.
            SerenaCentralError: a tool refused.
        """
        project, _, rest = uri.removeprefix(PREFIX).partition("/")
        if not uri.startswith(PREFIX) or not project:
            raise not_found(uri)
        given, part = {"project": unquote(project)}, PARTS.get(rest)
        try:
            if part is not None:
                text = await _answers(caller, session, part[2], given)
            elif rest.startswith("memories/"):
                name = unquote(rest.removeprefix("memories/"))
                text = "\n".join((await caller.call(session, "read_memory", {**given, "memory_name": name})).blocks)
            else:
                raise not_found(uri)
        except (MemoryNotFound, UnknownProject) as error:
            raise not_found(uri, str(error)) from error
        return {"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text}]}


async def _answers(
    caller: ToolCaller, session: Session, calls: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> str:
    """Answers of several tools, each under its name; a refusal stands for itself."""
    parts: list[str] = []
    for tool, arguments in calls.items():
        try:
            blocks = (await caller.call(session, tool, {**arguments, **given})).blocks
        except UnknownProject:
            raise
        except SerenaCentralError as error:
            blocks = [str(error)]
        parts.append(f"## {tool}\n\n" + "\n".join(blocks))
    return "\n\n".join(parts)


def not_found(uri: str, why: str = "") -> RequestRefused:
    return RequestRefused(f"Resource not found. {why}".strip(), data={"uri": uri})
