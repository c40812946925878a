"""The answer to an edit and its record in the session, shared by all tools that change files."""

from collections.abc import Sequence
from typing import Any

from serena_central.projects.editing.edit_records import operation_of
from serena_central.projects.editing.edits import Edited
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_definitions import SiblingPlace
from serena_central.tools.context import ToolCall
from serena_central.tools.symbol_answers import ReadSet, grouped

UNRESOLVED_LISTED = 20
"""Places that one answer names of each project."""

EDIT_ANSWER = "{edit, files, new_errors?, may_have_broken?} or the diff"
"""The shape of what `answer` makes."""


async def answer(call: ToolCall, target: Project, edited: Edited, *, about: str | None = None) -> dict[str, Any] | str:
    """The answer of an edit: a dry run's diff, or what changed by file, the errors that this caused, and what it may
    have broken elsewhere. `about` is the name path of the symbol that the author wrote."""
    for conflict in edited.conflicts:
        call.note(f"Conflict, allowed by the setting edit_conflicts: {str(conflict).splitlines()[0]}")
    for note in edited.consequences.notes:
        call.note(note)
    _note_untold(call, target, edited)
    if edited.id is None:
        return edited.diff or "Nothing to change: the text is already identical."
    for warning in call.services.tasks.leases.warnings(target.root, call.session.id, edited):
        call.note(warning)
    call.session.edits += 1
    ReadSet(call, target).record(edited, about=about)
    files: dict[str, Any] = {}
    for file in edited.files:
        files[file.moved_to or file.path] = {
            **({"moved_from": file.path} if file.moved_to else {}),
            **({"created": True} if file.created else {}),
            **({"deleted": True} if file.deleted else {}),
            "lines_added": file.added,
            "lines_removed": file.removed,
        }
    errors = grouped(edited.consequences.errors)
    return {
        "edit": operation_of(edited.id),
        "files": files,
        **({"new_errors": errors} if errors else {}),
        **await _broken(call, target, edited),
    }


def _note_untold(call: ToolCall, target: Project, edited: Edited) -> None:
    """Says of files that no server tells the errors of, and why, once in a session."""
    for why, files in edited.consequences.untold.items():
        if (place := (str(target.root), why)) not in call.session.restrictions_noted:
            call.session.restrictions_noted.add(place)
            call.note(f"No diagnostics for {', '.join(sorted(files))} after this edit: {why}")


async def _broken(call: ToolCall, target: Project, edited: Edited) -> dict[str, Any]:
    """What the edit may have broken elsewhere, by project, if it took names away or changed signatures."""
    seconds, names = target.settings.edit_diagnostics_s, edited.consequences.redeclared
    if not seconds or not any(one.gone or one.changed or one.moved for one in names.values()):
        return {}
    breakage = await call.services.validation.broken_by(target, names, seconds)
    for note in breakage.notes:
        call.note(note)
    broken: dict[str, Any] = {}
    for one in breakage.found:
        places, errors = _shown(one.unresolved), grouped(one.errors)
        more, further = len(one.unresolved) - UNRESOLVED_LISTED, len(one.by_position) - UNRESOLVED_LISTED
        broken[one.project.name] = {
            **({"unresolved_references": places} if places else {}),
            **({"further_unresolved": more} if more > 0 else {}),
            **({"errors_where_used": errors} if errors else {}),
            **({"values_by_position": _shown(one.by_position)} if one.by_position else {}),
            **({"further_by_position": further} if further > 0 else {}),
        }
    return {"may_have_broken": broken} if broken else {}


def _shown(places: Sequence[SiblingPlace]) -> dict[str, list[str]]:
    """Path → `line: name`, of the first places."""
    shown: dict[str, list[str]] = {}
    for place in places[:UNRESOLVED_LISTED]:
        shown.setdefault(place.path, []).append(f"{place.position.line0}: {place.name}")
    return shown
