"""How this server describes itself to clients, in wire form."""

from typing import Any

SERVER_NAME = "serena-central"

INSTRUCTIONS = """\
Code intelligence from language servers: find symbols by name path, their references, implementations and diagnostics, \
and search files, without reading whole files. Name the project in the argument project= of a call (a name or an \
absolute path; list_projects shows the known ones), unless you were started in it or made it the default by \
activate_project, where that is listed. Line numbers are 0-based. initial_instructions explains the tools."""

CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": True, "subscribe": True},
    "tools": {"listChanged": True},
}
"""In both eras; the SDK derives the same from the handlers."""

DISCOVERY_KEPT_MS = 600_000
"""How long clients of the modern era may keep what they are told of this server."""

LISTS_KEPT_MS = {
    "tools/list": 30_000,
    "resources/list": 30_000,
    "resources/templates/list": 3_600_000,
    "prompts/list": 3_600_000,
}
"""How long clients may keep each list. Tools for a short time: switching modes changes what a session is shown."""
