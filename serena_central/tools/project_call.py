"""Runs a tool on one project of a call, or on none, within its time, the user's permission rules and the hooks.

Paths are not looked at here: projects keep closed ones from everybody (`files/boundary.py`).
"""

import math
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio

from serena_central.config.settings import SharedSettings
from serena_central.core import progress
from serena_central.core.errors import DeadlineExceeded, ToolRefused
from serena_central.core.groups import reported_failure
from serena_central.core.running_time import running_time
from serena_central.core.words import counted
from serena_central.projects.editing.joint_edits import changing_nothing
from serena_central.projects.project import Project
from serena_central.projects.root_settings import ClaudeSettings
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import (
    note_dependencies,
    note_instead,
    note_not_followed,
    note_python,
    note_restrictions,
    note_settings_problems,
    note_side_languages,
    note_unreadable,
)
from serena_central.tools.tool_effects import decision_on

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective
    from serena_central.claude_config.problems import Problem


async def on_project(
    tool: Tool,
    call: ToolCall,
    project: Project,
    parsed: dict[str, Any],
    *,
    most_s: float = math.inf,
    in_group: bool = False,
) -> Any:
    """`in_group`: one of several projects may be read-only if the edit changes nothing in it."""
    refusal, forbidding = tool.refusal(project.settings), nullcontext()
    if in_group and tool.journaled and tool.name not in project.settings.excluded_tools:
        forbidding = changing_nothing(refusal)
    else:
        check_refusal(refusal)
    presence = nullcontext() if tool.gives_way else project.indexer.priority.caller()
    settings = checked_settings(call, tool, project.root)
    if settings is not None and settings.has_session_hooks:
        await call.services.gating.session_hooks(call.services).begin(call, project.root, settings)
    gate, watching = call.services.gating.gated(call, tool, project.root, project, settings), nullcontext()
    check_hook(call, tool, gated=gate is not None)
    if gate is not None:
        parsed = await gate.before(parsed)
        watching = gate.watching()
    tasks, learning = call.services.tasks, nullcontext()
    if tool.journaled and tasks.verifier is not None:
        learning = tasks.learning(call.session.id)
    bound = until(call, min(timeout_of(tool, project.settings), most_s), tool.name)
    with bound, presence, forbidding, watching, learning:
        try:
            result = await tool.function(call, project, **parsed)
        except BaseExceptionGroup as group:
            raise reported_failure(group) from group
    if gate is not None:
        await gate.after(parsed, result)
    call.note_restrictions(project)
    note_settings_problems(call, project)
    note_settings(call, project.root, settings)
    if tool.about in ("code", "files"):
        note_unreadable(call, project)
    if tool.about == "code":
        note_restrictions(call, project)
        note_python(call, project)
        note_dependencies(call, project)
        note_not_followed(call, project)
        note_instead(call, project)
        note_side_languages(call, project)
    return result


async def on_no_project(tool: Tool, call: ToolCall, parsed: dict[str, Any], seconds: float) -> Any:
    """Runs a tool that is about no project, by the rules of the one that the session works on."""
    root = call.session.rules_root
    gate = call.services.gating.gated(call, tool, root, None, checked_settings(call, tool, root))
    check_hook(call, tool, gated=gate is not None)
    if gate is not None:
        parsed = await gate.before(parsed)
    with until(call, seconds, tool.name):
        result = await tool.function(call, **parsed)
    if gate is not None:
        await gate.after(parsed, result)
    return result


def timeout_of(tool: Tool, settings: SharedSettings) -> float:
    """Seconds that a call of this tool may take."""
    return settings.tool_timeouts_s.get(tool.name, tool.timeout_s or settings.tool_timeout_s)


class until:  # noqa: N801 - used like a function
    """Bounds a part of a call: `seconds` after the call came.

    Raises:
        DeadlineExceeded
    """

    __slots__ = ("_counting", "_noting", "_scope", "_seconds", "_waited_for", "_what")

    def __init__(self, call: ToolCall, seconds: float, what: str) -> None:
        self._seconds = seconds
        self._what = what
        self._noting = progress.noting_unanswered()
        self._scope = anyio.CancelScope(deadline=call.began + seconds)
        self._counting = running_time.counting(self._scope)

    def __enter__(self) -> None:
        self._waited_for = self._noting.__enter__()
        self._scope.__enter__()
        self._counting.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counting.__exit__(kind, error, trace)
        try:
            self._scope.__exit__(kind, error, trace)
        finally:
            self._noting.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise DeadlineExceeded(self._what, self._seconds, "; ".join(dict.fromkeys(self._waited_for)))


def check_hook(call: ToolCall, tool: Tool, *, gated: bool) -> None:
    """Refuses at once a call by a hook that would wait for that very hook, or start it again and again."""
    if call.from_hook == "holding" and tool.edits and tool.journaled:
        raise ToolRefused(
            f"{tool.name} was not run: a hook called it after an edit, whose files the server holds until the hook has "
            "ended. Have the hook write the files itself: what it changes belongs to the edit."
        )
    if call.from_hook and gated:
        raise ToolRefused(
            f"{tool.name} was not run: a hook called it, and hooks run around it, so that they would call each other "
            "without end. Have the hook change files itself, or narrow the matchers of the hooks around this tool."
        )


def check_refusal(refusal: str | None) -> None:
    if refusal is not None:
        raise ToolRefused(refusal)


def checked_settings(call: ToolCall, tool: Tool, root: Path) -> "Effective | None":
    """The settings that apply to a root, if any.

    Raises:
        ToolRefused: a rule disables the tool.
    """
    found = call.services.claude.of(root)
    if found is None or not found.permissions.rules:
        return found
    decision = decision_on(found, tool)
    if decision is not None:
        from serena_central.claude_config.permissions import refusal_text

        raise ToolRefused(refusal_text(tool.name, decision))
    return found


def check_command(call: ToolCall, project: Project, command: str, folder: str) -> None:
    """Raises ToolRefused for a command line that a rule forbids in a root-relative folder."""
    check_refusal(command_refusal(call.services.claude, project.root, command, folder))


def command_refusal(claude: ClaudeSettings, root: Path, command: str, folder: str = "") -> str | None:
    """Why a rule forbids a command line in a root-relative folder; None where none does."""
    found = claude.of(root)
    decision = found.permissions.command(command, folder) if found is not None else None
    if decision is None:
        return None
    from serena_central.claude_config.permissions import refusal_text

    return refusal_text("This command", decision)


def note_settings(call: ToolCall, root: Path, found: "Effective | None") -> None:
    """Adds a note on files of settings and MCP servers that have errors; again if others are wrong."""
    of_servers = call.services.claude.server_errors(root)
    if found is None and not of_servers:
        return
    note, place = _note([*(found.errors if found is not None else ()), *of_servers]), (str(root), "claude settings")
    if call.session.dependencies_noted.get(place, "") != note:
        call.session.dependencies_noted[place] = note
        if note:
            call.note(note)


def _note(errors: "list[Problem]") -> str:
    if not errors:
        return ""
    return (
        f"{counted(len(errors), 'error')} in settings, the first: {errors[0]}. `serena-central claude check` lists all."
    )
