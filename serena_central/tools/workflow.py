"""Tools about the session and its projects: activate, list, switch modes, restart."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.core.decoding import from_json
from serena_central.core.errors import InvalidArguments, ToolRefused
from serena_central.core.quoting import escaped, quoted
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.pool.state import RunState
from serena_central.projects.project import Project
from serena_central.projects.registry import ProjectSnapshot
from serena_central.sessions.session import ActiveProject
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.guidance import project_prompt
from serena_central.tools.modules import as_json, introduction
from serena_central.tools.notes import note_settings_problems, note_tree


@tool("Activate project", reads=False, own_session=True, idempotent=True, ignored=("session",))
async def activate_project(
    call: ToolCall, project: Annotated[str, Meta(description="Name or absolute path of the project")]
) -> str:
    """Makes a project this session's default, and opens it. Other sessions are not affected."""
    registry, repos = call.services.projects, call.services.super_repos
    around = call.services.offer.super_repo(call.session)
    module = around.modules.get(project) if around else None
    opened = await registry.open(module.root if module else registry.find(project, call.opener))
    if call.session.shared:
        raise ToolRefused(
            "Several clients may share this session, so it has no active project. "
            f"Pass project={quoted(opened.name)} in each call, or have the client send its own X-Serena-Session "
            "header."
        )
    call.services.sessions.activate(call.session, ActiveProject(opened.name, str(opened.root)))
    for problem in repos.problems_at(opened.root):
        call.note(f"Settings: {problem}")
    note_settings_problems(call, opened)
    call.note_restrictions(opened)
    prompt = f"\n{project_prompt(opened)}" if opened.settings.initial_prompt else ""
    repo = repos.at(opened.root)
    if repo is not None:
        return f"{introduction(repo)}{prompt}"
    await opened.fresh()
    note_tree(call, opened)
    if opened.tree.mostly_ignored:
        call.note(opened.tree.mostly_ignored)
    languages = ", ".join(sorted(await opened.languages_in_use())) or "none recognized"
    what = f"{quoted(opened.root)}, {len(opened.tree.files)} files, languages: {languages}"
    return f"{quoted(opened.name)} is active ({what}).{prompt}"


@tool("Current configuration")
async def get_current_config(call: ToolCall) -> dict[str, Any]:
    """This session: its id, client, active project, modes, tools, and the known projects."""
    session, offer = call.session, call.services.offer
    active = session.active_project
    repo = offer.super_repo(session)
    for problem in call.services.super_repos.problems_at(repo.root) if repo else ():
        call.note(f"Settings: {problem}")
    return {
        "session": session.id,
        "client": f"{session.client_name} {session.client_version}".strip(),
        "shared": session.shared,
        "active_project": {"name": active.name, "root": active.root} if active else None,
        "working_folder": session.working_folder,
        "super_repo": as_json(repo) if repo else None,
        "context": offer.context(session).name,
        "modes": [mode.name for mode in offer.modes(session)],
        "projects": call.services.projects.known_names(),
        "tools": [tool.name for tool in offer.listed(session)],
    }


@tool(
    "List projects",
    answers="list of {name, root, open, files, indexed, sessions, servers}",
    if_empty="No project is known yet: pass the absolute path of a folder as project=.",
)
async def list_projects(call: ToolCall) -> list[Any]:
    """Known projects, their files and language servers. All tools take project (name or path, several with commas, "*"
    for all that are open) and semantic_context (the task in words, which picks the project)."""
    repo = call.services.offer.super_repo(call.session)
    modules = {str(module.root): repo.name for module in repo.modules.values()} if repo else {}
    now = time.time()
    projects = call.services.projects.snapshots()
    servers = servers_by_project(call.services.pool.snapshot(), [Path(known.root) for known in projects])
    entries = [
        {
            "name": known.name,
            "root": known.root,
            "open": known.open,
            "files": known.files,
            "indexed": known.indexed,
            **_waiting(known),
            "sessions": known.sessions,
            **({"note": known.note} if known.note else {}),
            "servers": servers.get(Path(known.root), []),
            **({"installing": [one.text(now) for one in known.installing]} if known.installing else {}),
            **({"given_up": known.given_up} if known.given_up else {}),
            **({"side_languages": [*known.side_languages.values()]} if known.side_languages else {}),
            **({"module_of": modules[known.root]} if known.root in modules else {}),
        }
        for known in projects
    ]
    holders = call.services.held_elsewhere.by
    return entries if holders is None else _as_held(call, entries, await holders.listed(call.session))


NOT_ASKED = "Nothing has asked its project host yet through this server: what is open there is not known."

NO_ANSWER = "Its project host does not answer: what is open there is not known."


def _as_held(
    call: ToolCall, entries: list[dict[str, Any]], held: Mapping[str, dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """The entries of projects that hosts hold, which this process does not open, and of what lies below those."""
    active = Counter(one.active_project.root for one in call.services.sessions.sessions() if one.active_project)
    known = {entry["root"]: entry for entry in entries}
    told = {root: {**entry, "sessions": active[root]} for root, entry in held.items() if entry is not None}
    for root, entry in known.items():
        if root in told:
            told[root]["sessions"] = entry["sessions"]
        else:
            told[root] = {**entry, "note": NO_ANSWER if root in held else NOT_ASKED}
    return [*(told[root] for root in known), *(entry for root, entry in told.items() if root not in known)]


def servers_by_project(servers: Iterable[ServerSnapshot], roots: Collection[Path]) -> dict[Path, list[dict[str, str]]]:
    """Root of a project → its language servers; one of a nested root belongs to the innermost project around it. One
    that has ended is shown where no other of its name has come to its root since, with other settings or trust."""
    servers = list(servers)
    there = {(one.root, one.server) for one in servers if one.state is not RunState.DISCONNECTED}
    newest = {(one.root, one.server): one for one in servers}
    found: dict[Path, list[dict[str, str]]] = {}
    for server in servers:
        place = server.root, server.server
        if server.state is RunState.DISCONNECTED and (place in there or newest[place] is not server):
            continue
        root = next((one for one in (server.root, *server.root.parents) if one in roots), None)
        if root is None:
            continue
        shown = {"server": server.server, "state": "not installed" if server.missing else str(server.state)}
        if server.root != root:
            shown["folder"] = escaped(server.root.relative_to(root).as_posix())
        found.setdefault(root, []).append(shown)
    return found


def _waiting(known: ProjectSnapshot) -> dict[str, float | None]:
    """Files that are not indexed yet, if there are any, how fast they are, and when they will be."""
    if not known.pending:
        return {}
    left = known.seconds_left
    return {
        "waiting": known.pending,
        "files_per_s": known.files_per_s,
        "seconds_left": None if left is None else round(left),
    }


@tool("Route words to a module", answers="{module, points and what gave them}", shown="super-repo", takes_words=True)
async def route(call: ToolCall) -> dict[str, Any]:
    """Which module of the super-repo the words in semantic_context are about: points, and what gave them."""
    repo = call.services.offer.super_repo(call.session)
    if repo is None:
        raise ToolRefused("This session is not in a super-repo, so there are no modules to route to.")
    if not call.semantic_context:
        raise InvalidArguments("route requires semantic_context: words that describe the task.")
    return repo.routing(call.semantic_context)


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
    root = call.services.projects.find(project, call.opener)
    call.services.projects.forget(root)
    call.services.sessions.forget_project(str(root))
    return f"{quoted(root)} was removed from the list. Its files were not changed."


@tool("Restart language server", answers="{restarted}", reads=False, idempotent=True, shown="optional")
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
        raise InvalidArguments(
            f"No language server {language!r} is running for {quoted(target.name)}. Running: {running}."
        )
    for server in chosen:
        await call.services.pool.restart(server.key, f"requested by session {call.session.id}")
    target.indexer.ask_again()
    target.navigation.references.ask_again()
    return {"restarted": [server.server for server in chosen]}


@tool("Switch modes", reads=False, own_session=True, idempotent=True)
async def switch_modes(
    call: ToolCall,
    modes: Annotated[list[str], Meta(description="The modes to use from now on; null: the defaults")],
) -> str:
    """Changes how this session works: which tools it is offered, and what it is told."""
    offer, session = call.services.offer, call.session
    unknown = [name for name in modes if name not in offer.profiles.modes]
    if unknown:
        raise InvalidArguments(f"There is no mode {unknown[0]!r}. Modes: {', '.join(sorted(offer.profiles.modes))}.")
    if session.shared:
        raise ToolRefused(
            "Several clients may share this session, so its modes can't be switched. "
            "Have the client send its own X-Serena-Session header, or connect through serena-proxy."
        )
    call.services.sessions.switch_modes(session, list(dict.fromkeys(modes)))
    now = offer.modes(session)
    names = ", ".join(mode.name for mode in now) or "none"
    tools = ", ".join(tool.name for tool in offer.listed(session))
    return "\n".join([f"Modes: {names}.", *(mode.prompt.strip() for mode in now), f"Tools: {tools}."])


@tool("Query another project", shown="optional")
async def query_project(
    call: ToolCall,
    project_name: Annotated[str, Meta(description="Name or absolute path of the project")],
    tool_name: Annotated[str, Meta(description="Name of a read-only tool")],
    tool_params_json: Annotated[str, Meta(description="The tool's arguments as a JSON object")] = "{}",
) -> str:
    """Runs a reading tool on another project. The argument `project` of that tool does the same."""
    asked = call.services.catalogue.get(tool_name)
    if asked is not None and not (asked.read_only and asked.on_project):
        raise ToolRefused(f"{asked.name} can't be called here: query_project only accepts tools that read a project.")
    try:
        arguments = from_json(tool_params_json, dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidArguments(f"query_project: tool_params_json is not a JSON object: {error}.") from error
    answer = await call.run(call.session, tool_name, {**arguments, "project": project_name})
    for block in answer.blocks[1:]:
        for note in block.splitlines():
            call.note(note)
    return answer.blocks[0]


@tool(
    "List projects that can be queried",
    answers="list of names",
    shown="optional",
    if_empty="No project is known yet: pass the absolute path of a folder as project_name.",
)
async def list_queryable_projects(call: ToolCall) -> list[str]:
    """Names of the projects that query_project and the argument `project` of every tool accept."""
    return call.services.projects.known_names()
