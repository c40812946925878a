"""What an answer lacks because its project is not trusted: told once in a session and project."""

from serena_central.projects.project import Project
from serena_central.tools.context import ToolCall


def note_restrictions(call: ToolCall, project: Project) -> None:
    """Adds a remark for each server that was asked and is kept from executing what the project brings."""
    root = str(project.root)
    for server, lacks in project.languages.restricted.items():
        if (root, server) not in call.session.restrictions_told:
            call.session.restrictions_told.add((root, server))
            call.remark(
                f"{server} is restricted: {lacks}, since {root} is not trusted. "
                f"If you trust it: serena-central trust {root}"
            )
