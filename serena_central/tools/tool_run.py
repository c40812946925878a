"""The boundary between who takes calls and who carries them out: one message per tool run, and its reply.

In a single process both structs are passed as they are: nothing is copied or encoded. `cluster/messages.py` encodes
them for another process. Progress and cancellation travel beside them, as they do within a task (`core/progress.py`,
cancel scopes). `ToolCaller` sends the messages; it keeps what belongs to the session's side: idempotency, halts,
grants, records.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
import msgspec
from msgspec.structs import replace

from serena_central.core import tracing
from serena_central.core.decoding import from_json
from serena_central.core.tracing import phase
from serena_central.projects.project import Project
from serena_central.projects.scope import Ask, Scope, labels_of, resolve_scope
from serena_central.sessions.session import ActiveProject, Session
from serena_central.tools.answer import MAX_CHARS, Answer, Content, Listing, PassedOn, fit, holds_nothing, page, size_of
from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.context import Services, ToolCall
from serena_central.tools.grouped_call import check_cursor, on_projects
from serena_central.tools.passed_on import passed_answer
from serena_central.tools.project_call import on_no_project, on_project, timeout_of, until

LONG_ANSWER = 200_000
"""Bytes. An answer that may be as long is put together by a thread, since that takes too long for others to wait."""

EMPTY_CHARS = 2000
"""Longer answers are not checked for emptiness."""

HELPED = 3
"""Maximum of projects without results that suggest what may be meant …"""

HELP_S = 2.0
"""… and the time for these suggestions, in seconds."""

CALL, SESSION, PROJECTS = "serena.call", "serena.session", "serena.projects"
"""Attributes of a call's span: the ids that events and the log know it by."""


class PlacedProject(NamedTuple):
    """A project that another process holds."""

    name: str
    root: Path


class ToolRun(msgspec.Struct, kw_only=True):
    """What is to be run, for whom, and until when."""

    id: str
    """Of the call."""
    tool: str
    arguments: dict[str, Any] = {}
    """Parsed; whoever runs the tool may change them."""
    session: Session
    """Who called: what it saw, and what it was notified of."""
    began: float
    """When the call came, by the event loop's clock: deadlines count from here."""
    person: bool = False
    """Whether a person made the call, at a command line or in the dashboard."""
    from_hook: str = ""
    """What a hook that made the call says of itself (`gates/commands.RUNS_IN`); empty for calls of all others."""
    repeat: str | None = None
    """The call's idempotency key; None if it has none."""
    by_root: bool = False
    """Whether the groups of the answer are labelled by root, for who makes one answer of several hosts'."""


class ToolReply(msgspec.Struct, kw_only=True):
    """What a run came to. Filled while it runs, so that a run that fails leaves what was known until then."""

    answer: Answer | None = None
    notes: list[str] = []
    """Those in the answer, each a line."""
    projects: Sequence[Project | PlacedProject] = ()
    """On which it ran."""
    unopened: Sequence[PlacedProject] = ()
    """Those of several that could not be opened."""
    edits: list[str] = []
    """Ids of the edits that it made, known when it has ended."""


class ToolHost(Protocol):
    """Carries out tool runs."""

    writes_here: bool
    """Whether edits are written by this process, in the task that asks for them."""

    async def run(self, tool: Tool, run: ToolRun, reply: ToolReply) -> Answer:
        """Runs a tool, and fills the reply.

        Raises:
            SerenaCentralError: anything the caller should know.
        """
        ...


class LocalHost:
    """Runs tools on the projects of this process."""

    writes_here = True

    def __init__(
        self, services: Services, call: Callable[[ToolRun, Session, str, Mapping[str, Any]], Awaitable[Answer]]
    ) -> None:
        """`call` runs another tool as a call of its own, within a run and made by the same."""
        self._services = services
        self._call = call

    async def run(self, tool: Tool, run: ToolRun, reply: ToolReply) -> Answer:
        """Resolves the scope, runs the tool on each project of it and fits the answer."""
        parsed = run.arguments
        call = ToolCall(
            run.id,
            tool.name,
            run.session,
            self._services.seen_by(run.session),
            began=run.began,
            run=partial(self._call, run),
            notes=reply.notes,
            semantic_context=parsed["semantic_context"],
            symbol=parsed.get("name_path") or "",
            repeat=run.repeat,
            person=run.person,
            from_hook=run.from_hook,
        )
        try:
            if tool.on_project:
                limit_s = timeout_of(tool, self._services.settings)
                with tracing.step_span("scope"), phase("scope"), until(call, limit_s, tool.name):
                    scope = await self._scope(tool, call, parsed)
            else:
                scope = _no_scope(tool, parsed)
            reply.projects = scope.projects
            reply.unopened = [PlacedProject(one.name, one.root) for one in scope.failures]
            if len(scope.projects) == 1:
                (only,) = scope.projects
                self._services.sessions.works_on(call.session, ActiveProject(only.name, str(only.root)))
            for project in scope.projects:
                self._services.pool.touch(project.root)
            names = ", ".join(project.name for project in scope.projects)
            tracing.note(**{CALL: call.id, SESSION: call.session.id, PROJECTS: names})
            labels = {root: str(root) for _, root in scope.named} if run.by_root else labels_of(scope.named)
            reply.answer = await self._answer(tool, call, scope, labels, parsed)
            return reply.answer
        finally:
            if not tool.read_only:
                blocks = reply.answer.blocks if reply.answer is not None else None
                reply.edits = self._services.history.answered(call.id, blocks)

    def _note_unknown_names(self, call: ToolCall) -> None:
        """Says once in a session which modes, contexts and tools its settings name that are not there."""
        noted, place = call.session.dependencies_noted, ("", "")
        found = self._services.offer.unknown_names(call.session)
        if found and noted.get(place) != " ".join(found):
            noted[place] = " ".join(found)
            for note in found:
                call.note(note)

    async def _scope(self, tool: Tool, call: ToolCall, parsed: dict[str, Any]) -> Scope:
        session = call.session
        asked, words = parsed.pop("project"), parsed.pop("semantic_context")
        scope = await resolve_scope(
            call.services.projects,
            call.services.super_repos,
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

    async def _answer(
        self, tool: Tool, call: ToolCall, scope: Scope, labels: Mapping[Path, str], parsed: dict[str, Any]
    ) -> Answer:
        self._note_unknown_names(call)
        settings = scope.projects[0].settings if len(scope.projects) == 1 else self._services.settings
        asked: int = parsed.pop("max_answer_chars", -1)
        limit = settings.max_answer_chars if asked < 0 else asked
        if tool.paged:
            call.page = page(parsed.pop("cursor"), parsed.pop("limit"), min(limit, MAX_CHARS))
            if call.page.group or scope.grouped:
                check_cursor(tool, call, scope, labels)
        if tool.on_project:
            if scope.grouped:
                results = await on_projects(tool, call, scope, labels, parsed)
            else:
                (project,) = scope.projects
                results = {project.name: await on_project(tool, call, project, parsed)}
        else:
            result = await on_no_project(tool, call, parsed, timeout_of(tool, settings))
            if isinstance(result, Content):
                return Answer(_blocks(result.text, call), content=result)
            if isinstance(result, PassedOn):
                return self._passed(call, result, limit)
            results = {"": result}
        for text in self._services.gating.news(call.session):
            call.note(text)
        room = max(limit - size_of("\n".join(call.notes)), limit // 2)
        with phase("shaping"):
            if room < LONG_ANSWER:
                fitted = fit(results, room, grouped=scope.grouped)
            else:
                apart = partial(fit, results, room, grouped=scope.grouped)
                fitted = await anyio.to_thread.run_sync(apart, abandon_on_cancel=True)
            fitted.record()
        if fitted.data is not None and len(fitted.data) <= EMPTY_CHARS and _is_empty(results, fitted.data):
            await _help_if_empty(call, tool)
        return Answer(_blocks(fitted.text, call), fitted.shortened, fitted.data)

    def _passed(self, call: ToolCall, result: PassedOn, limit: int) -> Answer:
        """An upstream's answer, with our notes on it."""
        answer = passed_answer(result, self._services.kept_results, call.session.id, limit)
        if call.notes:
            answer = replace(answer, blocks=[*answer.blocks, "\n".join(call.notes)])
        return answer


def _no_scope(tool: Tool, parsed: dict[str, Any]) -> Scope:
    """Of a tool that runs on no project."""
    del parsed["semantic_context"]
    if not tool.names_project:
        del parsed["project"]
    return Scope([], "the tool takes none")


def _blocks(text: str, call: ToolCall) -> list[str]:
    return [text, "\n".join(call.notes)] if call.notes else [text]


def _is_empty(results: Mapping[str, Any], data: str) -> bool:
    """Whether an answer holds nothing, and is not just the page after a list's last."""
    if any(isinstance(result, Listing) and result.total for result in results.values()):
        return False
    # One of these stands in all that holds nothing, and in few others.
    return ("[]" in data or "{}" in data) and holds_nothing(from_json(data))


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
