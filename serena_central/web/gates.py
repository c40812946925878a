"""Gates over /api: events of clients' own hooks; halted sessions, and the way to resume one."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
import msgspec
from starlette.requests import Request

from serena_central.access.auth import credential_of
from serena_central.core.errors import ProjectRefused
from serena_central.core.quoting import quoted
from serena_central.hook.gate import MOST_ANCESTORS
from serena_central.hook.main import GATE_EVENTS
from serena_central.hook.payload import event_of
from serena_central.projects.root_policy import PERSON
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.session import ClientIdentity, Session
from serena_central.tools.context import Services
from serena_central.tools.gating import Gating
from serena_central.transcripts.recorded_call import Recorded, RecordedMessage
from serena_central.web.ownership import by_of, own_session, owner_of
from serena_central.web.query import limit_in
from serena_central.web.responses import NotFound, body_of

SAID: Mapping[str, tuple[Literal["user", "assistant"], Sequence[str]]] = {
    "UserPromptSubmit": ("user", ("prompt",)),
    "Stop": ("assistant", ("last_assistant_message", "prompt_response", "text")),
}
"""Events that are part of a conversation: whose words they report, and under which of the clients' keys."""


class ClientEvent(msgspec.Struct):
    """Body of POST /api/v1/gates/EVENT: what a client's hook was told. `ancestors`: process ids above that hook."""

    client: str
    said: dict[str, Any]
    ancestors: list[int] = []


@dataclass(frozen=True)
class Gates:
    """The handlers."""

    services: Services
    transcript: Callable[[Recorded], None] | None = None

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
        session.hook_conversation = event_of(asked.said).session
        session.note_conversation(session.hook_conversation)
        if self.transcript is not None and name in SAID:
            self._record(session, name, asked)
        # Late: a server without hooks does not load what runs them.
        from serena_central.tools.native_gate import native_event

        return await native_event(
            self.services, session, name, asked.client, asked.said, asked.ancestors[:MOST_ANCESTORS]
        )

    def _record(self, session: Session, name: str, asked: ClientEvent) -> None:
        """Hands what was said to the transcript of the project."""
        from serena_central.tools.native_gate import root_around

        assert self.transcript is not None
        folder = Path(event_of(asked.said).folder or session.working_folder or "/")
        role, keys = SAID[name]
        texts = (asked.said.get(key) for key in keys)
        text = next((one for one in texts if isinstance(one, str)), "")
        if folder.is_absolute():
            with suppress(ProjectRefused):  # nobody can look at it now
                folder = root_around(folder)
            self.transcript(
                RecordedMessage(
                    session=session.id,
                    conversation=session.hook_conversation,
                    root=str(folder),
                    role=role,
                    text=text,
                    at=time.time(),
                )
            )

    def _session(self, asked: ClientEvent, credential: str) -> Session:
        """The session of the client's window where its process is known, else one of its conversation."""
        happened = event_of(asked.said)
        for session in reversed(self.sessions.sessions()):
            if session.client_pid in asked.ancestors and session.credential == credential:
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
        by, session = by_of(request), request.path_params["session"]
        if owner_of(request) is not None:
            own_session(request, self.sessions, session)
        resumed = self.gating.resume(session, by)
        if not resumed:
            self.sessions.get(session)  # raises SessionNotFound
        return {"session": session, "resumed": resumed}
