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
"""In the handshake era; the SDK derives the same from the handlers."""

LIST_HINTS: dict[str, Any] = {"ttlMs": 30_000, "cacheScope": "private"}
"""How long clients may keep the list of tools. Short: switching modes changes what a session is shown."""
