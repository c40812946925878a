"""Halted sessions over /api: which there are, and the way to resume one."""

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from serena_central.sessions.client_identity import shortened
from serena_central.sessions.manager import SessionManager
from serena_central.tools.gating import Gating


@dataclass(frozen=True)
class Gates:
    """The handlers."""

    gating: Gating
    sessions: SessionManager

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
