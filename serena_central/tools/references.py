"""The tool that finds references to a symbol, in one project or several."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import cache
from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.words import counted
from serena_central.projects.navigation.consistency import TRIES, unsteady_note
from serena_central.projects.navigation.known_places import references_of
from serena_central.projects.navigation.project_places import is_below
from serena_central.projects.navigation.symbol_views import References, ReferenceView
from serena_central.projects.project import Project
from serena_central.projects.root_paths import real_path
from serena_central.projects.superrepo.sibling_references import Declarations
from serena_central.symbols.symbol import kind_name, kind_numbers
from serena_central.tools.answer import Form, Listing
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_references
from serena_central.tools.symbol_answers import ReadSet, location
from serena_central.tools.symbols import InFile, Kinds, NamePath, NotKinds, find_declarations, is_wanted
from serena_central.tools.unasked_modules import note_others, note_unasked

_NARROWING = ("include_kinds", "exclude_kinds", "used_in")
"""Parameters that select references."""

USE_CHARS = 80
"""No use in an answer is shorter."""


@tool(
    "Find references",
    answers="by file, kind: list of {name_path, body_location, content_around_reference}",
    aliases={"name_path_pattern": "name_path"},
    together=find_declarations,
    paged=True,
    if_empty="No references were found. search_for_pattern finds its name in texts, too.",
)
async def find_referencing_symbols(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    relative_path: InFile = "",
    include_kinds: Kinds = [],  # noqa: B006
    exclude_kinds: NotKinds = [],  # noqa: B006
    used_in: Annotated[str, Meta(description="Only references in this file or folder")] = "",
) -> Listing:
    """Symbols that reference a symbol, each reference with a line of context; searches all named projects."""
    include, exclude = kind_numbers(include_kinds), kind_numbers(exclude_kinds)
    below = _below(call, target, used_in)
    together = call.together if isinstance(call.together, Declarations) else None
    await target.fresh()

    async def ask() -> References:
        if together is not None:
            found = References([]) if below is None else await together.uses_in(target, below)
            await note_others(call, target, together)
        else:
            hit = await target.find_one(name_path, relative_path)
            found = await references_of(target.navigation, hit, below or "")
            await note_unasked(call, target, hit)
        note_references(call, found)
        return found

    projects = target, *(together.asked if together is not None else ())
    tries_left = TRIES
    while True:
        tries_left -= 1
        found = await _continued(call, projects, (name_path, relative_path, below), ask)
        used = [
            use
            for use in found.references
            if is_wanted(use.holder.kind if use.holder else 1, include, exclude) and is_below(use.path, below or "")
        ]
        window = call.page.window(len(used), USE_CHARS)
        texts = await target.navigation.places.texts(used[window.start : window.stop])
        if not texts.changed or not tries_left:
            break
        await target.tree.examine(texts.changed)  # they are no places of these texts
    if texts.changed:
        call.note(unsteady_note(texts.changed))
    if found.references and not used:
        narrowed = [name for name, value in zip(_NARROWING, (include, exclude, below), strict=True) if value]
        call.note(f"Of {counted(len(found.references), 'reference')}, none is selected by {' and '.join(narrowed)}.")

    @cache  # how many fit is found out by building the list several times
    def in_full(at: int) -> dict[str, Any]:
        return {**in_brief(at), "content_around_reference": texts.lines_around(used[at])}

    @cache
    def in_brief(at: int) -> dict[str, Any]:
        use = used[at]
        return {
            "name_path": use.holder.name_path if use.holder else "<file>",
            "body_location": location(use.holder.range if use.holder else use.range),
        }

    bare = Form("without context", lambda: _references(used, 0, len(used), in_brief))
    return Listing(
        page=call.page,
        total=len(used),
        window=window,
        noun="reference",
        build=lambda first, last: _references(used, first, last, in_full),
        narrow="Pass used_in, include_kinds or exclude_kinds to narrow it.",
        per_file=Counter(use.path for use in used),
        shorter=(bare,) if len(window) == len(used) else (),
        brief=lambda first, last: _references(used, first, last, in_brief),
        shown=lambda first, last: ReadSet(call, target).record_references(used[first:last], texts),
    )


async def _continued(
    call: ToolCall, projects: Sequence[Project], arguments: Hashable, ask: Callable[[], Awaitable[References]]
) -> References:
    """What `ask` answers about these projects, whose barriers were passed; for a further page what it answered to this
    session before, with its notes, while nothing has changed: pages fit together, and cost the server nothing."""
    question = call.session.id, call.tool, tuple(str(project.root) for project in projects), arguments
    state, answers = tuple(project.state for project in projects), call.services.answers
    if call.page.is_continued:
        kept = answers.get(question)
        if kept is not None and kept.state == state:
            for note in kept.notes:
                call.note(note)
            return kept.value
        why = "the last page's list is not kept any more" if kept is None else "files have changed since the last page"
        call.note(f"This page is of a new list, because {why}: some references may be missing or repeated.")
    before = len(call.notes)
    found = await ask()
    answers.keep(question, state, found, len(found.references), call.notes[before:])
    return found


def _below(call: ToolCall, target: Project, used_in: str) -> str | None:
    """What a path means in one project of a call: one of its own, or one from the super-repo's root; empty for all of
    the project, None for a place in another one that is asked.

    Raises:
        PathError: for any other.
    """
    if not used_in:
        return ""
    asked = call.together.asked if isinstance(call.together, Declarations) else [target]
    repo = call.services.super_repos.of(target.root)
    bases = [target.root, *(one.root for one in asked), *([repo.root] if repo else [])]
    roots = {*bases, *(module.root for module in repo.modules.values())} if repo else {*bases}
    places = [real_path(base / used_in) for base in bases if os.path.exists(base / used_in)]  # noqa: PTH110 - never raises
    owners = [max((root for root in roots if place.is_relative_to(root)), default=None) for place in places]
    for place, owner in zip(places, owners, strict=True):
        if owner == target.root:
            return target.locate(str(place))
    if any(target.root.is_relative_to(place) for place in places):
        return ""
    return None if any(one.root in owners for one in asked) else target.locate(used_in)


def _references(
    used: Sequence[ReferenceView], first: int, last: int, entry_of: Callable[[int], dict[str, Any]]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Those from one index up to another, by file and kind."""
    answer: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for at in range(first, last):
        use = used[at]
        kind = kind_name(use.holder.kind) if use.holder else "File"
        answer.setdefault(use.path, {}).setdefault(kind, []).append(entry_of(at))
    return answer
