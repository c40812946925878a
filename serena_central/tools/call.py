"""Carries out every tool call, from an agent, the dashboard or the command line: scope → run → fit → record.

It knows sessions, projects and tools, but no protocol: failures are errors of core/errors, which `mcp_server` and
`web` translate. A call can end in five ways (answered, refused, deadline, cancelled by the client, cancelled by a
person), and each is counted, published and timed. Unknown tool names do not count as calls.
"""

import difflib
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

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
from serena_central.core.tracing import Phases, measuring, new_call_id, phase
from serena_central.pool.run import leasing_for
from serena_central.projects.scope import Ask, Scope, resolve_scope
from serena_central.sessions.session import ActiveProject, RunningCall, Session, call_line
from serena_central.store.rows import Row, ToolCallRow
from serena_central.tools.answer import MAX_CHARS, Answer, Content, Listing, PassedOn, fit, holds_nothing, page
from serena_central.tools.call_details import detail_row, main_argument, message_of
from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.context import Services, ToolCall
from serena_central.tools.grouped_call import check_cursor, on_projects
from serena_central.tools.heartbeat import with_heartbeat
from serena_central.tools.idempotency import Idempotency, idempotency_key
from serena_central.tools.passed_on import passed_answer
from serena_central.tools.project_call import check_refusal, on_no_project, on_project, timeout_of, until
from serena_central.tools.upstream_contents import UpstreamContents
from serena_central.transcripts.recorded_call import RecordedCall

CONTEXT_KEPT = 500
"""Characters of a call's free words that its event keeps."""

EMPTY_CHARS = 2000
"""Longer answers are not checked for emptiness."""

HELPED = 3
"""Maximum of projects without results that suggest what may be meant …"""

HELP_S = 2.0
"""… and the time for these suggestions, in seconds."""


SEPARATOR = "__"
"""In names of upstreams' tools alone."""

CALL, SESSION, PROJECTS = "serena.call", "serena.session", "serena.projects"
"""Attributes of a call's span: the ids that events and the log know it by."""


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
        transcript: Callable[[RecordedCall], None] | None = None,
    ) -> None:
        """`record` keeps rows about a finished call, `transcript` the call itself; neither may wait or raise."""
        self._services = services
        self._catalogue = services.catalogue
        self._keep = record
        self._idempotency = idempotency
        self.upstream_contents = UpstreamContents(services.upstreams, services.claude)
        self._transcript = transcript

    def tools_for(self, session: Session) -> list[Tool]:
        """The tools that are listed for a session, in the catalogue's order."""
        return self._services.offer.listed(session)

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
    ) -> Answer:
        """Runs one call to its answer; one that changes something and is sent again gets its first answer. `request`
        is the same when, and only when, the same request is sent again; None where that can't be told. `person`: it
        was typed or clicked by somebody.

        Raises:
            SerenaCentralError: anything the caller should know; its text says what to do next.
        """
        tool = self._catalogue.get(name) or await self._services.upstreams.find(session, name) or self._find(name)
        call = ToolCall(
            new_call_id(),
            tool.name,
            session,
            self._services,
            began=anyio.current_time(),
            run=partial(self.call, person=person),
            person=person,
        )
        if not tool.read_only:
            await self._services.views.secure(session)  # and how it began: else nobody recognises it after a kill
        if on_progress is None:
            return await self._once_only(tool, call, arguments, _nobody, request)
        return await with_heartbeat(
            call, on_progress, lambda listener: self._once_only(tool, call, arguments, listener, request)
        )

    async def _once_only(
        self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any], on_progress: Listener, request: str | None
    ) -> Answer:
        session = call.session
        if request is None or tool.read_only or session.shared:
            return await self._call(tool, call, arguments, on_progress)
        call.repeat = idempotency_key(session.id, request, tool.name, arguments)
        return await self._idempotency.run(
            call.repeat,
            lambda: self._call(tool, call, arguments, on_progress),
            changed=lambda: call.edits,
        )

    async def _call(self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any], on_progress: Listener) -> Answer:
        session = call.session
        answer: Answer | None = None
        started = time.perf_counter()
        failure: BaseException | None = None
        scope_name: str | None = None
        self._services.sessions.check_alive(session)
        self._services.gating.check_halted(session)
        running = RunningCall(call.id, tool.name, time.time(), anyio.CancelScope(), main_argument(arguments))
        session.running[call.id] = running
        phases = Phases()
        try:
            check_refusal(self._services.offer.refusal(tool, session))
            parsed = tool.parse(arguments)
            holder = f"{tool.name}, call {call.id} of session {session.id}"
            span = tracing.call_span(f"tool {tool.name}")
            with running.scope, leasing_for(holder), reporting_to(on_progress), measuring(phases), span:
                call.semantic_context = parsed["semantic_context"]
                call.symbol = parsed.get("name_path") or ""
                limit_s = timeout_of(tool, self._services.settings)
                with tracing.step_span("scope"), phase("scope"), until(call, limit_s, tool.name):
                    scope = await self._scope(tool, call, parsed)
                call.projects = scope.projects
                if len(scope.projects) == 1:
                    (only,) = scope.projects
                    self._services.sessions.works_on(session, ActiveProject(only.name, str(only.root)))
                scope_name = ", ".join(project.name for project in scope.projects) or None
                tracing.note(**{CALL: call.id, SESSION: session.id, PROJECTS: scope_name or ""})
                answer = await self._run(tool, call, scope, parsed)
                return answer
            raise CallCancelled(running.cancelled_because or "The call was cancelled.")
        except ClientInputRequired:  # the call was answered, by a question
            raise
        except BaseException as error:
            failure = error
            raise
        finally:
            del session.running[call.id]
            if not tool.read_only:
                call.edits = self._services.history.answered(call.id, answer.blocks if answer else None)
            if answer is not None and answer.failed:
                failure = UpstreamCallFailed(tool.name, answer.blocks[0] if answer.blocks else "")  # for the records
            duration_ms = (time.perf_counter() - started) * 1000
            self._record(call, tool, scope_name, duration_ms, failure)
            if self._transcript is not None:
                self._transcript(_recorded(call, tool, arguments, answer, failure, duration_ms))
            self._keep(
                detail_row(
                    call.id,
                    time.time(),
                    arguments,
                    answer=answer,
                    notes=call.notes,
                    failure=failure,
                    phases=phases,
                    duration_ms=duration_ms,
                    roots=[str(project.root) for project in call.projects],
                )
            )

    def _find(self, name: str) -> Tool:
        tool = self._catalogue.get(name)
        if tool is None:
            raise UnknownTool(name, difflib.get_close_matches(name, self._catalogue.names(), n=3))
        return tool

    async def _scope(self, tool: Tool, call: ToolCall, parsed: dict[str, Any]) -> Scope:
        session = call.session
        asked, words = parsed.pop("project"), parsed.pop("semantic_context")
        if not tool.on_project:
            if tool.names_project:
                parsed["project"] = asked
            return Scope([], "the tool takes none")
        scope = await resolve_scope(
            self._services.projects,
            self._services.super_repos,
            Ask(
                project=asked,
                paths=[path for name in PATH_PARAMETERS if (path := parsed.get(name))],
                semantic_context=words,
                active_root=session.active_project.root if session.active_project else None,
                working_folder=session.working_folder,
                about=tool.about,
                edits=tool.edits,
                spans=tool.spans,
                together=tool.together is not None,
                person=call.person,
            ),
        )
        for name in PATH_PARAMETERS:
            if parsed.get(name) in scope.paths:
                parsed[name] = scope.paths[parsed[name]]
        if scope.note:
            call.note(scope.note)
        return scope

    async def _run(self, tool: Tool, call: ToolCall, scope: Scope, parsed: dict[str, Any]) -> Answer:
        settings = scope.projects[0].settings if len(scope.projects) == 1 else self._services.settings
        asked: int = parsed.pop("max_answer_chars", -1)
        limit = settings.max_answer_chars if asked < 0 else asked
        if tool.paged:
            call.page = page(parsed.pop("cursor"), parsed.pop("limit"), min(limit, MAX_CHARS))
            if call.page.group or scope.grouped:
                check_cursor(tool, call, scope)
        if tool.on_project:
            if scope.grouped:
                results = await on_projects(tool, call, scope, parsed)
            else:
                (project,) = scope.projects
                results = {project.name: await on_project(tool, call, project, parsed)}
        else:
            result = await on_no_project(tool, call, parsed, timeout_of(tool, settings))
            if isinstance(result, Content):
                return _of_content(call, result)
            if isinstance(result, PassedOn):
                return self._passed(call, result, limit)
            results = {"": result}
        for text in self._services.gating.news(call.session):
            call.note(text)
        notes = "\n".join(call.notes)
        with phase("shaping"):
            fitted = fit(results, max(limit - len(notes), limit // 2), grouped=scope.grouped)
        if fitted.data is not None and len(fitted.data) <= EMPTY_CHARS and _is_empty(results, fitted.data):
            await _help_if_empty(call, tool)
            notes = "\n".join(call.notes)
        answer = Answer([fitted.text, notes] if notes else [fitted.text], fitted.shortened, fitted.data)
        call.answer_chars = sum(map(len, answer.blocks))
        return answer

    def _passed(self, call: ToolCall, result: PassedOn, limit: int) -> Answer:
        """An upstream's answer, with our notes on it."""
        answer = passed_answer(result, self._services.kept_results, call.session.id, limit)
        if call.notes:
            answer = replace(answer, blocks=[*answer.blocks, "\n".join(call.notes)])
        call.answer_chars = sum(map(len, answer.blocks))
        return answer

    def _record(
        self, call: ToolCall, tool: Tool, project: str | None, duration_ms: float, failure: BaseException | None
    ) -> None:
        """Counts, logs, keeps and publishes a call however it ended."""
        now = time.time()
        session, failed = call.session, failure is not None
        outcome, error = _outcome(failure), type(failure).__name__ if failed else None
        session.count(tool.name, duration_ms, failed=failed, at=now)
        message = message_of(failure) if failure is not None else ""
        text = call_line(tool.name, project, outcome, duration_ms, message)
        session.note(text, "warning" if failed else "info", at=now, call=call.id)
        self._keep(
            ToolCallRow(
                id=call.id,
                at=now,
                session=session.id,
                project=project,
                tool=tool.name,
                duration_ms=duration_ms,
                outcome=outcome,
                error=error,
                answer_chars=call.answer_chars,
            )
        )
        self._services.bus.publish(
            CallFinished(
                severity=Severity.WARNING if failed else Severity.INFO,
                session=session.id,
                project=project,
                message=message,
                call=call.id,
                tool=tool.name,
                outcome=outcome,
                error=error,
                duration_ms=round(duration_ms, 3),
                semantic_context=(call.semantic_context or "")[:CONTEXT_KEPT],
            )
        )


def _recorded(
    call: ToolCall,
    tool: Tool,
    arguments: Mapping[str, Any],
    answer: Answer | None,
    failure: BaseException | None,
    duration_ms: float,
) -> RecordedCall:
    session = call.session
    root = str(call.projects[0].root) if call.projects else ""
    if not root:
        root = session.active_project.root if session.active_project else session.working_folder or ""
    return RecordedCall(
        id=call.id,
        session=session.id,
        root=root,
        tool=tool.name,
        arguments=dict(arguments),
        outcome=_outcome(failure),
        output=str(failure) if failure is not None else "\n".join(answer.blocks) if answer is not None else "",
        ended_at=time.time(),
        duration_ms=duration_ms,
    )


def _of_content(call: ToolCall, content: Content) -> Answer:
    text, notes = content.text, "\n".join(call.notes)
    call.answer_chars = len(text) + len(notes)
    return Answer([text, notes] if notes else [text], content=content)


def _is_empty(results: Mapping[str, Any], data: str) -> bool:
    """Whether an answer holds nothing, and is not just the page after a list's last."""
    if any(isinstance(result, Listing) and result.total for result in results.values()):
        return False
    return holds_nothing(msgspec.json.decode(data))


async def _help_if_empty(call: ToolCall, tool: Tool) -> None:
    """Adds what may be meant, or what to do, to an answer that holds nothing."""
    left = HELPED
    with anyio.move_on_after(HELP_S):
        for help_ in call.if_empty:
            if left and (note := await help_()):
                call.note(note)
                left -= 1
    if tool.if_empty and not call.notes:
        call.note(tool.if_empty)


def _outcome(failure: BaseException | None) -> str:
    if failure is None:
        return "ok"
    if isinstance(failure, DeadlineExceeded):
        return "deadline"
    return "error" if isinstance(failure, Exception) and not isinstance(failure, CallCancelled) else "cancelled"


def _nobody(message: str, part: float | None) -> None:
    """Progress that nobody asked for."""
