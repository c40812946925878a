"""Carries out every tool call, from an agent, the dashboard or the command line: scope → run → fit → record.

It knows sessions, projects and tools, but no protocol: failures are errors of core/errors, which `mcp_server` and
`web` translate. A call can end in five ways (answered, refused, deadline, cancelled by the client, cancelled by a
person), and each is counted, published and timed. Unknown tool names do not count as calls.
"""

import asyncio
import difflib
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from serena_central.core import tracing
from serena_central.core.errors import (
    CallCancelled,
    ClientInputRequired,
    DeadlineExceeded,
    UnknownTool,
    UpstreamCallFailed,
)
from serena_central.core.event_kinds import CallFinished
from serena_central.core.events import Severity
from serena_central.core.progress import Listener, reporting_to
from serena_central.core.tracing import Phases, measuring, new_call_id
from serena_central.editing.transaction import writing_after
from serena_central.sessions.session import RunningCall, Session, call_line
from serena_central.store.rows import Row, ToolCallRow
from serena_central.tools.answer import Answer
from serena_central.tools.call_details import detail_row, main_argument, message_of
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import Services
from serena_central.tools.heartbeat import with_heartbeat
from serena_central.tools.idempotency import Idempotency, idempotency_key
from serena_central.tools.project_call import check_refusal
from serena_central.tools.tool_run import LocalHost, ToolHost, ToolReply, ToolRun
from serena_central.tools.upstream_contents import UpstreamContents
from serena_central.transcripts.recorded_call import Recorded, RecordedCall

if TYPE_CHECKING:
    from serena_central.tools.triggers import Triggers

CONTEXT_KEPT = 500
"""Characters of a call's free words that its event keeps."""

SEPARATOR = "__"
"""In names of upstreams' tools alone."""

_NOTHING = nullcontext()


class Waiting(Protocol):
    """A reply that waits for the answer to a call."""

    @property
    def scope(self) -> anyio.CancelScope:
        """Around the call, which needs none of its own then. Cancelled by who ends the request without an answer."""
        ...

    def afterwards(self, function: Callable[[], None]) -> None:
        """Calls it once, when the reply has been sent or none can be."""
        ...


class ToolCaller:
    """Runs tool calls for any protocol."""

    upstream_contents: UpstreamContents | None = None
    """Resources and prompts of upstreams; None where none can be."""

    def __init__(
        self,
        services: Services,
        *,
        record: Callable[[Row], None],
        idempotency: Idempotency,
        transcript: Callable[[Recorded], None] | None = None,
        host: Callable[[ToolHost], ToolHost] | None = None,
    ) -> None:
        """`record` keeps rows about a finished call, `transcript` the call itself; neither may wait or raise. `host`
        makes what carries tools out of what does in this process; None: this process does."""

        def again(run: ToolRun, session: Session, name: str, arguments: Mapping[str, Any]) -> Awaitable[Answer]:
            return self.call(session, name, arguments, person=run.person, from_hook=run.from_hook)

        local = LocalHost(services, again)
        self._host = local if host is None else host(local)
        self._services = services
        self._catalogue = services.catalogue
        self._keep = record
        self._idempotency = idempotency
        self.upstream_contents = UpstreamContents(services.upstreams, services.claude)
        self.transcript = transcript
        self.on_end: Callable[[], None] = _nothing
        """Called when a call has ended; returns at once."""
        self._triggers: Triggers | None = None

    def tools_for(self, session: Session) -> list[Tool]:
        """The tools that are listed for a session, in the catalogue's order."""
        return self._services.offer.listed(session)

    def unlisted_tools_for(self, session: Session) -> list[tuple[Tool, str]]:
        """The other tools, and why the session may not call each; "" if it may."""
        return self._services.offer.unlisted(session)

    async def upstreams_tools_for(self, session: Session) -> list[Tool]:
        """The tools of upstreams that are listed for a session, and ours that go with them. Waits a while for upstreams
        that were never asked."""
        upstreams, offer = self._services.upstreams, self._services.offer
        if not upstreams.are_configured(session):
            return []
        tools, searched = await upstreams.listed(session)
        return [*offer.for_upstreams(session, searched=searched), *offer.allowed(session, tools)]

    def upstreams_version(self, session: Session) -> Hashable:
        """What differs when that list may. Some microseconds."""
        return self._services.upstreams.version(session)

    def switched_off(self, session: Session) -> frozenset[str]:
        """Tools that permission rules keep out of that list. Some microseconds."""
        return self._services.offer.switched_off(session)

    def wants_plain_schemas(self, session: Session) -> bool:
        """Whether its client's schemas know neither integers nor alternatives."""
        return self._services.offer.context(session).plain_schemas

    def tool(self, name: str) -> Tool | None:
        """The tool that calls of this name run; None if there is none."""
        return self._catalogue.get(name)

    def only_reads(self, name: str) -> bool:
        """Whether a call of this tool changes nothing; true for a name that is no tool's. Of upstreams' tools it is not
        known here."""
        tool = self.tool(name)
        return SEPARATOR not in name if tool is None else tool.read_only

    async def call(
        self,
        session: Session,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: Listener | None = None,
        request: str | None = None,
        person: bool = False,
        from_hook: str = "",
        waiting: Waiting | None = None,
    ) -> Answer:
        """Runs one call to its answer; one that changes something and is sent again gets its first answer. `request`
        is the same when, and only when, the same request is sent again; None where that can't be told. `person`: it
        was typed or clicked by somebody. `from_hook`: as in ToolRun. `waiting`: the call is counted and recorded when
        its reply has been sent; else before this returns.

        Raises:
            SerenaCentralError: anything the caller should know; its text says what to do next.
        """
        tool = self._catalogue.get(name) or await self._services.upstreams.find(session, name) or self._find(name)
        began = asyncio.get_running_loop().time()  # as anyio.current_time(), which asks first whose loop it is
        run = ToolRun(
            id=new_call_id(), tool=tool.name, session=session, began=began, person=person, from_hook=from_hook
        )
        reply = ToolReply()
        # What the session saw and how it began is in the database before it changes something: it could not be resumed
        # after a kill otherwise. An edit is planned meanwhile.
        views, secured = self._services.views, _NOTHING
        if tool.journaled and self._host.writes_here:
            views.secure_soon(session)
            secured = writing_after(lambda: views.secure(session))
        elif tool.journaled or not (tool.read_only or tool.idempotent):
            await views.secure(session)
        with secured:
            if on_progress is None:
                return await self._once_only(tool, run, reply, arguments, _nobody, request, waiting)
            return await with_heartbeat(
                run,
                reply,
                on_progress,
                lambda listener: self._once_only(tool, run, reply, arguments, listener, request, waiting),
            )

    async def _once_only(
        self,
        tool: Tool,
        run: ToolRun,
        reply: ToolReply,
        arguments: Mapping[str, Any],
        on_progress: Listener,
        request: str | None,
        waiting: Waiting | None,
    ) -> Answer:
        session = run.session
        if request is None or tool.read_only or session.shared:
            return await self._call(tool, run, reply, arguments, on_progress, waiting)
        run.repeat = idempotency_key(session.id, request, tool.name, arguments)
        return await self._idempotency.run(
            run.repeat,
            lambda: self._call(tool, run, reply, arguments, on_progress, waiting),
            changed=lambda: reply.edits,
            journaled=tool.journaled,
        )

    async def _call(
        self,
        tool: Tool,
        run: ToolRun,
        reply: ToolReply,
        arguments: Mapping[str, Any],
        on_progress: Listener,
        waiting: Waiting | None,
    ) -> Answer:
        session = run.session
        started = time.perf_counter()
        failure: BaseException | None = None
        words = ""
        self._services.sessions.check_alive(session)
        self._services.gating.check_halted(session)
        scope = anyio.CancelScope() if waiting is None else waiting.scope
        running = RunningCall(run.id, tool.name, time.time(), scope, main_argument(arguments))
        session.running[run.id] = running
        phases = Phases(f"{tool.name}, call {run.id} of session {session.id}")
        try:
            check_refusal(self._services.offer.refusal(tool, session))
            run.arguments = tool.parse(arguments)
            words = run.arguments["semantic_context"] or ""
            span = tracing.call_span(f"tool {tool.name}")
            inner = scope if waiting is None else _NOTHING
            with inner, reporting_to(on_progress), measuring(phases), span:
                answer = await self._host.run(tool, run, reply)
                if reply.projects and self._have_agents(run, reply):
                    answer = reply.answer = await self._triggers_of().after(tool, run, reply, answer)
                return answer
            raise CallCancelled(running.cancelled_because or "The call was cancelled.")
        except ClientInputRequired:  # the call was answered, by a question
            raise
        except BaseException as error:
            failure = error
            if isinstance(error, anyio.get_cancelled_exc_class()) and running.cancelled_because is not None:
                failure = CallCancelled(running.cancelled_because)
                if waiting is not None:
                    raise failure from error  # nothing waits from here to the end of the scope
            raise
        finally:
            del session.running[run.id]
            self.on_end()
            duration_ms = (time.perf_counter() - started) * 1000
            ended = partial(self._ended, run, reply, arguments, words, phases, duration_ms, failure)
            if waiting is None:
                ended()
            else:
                waiting.afterwards(ended)

    def _ended(
        self,
        run: ToolRun,
        reply: ToolReply,
        arguments: Mapping[str, Any],
        words: str,
        phases: Phases,
        duration_ms: float,
        failure: BaseException | None,
    ) -> None:
        """Counts and records a call however it ended. `words`: its semantic context."""
        answer = reply.answer
        if answer is not None and answer.failed:
            failure = UpstreamCallFailed(run.tool, answer.blocks[0] if answer.blocks else "")  # for the records
        self._record(run, reply, words, duration_ms, failure)
        if self.transcript is not None:
            self.transcript(_recorded(run, reply, arguments, failure, duration_ms))
        self._keep(
            detail_row(
                run.id,
                time.time(),
                arguments,
                answer=answer,
                notes=reply.notes,
                failure=failure,
                phases=phases,
                duration_ms=duration_ms,
                roots=[str(project.root) for project in reply.projects],
            )
        )

    def _have_agents(self, run: ToolRun, reply: ToolReply) -> bool:
        """Whether agents may have to be used after this call; not after one that a person makes, nor for a user who may
        run no tasks."""
        has_agents, users = self._services.claude.has_agents, self._services.users
        if run.person or (users.present and users.refusal("task", run.session.credential)):
            return False
        return any(has_agents(project.root) for project in reply.projects)

    def _triggers_of(self) -> "Triggers":
        if self._triggers is None:
            # Late: who has no agents does not load it.
            from serena_central.tools.triggers import Triggers

            self._triggers = Triggers(self._services)
        return self._triggers

    def _find(self, name: str) -> Tool:
        tool = self._catalogue.get(name)
        if tool is None:
            raise UnknownTool(name, difflib.get_close_matches(name, self._catalogue.names(), n=3))
        return tool

    def _record(
        self, run: ToolRun, reply: ToolReply, words: str, duration_ms: float, failure: BaseException | None
    ) -> None:
        """Counts, logs, keeps and publishes a call however it ended. `words`: its semantic context."""
        now = time.time()
        session, failed = run.session, failure is not None
        project = ", ".join(project.name for project in reply.projects) or None
        outcome, error = _outcome(failure), type(failure).__name__ if failed else None
        session.count(run.tool, duration_ms, failed=failed, at=now)
        message = message_of(failure) if failure is not None else ""
        text = call_line(run.tool, project, outcome, duration_ms, message)
        session.note(text, "warning" if failed else "info", at=now, call=run.id)
        self._keep(
            ToolCallRow(
                id=run.id,
                at=now,
                session=session.id,
                project=project,
                tool=run.tool,
                duration_ms=duration_ms,
                outcome=outcome,
                error=error,
                answer_chars=sum(map(len, reply.answer.blocks)) if reply.answer is not None else 0,
            )
        )
        self._services.bus.publish(
            CallFinished(
                severity=Severity.WARNING if failed else Severity.INFO,
                session=session.id,
                project=project,
                message=message,
                call=run.id,
                tool=run.tool,
                outcome=outcome,
                error=error,
                duration_ms=round(duration_ms, 3),
                semantic_context=words[:CONTEXT_KEPT],
            )
        )


def _nothing() -> None:
    pass


def _recorded(
    run: ToolRun, reply: ToolReply, arguments: Mapping[str, Any], failure: BaseException | None, duration_ms: float
) -> RecordedCall:
    session, answer = run.session, reply.answer
    root = str(reply.projects[0].root) if reply.projects else ""
    if not root:
        root = session.active_project.root if session.active_project else session.working_folder or ""
    return RecordedCall(
        id=run.id,
        session=session.id,
        conversation=session.hook_conversation,
        root=root,
        tool=run.tool,
        arguments=dict(arguments),
        outcome=_outcome(failure),
        output=str(failure) if failure is not None else "\n".join(answer.blocks) if answer is not None else "",
        ended_at=time.time(),
        duration_ms=duration_ms,
    )


def _outcome(failure: BaseException | None) -> str:
    if failure is None:
        return "ok"
    if isinstance(failure, DeadlineExceeded):
        return "deadline"
    return "error" if isinstance(failure, Exception) and not isinstance(failure, CallCancelled) else "cancelled"


def _nobody(message: str, part: float | None) -> None:
    """Progress that nobody asked for."""
