"""The host's side of the boundary: a message becomes a tool run on this process's projects, and its reply a message."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from serena_central.cluster.messages import decode_run, encode_reply
from serena_central.cluster.remote_session import CarriedUsers, RecordedViews, RemoteSession
from serena_central.core import tracing
from serena_central.core.errors import SerenaCentralError, StoreError, ToolRefused
from serena_central.core.progress import Listener, reporting_to
from serena_central.core.tracing import Phases, measuring
from serena_central.gates.halting import Halt
from serena_central.sessions.session import Session
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Answer
from serena_central.tools.context import Services
from serena_central.tools.idempotency import Idempotency
from serena_central.tools.tool_run import LocalHost, ToolReply, ToolRun

logger = logging.getLogger(__name__)


class RunServer:
    """Carries out runs that arrive as messages. Belongs to the event loop's thread."""

    def __init__(self, services: Services, idempotency: Idempotency, *, clock: Callable[[], float] = time.time) -> None:
        """`services.views` must be `RecordedViews`, and `services.users` `CarriedUsers`."""
        assert isinstance(services.views, RecordedViews), "sessions are kept elsewhere"
        assert isinstance(services.users, CarriedUsers), "users are known elsewhere"
        self._users = services.users
        self.calls = 0
        self.failed = 0
        self._services = services
        self._idempotency = idempotency
        self._clock = clock
        self._local = LocalHost(services, _no_calls)

    async def run(self, message: bytes, on_progress: Listener) -> bytes:
        """The reply to a run, as a message; failures of the run are in it.

        Raises:
            ClusterError: the message is of another version.
        """
        now = anyio.current_time()
        tool, run, trace = decode_run(message, self._services.catalogue, self._users, now=now, at=self._clock())
        session, reply = run.session, ToolReply()
        phases = Phases(f"{tool.name}, call {run.id} of session {session.id}")
        assert isinstance(session, RemoteSession)
        failure: Exception | None = None

        async def work() -> Answer:
            return await self._local.run(tool, run, reply)

        with tracing.continuing(trace), reporting_to(on_progress), measuring(phases):
            try:
                with tracing.call_span(f"run {tool.name}"):
                    if run.repeat is None:
                        await work()
                    else:
                        reply.answer = await self._idempotency.run(run.repeat, work, changed=lambda: reply.edits)
            except Exception as error:
                if not isinstance(error, SerenaCentralError):
                    logger.exception("call %s: %s failed", run.id, tool.name)
                failure = error
            finally:
                self._services.sessions.release(session)
        edits = await self._rows(run, reply)
        self.calls += 1
        self.failed += failure is not None
        logger.info(
            "%s, call %s: %s",
            tool.name,
            run.id,
            "ok" if failure is None else type(failure).__name__,
            extra={"session": session.id, "project": ", ".join(project.name for project in reply.projects) or None},
        )
        return encode_reply(session, reply, failure, edits=edits, phases=phases, halt=self._taken_halt(session))

    def _taken_halt(self, session: Session) -> Halt | None:
        """Why a hook has halted the session, which the sender keeps, and lifts where a person says so."""
        gating = self._services.gating
        halt = gating.halted().get(session.id)
        if halt is not None:
            gating.resume(session.id, "the front, which keeps it")
        return halt

    async def _rows(self, run: ToolRun, reply: ToolReply) -> list[EditRow]:
        """The edits of a run, for the history of whoever sent it."""
        rows: list[EditRow] = []
        for edit in reply.edits:
            try:
                row = await self._services.history.edit(edit)
            except StoreError as error:
                logger.warning("edit %s of call %s is not in the history: %s", edit, run.id, error)
                row = None
            rows.append(
                row
                or EditRow(
                    id=edit,
                    at=self._clock(),
                    call=run.id,
                    tool=run.tool,
                    session=run.session.id,
                    project_root=str(reply.projects[0].root) if reply.projects else "",
                )
            )
        return rows


async def _no_calls(session: Session, tool: str, arguments: Mapping[str, Any], person: bool) -> Answer:
    raise ToolRefused(f"{tool} can't be called from a project host.")
