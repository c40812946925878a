"""Notes: what an answer may lack, and why. Some are given once in a session and project, others with each answer."""

from collections.abc import Iterable
from itertools import islice

from serena_central.core.errors import listed
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.projects.navigation.symbol_views import PossibleReferences, References
from serena_central.projects.project import Project
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.tools.context import ToolCall

FEW_LANGUAGES = 5
"""Of those that were not searched."""

FEW_NAMES = 3
"""Of names that are not UTF-8."""


def note_gaps(call: ToolCall, gaps: Iterable[Incompleteness]) -> None:
    for gap in gaps:
        call.note(str(gap))


def note_tree(call: ToolCall, project: Project) -> None:
    if project.tree.note:
        call.note(project.tree.note)
    note_names(call, project)
    note_unreadable(call, project)


def note_ignored(call: ToolCall, project: Project) -> None:
    """Says that next to all that there is is left out."""
    if project.tree.everything_ignored:
        call.note(project.tree.everything_ignored)


def note_names(call: ToolCall, project: Project) -> None:
    """Says what is left out: next to all that there is, or files for their names."""
    note_ignored(call, project)
    if names := project.tree.not_utf8:
        entries = counted(len(names), "entry", "entries")
        call.note(
            f"Skipped: {entries} whose names are not UTF-8 ({listed(names[:FEW_NAMES])}). list_dir shows them, and "
            "read_file accepts such names."
        )


def note_unreadable(call: ToolCall, project: Project) -> None:
    """Says which files nobody could look into for this answer."""
    if names := project.tree.unreadable:
        entries = counted(len(names), "file or folder", "files and folders")
        call.note(
            f"Not read: {entries} that the server's user has no permission to read ({listed(names[:FEW_NAMES])}). What "
            "they hold is missing here. Make them readable, or ignore them (.gitignore, `ignored_paths`)."
        )


async def note_data(call: ToolCall, project: Project, within: str) -> None:
    """Says of an empty answer which files were not searched: those of data or markup, and what tools have built."""
    if outputs := project.tree.outputs():
        call.note(
            f"Skipped: {listed(outputs[:FEW_NAMES])}{' and more' if len(outputs) > FEW_NAMES else ''}, marked as "
            "build output (CACHEDIR.TAG, .rustc_info.json, CMakeCache.txt). "
            "`ignored_paths: ['!FOLDER']` includes a folder."
        )
    if found := await project.read_by_name_alone(within):
        files = ", ".join(f"{number} {title}" for title, number in found.most_common(FEW_LANGUAGES))
        more = f" and {len(found) - FEW_LANGUAGES} more languages" if len(found) > FEW_LANGUAGES else ""
        call.note(
            f"Not searched: data, markup and languages with few files: {files}{more}. To search one, set "
            "relative_path to one of its files, or name its language in the project's setting `languages`."
        )


def note_answer(call: ToolCall, note: str | None, outside: int = 0) -> None:
    """Says why a language server's answer may lack something, and how much of it is not shown."""
    if note:
        call.note(f"Possibly incomplete: {note}")
    if outside:
        call.note(f"{outside} more lie outside the project's files.")


def note_references(call: ToolCall, found: References) -> None:
    note_gaps(call, found.gaps)
    note_answer(call, found.note, found.outside)
    note_answer(call, found.caveat)
    if found.possible is not None:
        note_possible(call, found.possible)


def note_possible(call: ToolCall, possible: PossibleReferences) -> None:
    """Says what else may refer to a symbol, so that an empty answer is not taken for "unused"."""
    name = possible.name
    if possible.total:
        places = [f"{one.path}:{one.line}" + (f" in {one.within}" if one.within else "") for one in possible.first]
        more = f" and {possible.total - len(places)} more" if possible.total > len(places) else ""
        common = (
            f" Built-in types also have a member {name}, so many of these may be unrelated." if possible.common else ""
        )
        call.note(
            f"Possible references, in addition to those above: {counted(possible.total, 'place')} in code where the "
            f"language server cannot rule out that {name} means this symbol: {', '.join(places)}{more}.{common}"
        )
    if possible.unexamined:
        call.note(f"{name} occurs in {counted(possible.unexamined, 'further place')}, not examined.")
    if possible.strings:
        left = possible.in_strings - len(possible.strings)
        more = f" and {left} more" if left > 0 else ""
        call.note(f"Strings that may mean {name}: {', '.join(possible.strings)}{more}.")


def note_settings_problems(call: ToolCall, project: Project) -> None:
    """Adds a note for each setting of the project that is misspelt or has a wrong value: once in a session, and if
    others are wrong again."""
    place, problems = (str(project.root), "settings"), project.settings_problems
    found = "\n".join(problems)
    if call.session.dependencies_noted.get(place, "") != found:
        call.session.dependencies_noted[place] = found
        for problem in problems[:FEW_NAMES]:
            call.note(f"Settings: {problem}")
        if len(problems) > FEW_NAMES:
            call.note(f"Settings: {counted(len(problems) - FEW_NAMES, 'further problem')}.")


def note_restrictions(call: ToolCall, project: Project) -> None:
    """Adds a note for each server that was asked and is kept from executing what the project brings."""
    root, above = str(project.root), project.strangers_above
    why = f"{root} is not trusted. To trust it: serena-central trust {root}"
    if above is not None:
        why = f"another user has put {quoted(above)} above {root}."
    for server, lacks in project.languages.restricted.items():
        if (root, server) not in call.session.restrictions_noted:
            call.session.restrictions_noted.add((root, server))
            call.note(f"{server} is restricted ({lacks}), because {why}")


def note_python(call: ToolCall, project: Project) -> None:
    """Adds a note on the environment that a server which was asked resolves imports in; again if it is another."""
    for server, note in project.languages.python.notes.items():
        place = str(project.root), server
        if note and call.session.pythons_noted.get(place) != note:
            call.session.pythons_noted[place] = note
            call.note(note)


def note_instead(call: ToolCall, project: Project) -> None:
    """Adds a note on servers in whose place, or beside which, files are read by syntax; again if that changes."""
    builds = project.languages.builds
    for server, note in read_by_syntax(project).items() if builds.servers else ():
        place = str(project.root), f"{server} instead"
        if call.session.dependencies_noted.get(place) != note:
            call.session.dependencies_noted[place] = note
            call.note(note)


def read_by_syntax(project: Project) -> dict[str, str]:
    """Server → what is to be known of files that it can't know, and that are read by syntax."""
    notes = {
        server: f"Symbols come from syntax (tree-sitter) where {server} would report fewer: {lacks}. With this many "
        "files it is not asked: functions that tree-sitter cannot parse, between macros, may be missing."
        for server, lacks in project.languages.builds.read_instead().items()
    }
    for server, lacks in project.languages.builds.read_besides().items():
        notes[server] = f"Symbols are those of {server} and of the syntax (tree-sitter) together: {lacks}."
    return notes


def note_dependencies(call: ToolCall, project: Project) -> None:
    """Adds a note on packages that a server which was asked does not find; again if others are missing."""
    for (server, folder), note in project.languages.lacking().items():
        place = str(folder), server
        if call.session.dependencies_noted.get(place) != note:
            call.session.dependencies_noted[place] = note
            call.note(note)


def note_not_followed(call: ToolCall, project: Project) -> None:
    """Adds a note on what servers may read although nobody hears of its changes; again if that is something else."""
    if not project.tree.not_followed:
        return
    hides = project.access.hides
    paths = islice(project.tree.not_followed, FEW_NAMES + 1)
    some = list(dict.fromkeys("what rules close" if hides(path) else quoted(path) for path in paths))
    names = ", ".join(some[:FEW_NAMES]) + (", …" if len(some) > FEW_NAMES else "")
    place = str(project.root), "not followed"
    if call.session.dependencies_noted.get(place) != names:
        call.session.dependencies_noted[place] = names
        call.note(
            f"Not watched, as too large or outside of the project: {names}. Language servers that "
            "read files there may know them as they were before a change: restart_language_server has everything read "
            "again."
        )


def note_side_languages(call: ToolCall, project: Project) -> None:
    """Adds a note on languages whose servers are left alone; again if others are."""
    found = project.languages.side_languages()
    place, names = (str(project.root), "side languages"), ", ".join(sorted(found))
    if names and call.session.dependencies_noted.get(place) != names:
        call.session.dependencies_noted[place] = names
        files = ", ".join(str(found[title]) for title in sorted(found))
        call.note(
            f"Side languages: {files}. Their language servers are used once a call names such a file as its "
            "relative_path (setting side_language_percent)."
        )
