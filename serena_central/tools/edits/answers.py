"""How an edit is answered, and what the session then knows: shared by all tools that change files."""

from collections.abc import Sequence
from typing import Any

from serena_central.projects.editing.applied_edit import operation_of
from serena_central.projects.editing.conflicts import WHOLE_FILE, BodyChange
from serena_central.projects.editing.edits import Edited
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_definitions import Place
from serena_central.symbols.index import Hit
from serena_central.tools.context import ToolCall
from serena_central.tools.diagnostics import grouped

UNRESOLVED_LISTED = 20
"""Places that one answer names of each project."""

EDIT_ANSWER = "{edit, files, new_errors?, may_have_broken?} or the diff"
"""The shape of what `answer` makes."""

SHARED_GUARD = (
    "Several clients may share this session, and what one of them read counts for all: an edit may overwrite "
    "changes that another one made since."
)


async def seen_by(call: ToolCall, target: Project, path: str, name_path: str = WHOLE_FILE) -> str | None:
    """The hash of what the session last saw of a symbol, or of a whole file, for the conflict guard.

    Raises:
        PathRefused: the file is not edited here.
    """
    _check(call, target, path)
    return await call.services.views.seen(call.session, str(target.root), path, name_path)


async def seen_within(call: ToolCall, target: Project, hit: Hit) -> dict[str, str]:
    """The same of a symbol and of all in it, by name path: for who replaces or deletes it as a whole."""
    _check(call, target, hit.path)
    return await call.services.views.seen_within(call.session, str(target.root), hit.path, hit.name_path)


def _check(call: ToolCall, target: Project, path: str) -> None:
    target.edits.check_editable(path)
    if call.session.shared:
        call.remark(SHARED_GUARD)


async def answer(call: ToolCall, target: Project, edited: Edited, *, about: str | None = None) -> dict[str, Any] | str:
    """The answer of an edit: a dry run's diff, or what changed by file, the errors that this caused, and what it may
    have broken elsewhere. `about` is the name path of the symbol that the author wrote."""
    for conflict in edited.conflicts:
        call.remark(f"Conflict, allowed by the setting edit_conflicts: {str(conflict).splitlines()[0]}")
    for remark in edited.consequences.remarks:
        call.remark(remark)
    if edited.id is None:
        return edited.diff or "Nothing to change: the text is already identical."
    _remember(call, target, edited, about)
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


async def _broken(call: ToolCall, target: Project, edited: Edited) -> dict[str, Any]:
    """What the edit may have broken elsewhere, by project, if it took names away or changed signatures."""
    seconds, names = target.settings.edit_diagnostics_s, edited.consequences.redeclared
    if not seconds or not any(one.gone or one.changed or one.moved for one in names.values()):
        return {}
    breakage = await call.services.validation.broken_by(target, names, seconds)
    for note in breakage.notes:
        call.remark(note)
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


def _shown(places: Sequence[Place]) -> dict[str, list[str]]:
    """Path → `line: name`, of the first places."""
    shown: dict[str, list[str]] = {}
    for place in places[:UNRESOLVED_LISTED]:
        shown.setdefault(place.path, []).append(f"{place.position.line0}: {place.name}")
    return shown


def _remember(call: ToolCall, target: Project, edited: Edited, about: str | None) -> None:
    """What the session wrote it knows; what contains it, it knows as well as before."""
    call.session.edits += 1
    views, session, root = call.services.views, call.session, str(target.root)
    known: list[BodyChange] = []
    for body in edited.consequences.bodies:
        wrote = about is not None and (body.name_path == about or body.name_path.startswith(f"{about}/"))
        before = views.known(session, root, body.path, body.name_path)
        if wrote or body.before is None or before == body.before:
            known.append(body)
    for path in edited.consequences.unknown:
        views.forget(session, root, path)
    for body in known:
        views.saw(session, root, body.path, {body.name_path: body.after})
