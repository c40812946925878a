"""What the user's permission rules say about a call: a tool that is switched off, a command that may not run; and what
is wrong with the settings that hold the rules, said once in a session.

Paths are not looked at here: projects keep closed ones from everybody (`files/access.py`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

from serena_central.core.errors import ToolRefused
from serena_central.core.words import counted
from serena_central.projects.project import Project
from serena_central.tools.catalogue import Tool
from serena_central.tools.context import ToolCall
from serena_central.tools.tool_effects import decision_on

if TYPE_CHECKING:
    from serena_central.claude_config.effective import Effective


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
    found = call.services.claude.of(project.root)
    decision = found.permissions.command(command, folder) if found is not None else None
    if decision is not None:
        from serena_central.claude_config.permissions import refusal_text

        raise ToolRefused(refusal_text("This command", decision))


def note_settings(call: ToolCall, root: Path, found: "Effective | None") -> None:
    """Adds a note on files of settings that have errors; again if others are wrong."""
    if found is None:
        return
    note, place = _note(found), (str(root), "claude settings")
    if call.session.dependencies_noted.get(place, "") != note:
        call.session.dependencies_noted[place] = note
        if note:
            call.note(note)


def _note(found: "Effective") -> str:
    errors = found.errors
    if not errors:
        return ""
    return (
        f"{counted(len(errors), 'error')} in settings, the first: {errors[0]}. `serena-central claude check` lists all."
    )
