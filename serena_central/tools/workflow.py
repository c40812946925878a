"""Tools about the session and its projects: activate, list, restart, and how to work here."""

from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.errors import InvalidArguments, ToolRefused
from serena_central.projects.project import Project
from serena_central.sessions.session import ActiveProject
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall

INSTRUCTIONS = """\
These tools read code by symbol instead of by text. Work from the outline to the detail:
1. get_symbols_overview shows what a file or folder defines; find_symbol finds a definition anywhere by its name path
   (Class/method), with include_body=true its source, with depth=1 its members.
2. find_referencing_symbols shows who uses a symbol, find_implementations who implements it, find_declaration where a
   name comes from, get_symbol_context all of it at a glance. get_diagnostics_for_file tells errors.
3. search_for_pattern, find_file, list_dir and read_file are for what is no symbol: texts, configuration, documents.
Read whole files only when you need all of them. Lines are counted from 0.
Which project a call means: its `project` argument (name, path, list or "*"), else the session's active project
(activate_project), else the folder you were started in. Lines after an answer qualify it: read them.
"""


@tool("Activate project", reads=False, idempotent=True, ignored=("session",))
async def activate_project(
    call: ToolCall, project: Annotated[str, Meta(description="Name or absolute path of the project")]
) -> str:
    """Makes a project this session's default, and opens it. Other sessions are not affected."""
    registry = call.services.projects
    opened = await registry.open(registry.find(project))
    if call.session.shared:
        raise ToolRefused(
            "This session may be shared by several windows, so that no project can be made its default. "
            f"Pass project={opened.name!r} in each call, or have the client send a header X-Serena-Session of its own."
        )
    call.services.sessions.activate(call.session, ActiveProject(opened.name, str(opened.root)))
    prompt = f"\n{opened.settings.initial_prompt}" if opened.settings.initial_prompt else ""
    languages = ", ".join(sorted(opened.languages_in_use())) or "none that is known"
    return f"{opened.name} is active: {opened.root}, {len(opened.tree.files)} files, languages: {languages}.{prompt}"


@tool("Current configuration")
async def get_current_config(call: ToolCall) -> dict[str, Any]:
    """This session: its id, client, active project, modes, tools, and the known projects."""
    session = call.session
    active = session.active_project
    return {
        "session": session.id,
        "client": f"{session.client_name} {session.client_version}".strip(),
        "shared": session.shared,
        "active_project": {"name": active.name, "root": active.root} if active else None,
        "working_folder": session.working_folder,
        "modes": list(session.modes),
        "projects": call.services.projects.known_names(),
        "tools": [tool.name for tool in call.services.tools_for(session)],
    }


@tool("List projects")
async def list_projects(call: ToolCall) -> list[Any]:
    """Known projects: name, root, whether open, how many files are indexed, and the state of their language servers."""
    servers: dict[str, list[dict[str, str]]] = {}
    for server in call.services.pool.snapshot():
        servers.setdefault(str(server.root), []).append({"server": server.server, "state": str(server.state)})
    return [
        {
            "name": known.name,
            "root": known.root,
            "open": known.open,
            "files": known.files,
            "indexed": known.indexed,
            "sessions": known.sessions,
            "servers": servers.get(known.root, []),
        }
        for known in call.services.projects.snapshots()
    ]


@tool(
    "Remove project",
    reads=False,
    destructive=False,
    idempotent=True,
    shown="optional",
    aliases={"project_name": "project"},
)
async def remove_project(
    call: ToolCall, project: Annotated[str, Meta(description="Name or absolute path of the project")]
) -> str:
    """Takes a project off the list of known ones. Its files are not touched."""
    root = call.services.projects.find(project)
    call.services.projects.forget(root)
    call.services.sessions.forget_project(str(root))
    return f"{root} is no longer on the list. Its files are untouched."


@tool("Restart language server", reads=False, idempotent=True, shown="optional")
async def restart_language_server(
    call: ToolCall,
    target: Project,
    language: Annotated[str, Meta(description="Language or server name; empty: all of the project")] = "",
) -> dict[str, Any]:
    """Ends the project's language servers; the next question starts them afresh."""
    # A key may be shown twice: its current run beside one that still drains.
    known = {server.key: server for server in call.services.pool.snapshot() if server.root in target.languages.roots}
    chosen = [one for one in known.values() if not language or language in (one.server, *one.languages)]
    if language and not chosen:
        running = ", ".join(one.server for one in known.values()) or "none"
        raise InvalidArguments(f"No language server {language!r} runs for {target.name}. Running: {running}.")
    for server in chosen:
        await call.services.pool.restart(server.key, f"asked by session {call.session.id}")
    target.indexer.ask_again()
    return {"restarted": [server.server for server in chosen]}


@tool("How to use these tools")
async def initial_instructions(call: ToolCall) -> str:
    """How to work with these tools. Read it once at the start of a conversation."""
    return INSTRUCTIONS
