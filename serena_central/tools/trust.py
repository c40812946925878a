"""What is said once in a session and project: what answers lack since it is not trusted, whose Python is
used, which packages are missing, and which languages are hardly looked at."""

from serena_central.projects.project import Project
from serena_central.tools.context import ToolCall


def note_restrictions(call: ToolCall, project: Project) -> None:
    """Adds a note for each server that was asked and is kept from executing what the project brings."""
    root = str(project.root)
    for server, lacks in project.languages.restricted.items():
        if (root, server) not in call.session.restrictions_told:
            call.session.restrictions_told.add((root, server))
            call.note(
                f"{server} is restricted ({lacks}), because {root} is not trusted. "
                f"To trust it: serena-central trust {root}"
            )


def note_python(call: ToolCall, project: Project) -> None:
    """Adds a note on the environment that a server which was asked resolves imports in; again if it is another."""
    for server, note in project.languages.python.notes.items():
        place = str(project.root), server
        if note and call.session.pythons_told.get(place) != note:
            call.session.pythons_told[place] = note
            call.note(note)


def note_instead(call: ToolCall, project: Project) -> None:
    """Adds a note on servers in whose place, or beside which, files are read by syntax; again if that changes."""
    for server, note in read_by_syntax(project).items():
        place = str(project.root), f"{server} instead"
        if call.session.dependencies_told.get(place) != note:
            call.session.dependencies_told[place] = note
            call.note(note)


def read_by_syntax(project: Project) -> dict[str, str]:
    """Server → what is to be known of files that it can't know, and that are read by syntax."""
    notes = {
        server: f"Symbols come from syntax (tree-sitter) where {server} would report fewer: {lacks}. With this many "
        "files "
        f"it is not asked: functions that tree-sitter cannot parse, between macros, may be missing."
        for server, lacks in project.languages.builds.read_instead().items()
    }
    for server, lacks in project.languages.builds.read_besides().items():
        notes[server] = f"Symbols come from syntax (tree-sitter) where it reports more than {server}: {lacks}."
    return notes


def note_dependencies(call: ToolCall, project: Project) -> None:
    """Adds a note on packages that a server which was asked does not find; again if others are missing."""
    for (server, folder), note in project.languages.lacking().items():
        place = str(folder), server
        if call.session.dependencies_told.get(place) != note:
            call.session.dependencies_told[place] = note
            call.note(note)


def note_side_languages(call: ToolCall, project: Project) -> None:
    """Adds a note on languages whose servers are left alone; again if others are."""
    found = project.languages.side_languages()
    place, names = (str(project.root), "side languages"), ", ".join(sorted(found))
    if names and call.session.dependencies_told.get(place) != names:
        call.session.dependencies_told[place] = names
        files = ", ".join(str(found[title]) for title in sorted(found))
        call.note(
            f"Side languages: {files}. Their language servers are used once a call names such a file as its "
            "relative_path (setting side_language_percent)."
        )
