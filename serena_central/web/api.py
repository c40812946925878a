"""The handlers of /api and /health, for scripts, the command line and clients that cannot end a session over MCP.

Handlers return plain data or raise errors of `core/errors`; `responses` serializes both, `routes` maps paths to
handlers. Tools are called in the same way as by agents.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request

from serena_central.access.auth import credential_of
from serena_central.access.connections import Connections
from serena_central.access.proof import Prover
from serena_central.access.working_folder import working_folder
from serena_central.core import tracing
from serena_central.core.descriptors import Descriptors, limit
from serena_central.core.errors import InvalidArguments, SessionNotFound
from serena_central.core.progress import Listener
from serena_central.projects.editing.undo import undo, undo_session
from serena_central.projects.root_policy import PERSON
from serena_central.sessions.earlier import read_earlier_calls
from serena_central.sessions.session import ClientIdentity, Session
from serena_central.standalone.proof import NONCE
from serena_central.store.query_results import EditFilter
from serena_central.web.api_answers import (
    EditList,
    ProjectList,
    Restarted,
    SessionList,
    Statistics,
    Stopped,
    Stopping,
    ToolList,
    Undone,
    UndoneEdits,
)
from serena_central.web.cursors import Cursors
from serena_central.web.hangup import until_hung_up
from serena_central.web.lines import Lines
from serena_central.web.ownership import by_of, check_edits, own_projects, own_session, owner_of
from serena_central.web.query import limit_in, seconds_in
from serena_central.web.responses import body_of
from serena_central.web.views import (
    edit_view,
    event_pages,
    server_id,
    server_named,
    server_view,
    session_details,
    store_view,
    tool_statistics,
    tool_view,
)
from serena_central.web.web_services import WebServices

HOOK_HEADER = "x-serena-hook"
"""Set by the command line within a hook. It takes rights away and gives none."""

PERSON_HEADER = "x-serena-person"
"""Set by the command line: a person typed this. Scripts and hooks, which work for agents, leave it out. It is no proof
(see `Opener` in projects/root_policy.py)."""

UNDO_S = 3600.0
"""Of a session's newest edits, what is undone where the request does not say since when."""

SESSIONS = Cursors("sessions", tuple[float, str])
PROJECTS = Cursors("projects", tuple[str])
SERVERS = Cursors("servers", tuple[str, str, str, int])
EDITS = Cursors("edits", tuple[float, str])
EVENTS = Cursors("events", tuple[Annotated[int, Meta(ge=0, le=2**63 - 1)]])


class OpenSession(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/sessions: a script's own session, that it names in its calls and closes in the end."""

    client_name: str = "script"
    client_version: str = ""
    working_folder: str | None = None
    context: str | None = None


class CallTool(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/tools/NAME. Without `session`, the call belongs to a session shared by all who name none.

    With `progress` it is answered by `Lines`.
    """

    arguments: dict[str, Any] = {}
    session: str | None = None
    progress: bool = False


@dataclass(frozen=True)
class Api:
    """The handlers of the route table, over the parts of the server that they show and steer."""

    parts: WebServices
    prover: Prover
    connections: Connections
    descriptors: Descriptors
    stop: Callable[[], None]
    """Begins the server's stop, and returns at once."""

    async def health(self, request: Request) -> Any:
        """Health, without authentication. A `nonce` is answered with the proof that this server belongs to the token's
        owner."""
        said = {
            "status": "ok",
            "version": self.parts.version,
            "uptime_s": round(self.parts.uptime(), 3),
        }
        nonce = request.query_params.get("nonce")
        if nonce is None:
            return said
        if not NONCE.fullmatch(nonce):
            raise InvalidArguments("nonce must be 64 hexadecimal digits, in lower case.")
        return {**said, "proof": self.prover.proof(request.scope, nonce)}

    # --- sessions --------------------------------------------------------------------------------------------------

    async def list_sessions(self, request: Request) -> SessionList:
        """Newest activity first; `state`, `client` and `project` (name or root) choose."""
        query, owner = request.query_params, owner_of(request)
        chosen = [
            self.parts.sessions.snapshot(session)
            for session in self.parts.sessions.sessions()
            if owner in (None, session.credential)
        ]
        chosen = [
            one
            for one in chosen
            if query.get("state", one.state) == one.state
            and query.get("client", one.client_name) == one.client_name
            and query.get("project") in (None, one.project_name, one.project_root)
        ]
        page, cursor = SESSIONS.page(request, chosen, lambda one: (-one.last_activity, one.session_id))
        return {"sessions": page, "total": len(chosen), "next_cursor": cursor}

    async def open_session(self, request: Request) -> Any:
        """A session of its own for a script, which names it in its calls and closes it in the end."""
        asked = await body_of(request, OpenSession)
        session = self.parts.sessions.identify(
            ClientIdentity(
                credential=credential_of(request.scope),
                explicit_id=self.parts.sessions.new_id(),
                client_name=asked.client_name,
                client_version=asked.client_version,
                working_folder=asked.working_folder or working_folder(request.scope["headers"]),
                context=asked.context,
            )
        )
        return self.parts.sessions.snapshot(session)

    async def show_session(self, request: Request) -> Any:
        """`limit` is of log lines."""
        session = own_session(request, self.parts.sessions, request.path_params["session"])
        return {
            **msgspec.structs.asdict(self.parts.sessions.snapshot(session)),
            **session_details(session, limit_in(request), await read_earlier_calls(session, self.parts.store)),
        }

    async def kill_session(self, request: Request) -> Any:
        """Ends its calls, and refuses it from now on."""
        session = own_session(request, self.parts.sessions, request.path_params["session"])
        return self.parts.sessions.snapshot(self.parts.sessions.terminate(session.id, by_of(request)))

    async def close_session(self, request: Request) -> Any:
        """The goodbye of clients whose protocol knows none."""
        session = self.parts.sessions.get(request.path_params["session"])
        if session.credential != credential_of(request.scope):
            raise SessionNotFound(session.id)
        self.parts.sessions.disconnect(session.id, "it disconnected", for_good=True)
        return self.parts.sessions.snapshot(session)

    async def revive_session(self, request: Request) -> Any:
        """It may call again."""
        return self.parts.sessions.snapshot(self.parts.sessions.revive(request.path_params["session"]))

    # --- tools -----------------------------------------------------------------------------------------------------

    async def list_tools(self, request: Request) -> ToolList:
        """What `session` (else the session shared by all who name none) is shown; with `unlisted` the others, too."""
        session = self._session_of(request, request.query_params.get("session"))
        tools = [tool_view(tool) for tool in self.parts.caller.tools_for(session)]
        if request.query_params.get("unlisted") == "true":
            others = self.parts.caller.unlisted_tools_for(session)
            tools += [tool_view(tool, listed=False, refused=why) for tool, why in others]
        return {"tools": tools}

    async def call_tool(self, request: Request) -> Any:
        """By the same way as an agent's call. Without `session` it belongs to the session that all share who name none;
        an id that is not known begins a session. With `progress`, lines of JSON tell how far it is."""
        asked = await body_of(request, CallTool)
        session = self._session_of(request, asked.session)
        person, hook = request.headers.get(PERSON_HEADER) == "yes", request.headers.get(HOOK_HEADER, "")

        async def work(say: Listener | None = None) -> Any:
            with tracing.continuing(request.headers):
                answer = await self.parts.caller.call(
                    session,
                    request.path_params["tool"],
                    asked.arguments,
                    on_progress=say,
                    person=person,
                    from_hook=hook,
                )
            return {
                "blocks": answer.blocks,
                "shortened": answer.shortened,
                "failed": answer.failed,
                "token_estimate": answer.token_estimate,
            }

        return Lines(work) if asked.progress else await until_hung_up(request, work)

    def _session_of(self, request: Request, session_id: str | None) -> Session:
        return self.parts.sessions.identify(
            ClientIdentity(
                credential=credential_of(request.scope),
                explicit_id=session_id,
                client_name=request.headers.get("user-agent", "").partition("/")[0],
                working_folder=working_folder(request.scope["headers"]),
            )
        )

    # --- projects and language servers -----------------------------------------------------------------------------

    async def list_projects(self, request: Request) -> ProjectList:
        """`open` (true or false) chooses."""
        wanted = request.query_params.get("open")
        projects = own_projects(request, self.parts.projects).snapshots()
        chosen = [one for one in projects if wanted is None or one.open == (wanted == "true")]
        page, cursor = PROJECTS.page(request, chosen, lambda one: (one.root,))
        return {"projects": page, "total": len(chosen), "next_cursor": cursor}

    async def list_servers(self, request: Request) -> Any:
        """`state`, `server` (its name) and `root` choose. `policy` is what the pool goes by."""
        query = request.query_params
        chosen = [
            one
            for one in self.parts.pool.snapshot()
            if query.get("state", one.state) == one.state
            and query.get("server", one.server) == one.server
            and query.get("root", str(one.root)) == str(one.root)
        ]
        page, cursor = SERVERS.page(
            request, chosen, lambda one: (str(one.root), one.server, server_id(one.key), -one.run)
        )
        return {
            "servers": list(map(server_view, page)),
            "total": len(chosen),
            "next_cursor": cursor,
            "policy": self.parts.pool.policy,
            "memory_budget_bytes": self.parts.pool.memory_budget_bytes,
        }

    async def restart_server(self, request: Request) -> Restarted:
        """Ends its runs and a pause after failures, and waits for a new start."""
        key = server_named(self.parts.pool, request.path_params["server"])
        await self.parts.pool.restart(key, "requested over the API")
        return {"restarted": request.path_params["server"]}

    async def stop_server(self, request: Request) -> Stopped:
        """Until a call needs it."""
        key = server_named(self.parts.pool, request.path_params["server"])
        await self.parts.pool.stop(key, "requested over the API")
        return {"stopped": request.path_params["server"]}

    # --- edits -----------------------------------------------------------------------------------------------------

    async def list_edits(self, request: Request) -> EditList:
        """Newest first; `session`, `project` (name or root), `file` (root-relative) and `symbol` choose, `since` and
        `before` (Unix seconds) bound."""
        query, limit = request.query_params, limit_in(request)
        project = query.get("project")
        projects = own_projects(request, self.parts.projects)
        wanted = EditFilter(
            owner=owner_of(request),
            session=query.get("session"),
            project=str(projects.find(project, PERSON)) if project else None,
            file=query.get("file"),
            symbol=query.get("symbol"),
            since=seconds_in(request, "since") or 0.0,
            before=seconds_in(request, "before"),
            behind=EDITS.read(request),
            limit=limit + 1,
        )
        rows = await self.parts.history.edits(wanted)
        page = rows[:limit]
        cursor = EDITS.write((page[-1].at, page[-1].id)) if page and len(rows) > limit else None
        return {"edits": list(map(edit_view, page)), "next_cursor": cursor}

    async def undo_edit(self, request: Request) -> Undone:
        """In all projects that it changed."""
        edit, projects = request.path_params["edit"], own_projects(request, self.parts.projects)
        await check_edits(owner_of(request), edit, self.parts)
        undone = await undo(edit, self.parts.history, projects, by=by_of(request))
        return {"edit": undone.id, "files": undone.files}

    async def undo_session(self, request: Request) -> UndoneEdits:
        """Undoes what a session edited since `since` (Unix seconds; else in the last hour), as far as that can be."""
        since = seconds_in(request, "since")
        if owner_of(request) is not None:
            own_session(request, self.parts.sessions, request.path_params["session"])
        done = await undo_session(
            request.path_params["session"],
            time.time() - UNDO_S if since is None else since,
            self.parts.history,
            own_projects(request, self.parts.projects),
            by=by_of(request),
        )
        if not done.undone and not done.refused:
            self.parts.sessions.get(request.path_params["session"])  # raises SessionNotFound
        refused = {edit: str(error) for edit, error in done.refused.items()}
        return {"undone": done.undone, "refused": refused, "more": done.more}

    # --- the whole -------------------------------------------------------------------------------------------------

    async def list_events(self, request: Request) -> Any:
        """Newest first. Where the database can't be read: the newest ones, and a note."""
        before = EVENTS.read(request)
        if self.parts.store.writer.problem is None:
            await self.parts.store.writer.flush()
        query = {**request.query_params, **({"before": str(before[0])} if before else {})}
        own = {one.id for one in self.parts.sessions.sessions() if one.credential == owner_of(request)}
        limit, owner = limit_in(request), owner_of(request)
        found = await event_pages(self.parts.store, self.parts.bus, query, limit, owner=owner, own=own)
        last = found.pop("next_before")
        return {**found, "next_cursor": None if last is None else EVENTS.write((last,))}

    async def show_statistics(self, _request: Request) -> Statistics:
        """Since this start of the server."""
        sessions = self.parts.sessions.sessions()
        servers = self.parts.pool.snapshot()
        return {
            "uptime_s": round(self.parts.uptime(), 3),
            "sessions": Counter(one.state for one in self.parts.sessions.snapshots()),
            "servers": Counter(one.state for one in servers),
            "server_memory_bytes": sum(one.memory_bytes for one in servers),
            "projects_open": len(self.parts.projects.open_projects()),
            "calls": sum(session.calls for session in sessions),
            "errors": sum(session.errors for session in sessions),
            "running": sum(len(session.running) for session in sessions),
            "store": store_view(self.parts.store.writer),
            "connections": self.connections.count(),
            "descriptors": {"limit": limit(), "exhausted_at": self.descriptors.exhausted_at},
            "tools": tool_statistics(*(session.tools for session in sessions)),
            "settings_not_in_force": await self.parts.live_settings.not_in_force(),
        }

    async def shut_down(self, _request: Request) -> Stopping:
        """In order: calls that run are answered."""
        self.stop()
        return {"stopping": True}
