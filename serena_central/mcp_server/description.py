"""How this server describes itself to clients, in wire form."""

from collections.abc import Mapping
from typing import Any, Literal

SERVER_NAME = "serena-central"

CacheableMethod = Literal[
    "server/discover", "resources/read", "tools/list", "resources/list", "resources/templates/list", "prompts/list"
]
"""The protocol's term for methods whose results say how long they may be kept."""

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

KEPT_MS: Mapping[CacheableMethod, int] = {
    "server/discover": 600_000,
    "resources/read": 0,
    "tools/list": 30_000,
    "resources/list": 30_000,
    "resources/templates/list": 3_600_000,
    "prompts/list": 3_600_000,
}
"""How long clients of the modern era may keep each result. Tools for a short time: switching modes changes what a
session is shown."""
