"""The host's side of the boundary: a message becomes a tool run on this process's projects, and its reply a message."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import anyio

from serena_central.cluster.messages import decode_run, encode_reply
from serena_central.cluster.remote_session import CarriedUsers, RecordedViews, RemoteSession
from serena_central.cluster.run_listener import RunReply
from serena_central.core import tracing
from serena_central.core.errors import CallCancelled, SerenaCentralError, StoreError, ToolRefused
from serena_central.core.progress import Listener, reporting_to
from serena_central.core.tracing import Phases, measuring
from serena_central.gates.halting import Halt
from serena_central.sessions.session import Session
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import Services
from serena_central.tools.idempotency import Idempotency
from serena_central.tools.tool_run import LocalHost, ToolReply, ToolRun

MOST_UNTAKEN = 1000
"""Edits that are told again; each may hold 2 MB of patches, and as a rule a thousandth of that."""

ROWS_S = 5.0
"""How long the history is asked for a row."""

logger = logging.getLogger(__name__)


class RunServer:
    """Carries out runs that arrive as messages. Belongs to the event loop's thread."""

    def __init__(self, services: Services, idempotency: Idempotency) -> None:
        """`services.views` must be `RecordedViews`, and `services.users` `CarriedUsers`."""
        assert isinstance(services.views, RecordedViews), "sessions are kept elsewhere"
        assert isinstance(services.users, CarriedUsers), "users are known elsewhere"
        self._users = services.users
        self.calls = 0
        self.failed = 0
        self._services = services
        self._idempotency = idempotency
        self._local = LocalHost(services, _no_calls)
        self._untaken: dict[str, EditRow] = {}
        """Edits in replies that no front has taken, by their ids: told again with the next reply."""

    async def run(self, message: bytes, on_progress: Listener) -> RunReply:
        """The reply to a run, as a message; failures of the run are in it, and that it was cancelled.

        Raises:
            ClusterError: the message is of another version.
        """
        now = anyio.current_time()
        tool, run, trace = decode_run(message, self._services.catalogue, self._users, now=now, at=time.time())
        assert isinstance(run.session, RemoteSession)
        try:
            return await self._reply_to(tool, run, run.session, trace, on_progress)
        finally:
            self._services.sessions.release(run.session)

    async def _reply_to(
        self, tool: Tool, run: ToolRun, session: RemoteSession, trace: Mapping[str, str], on_progress: Listener
    ) -> RunReply:
        reply = ToolReply()
        phases = Phases(f"{tool.name}, call {run.id} of session {session.id}")
        failure: Exception | None = None
        ran = False

        async def work() -> Answer:
            nonlocal ran
            ran = True
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
            except anyio.get_cancelled_exc_class():
                failure = CallCancelled("The call was cancelled.")  # what it has written nonetheless is told
        with anyio.move_on_after(ROWS_S, shield=True):
            if not ran and failure is None and run.repeat is not None:
                reply.edits = await self._made_before(run.repeat)
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
        earlier = list(self._untaken.values())

        def settle(taken: bool) -> None:
            if not taken:
                self._untaken |= {row.id: row for row in (*earlier, *edits)}
                for oldest in list(self._untaken)[:-MOST_UNTAKEN]:
                    del self._untaken[oldest]

        halt = self._taken_halt(session)
        message = encode_reply(session, reply, failure, edits=edits, earlier_edits=earlier, phases=phases, halt=halt)
        self._untaken.clear()  # the reply has them
        return RunReply(message, settle)

    def _taken_halt(self, session: Session) -> Halt | None:
        """Why a hook has halted the session, which the sender keeps, and lifts where a person says so."""
        gating = self._services.gating
        halt = gating.halted().get(session.id)
        if halt is not None:
            gating.resume(session.id, "the front, which keeps it")
        return halt

    async def _made_before(self, repeat: str) -> list[str]:
        """The edits of a call that was answered without being run again: whoever sent it may not know of them."""
        try:
            return await self._services.history.made_by(repeat)
        except StoreError as error:
            logger.warning("edits of an earlier call are not in the history: %s", error)
            return []

    async def _rows(self, run: ToolRun, reply: ToolReply) -> list[EditRow]:
        """The edits of a run, for the history of whoever sent it; also of one that was cancelled."""
        rows: list[EditRow] = []
        for edit in reply.edits:
            row: EditRow | None = None
            try:
                with anyio.move_on_after(ROWS_S, shield=True):
                    row = await self._services.history.edit(edit)
            except StoreError as error:
                logger.warning("edit %s of call %s is not in the history: %s", edit, run.id, error)
            rows.append(
                row
                or EditRow(
                    id=edit,
                    at=time.time(),
                    call=run.id,
                    tool=run.tool,
                    session=run.session.id,
                    project_root=str(reply.projects[0].root) if reply.projects else "",
                )
            )
        return rows


async def _no_calls(_run: ToolRun, _session: Session, tool: str, _arguments: Mapping[str, Any]) -> Answer:
    raise ToolRefused(f"{tool} can't be called from a project host.")
