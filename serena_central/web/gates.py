"""Gates over /api: events of clients' own hooks; halted sessions, and the way to resume one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from starlette.requests import Request

from serena_central.access.auth import credential_of
from serena_central.core.quoting import quoted
from serena_central.hook.gate import MOST_ANCESTORS
from serena_central.hook.main import GATE_EVENTS
from serena_central.hook.payload import event_of
from serena_central.projects.root_policy import PERSON
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity, Session, shortened
from serena_central.tools.context import Services
from serena_central.tools.gating import Gating
from serena_central.web.query import limit_in
from serena_central.web.responses import NotFound, body_of


class ClientEvent(msgspec.Struct):
    """Body of POST /api/v1/gates/EVENT: what a client's hook was told. `ancestors`: process ids above that hook."""

    client: str
    said: dict[str, Any]
    ancestors: list[int] = []


@dataclass(frozen=True)
class Gates:
    """The handlers."""

    services: Services

    @property
    def gating(self) -> Gating:
        return self.services.gating

    @property
    def sessions(self) -> SessionManager:
        return self.services.sessions

    async def run(self, request: Request) -> Any:
        """Runs the hooks that an event of a client's own tools concerns."""
        name = request.path_params["event"]
        if name not in GATE_EVENTS:
            raise NotFound(f"There is no event {quoted(name)}. Events are {', '.join(GATE_EVENTS)}.")
        asked = await body_of(request, ClientEvent)
        session = self._session(asked, credential_of(request.scope))
        # Late: a server without hooks does not load what runs them.
        from serena_central.tools.native_gate import native_event

        return await native_event(
            self.services, session, name, asked.client, asked.said, asked.ancestors[:MOST_ANCESTORS]
        )

    def _session(self, asked: ClientEvent, credential: str) -> Session:
        """The session of the client's window where its process is known, else one of its conversation."""
        happened = event_of(asked.said)
        for session in reversed(self.sessions.sessions()):
            if session.client_pid in asked.ancestors and session.credential == credential:
                session.note_conversation(happened.session)
                return session
        return self.sessions.identify(
            ClientIdentity(
                credential=credential,
                conversation_id=happened.session or "unknown",
                client_name=asked.client,
                working_folder=happened.folder or None,
            )
        )

    async def list_hooks(self, request: Request) -> Any:
        """Hooks of a project by event, in the order in which they run; also those that are held back."""
        root = self._root(request)
        found = self.services.claude.of(root)
        if found is None or not found.has_hooks:
            return {"root": str(root), "hooks": []}
        from serena_central.gates.listing import listed

        return {"root": str(root), "hooks": listed(found, self.services.trust.standing(root))}

    async def list_runs(self, request: Request) -> Any:
        """The newest runs of hooks in a project, the newest first."""
        from serena_central.gates import log

        root, limit = self._root(request), limit_in(request)
        return {"root": str(root), "runs": await anyio.to_thread.run_sync(log.newest, root, limit)}

    def _root(self, request: Request) -> Path:
        return self.services.projects.find(request.query_params["project"], PERSON)

    async def list_halted(self, _request: Request) -> Any:
        """Sessions that hooks have halted, the oldest first."""
        halted = self.gating.halted().items()
        return {"halted": [{"session": session, **msgspec.to_builtins(one)} for session, one in halted]}

    async def resume_session(self, request: Request) -> Any:
        """Lifts the halt that a hook has put on a session."""
        by = shortened(request.query_params.get("by") or "a person")
        session = request.path_params["session"]
        resumed = self.gating.resume(session, by)
        if not resumed:
            self.sessions.get(session)  # raises SessionNotFound
        return {"session": session, "resumed": resumed}
