"""Lists what a repository's settings can execute or reach outside of the repository, for a person to approve.

Hooks, MCP servers, helpers that are commands, and variables for programs. The texts are canonical: two files of one
meaning have one text, variables stand as they are written, and what is not ASCII is escaped, so that nothing can hide.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serena_central.claude_config.document import Document, as_object
from serena_central.claude_config.locations import FOLDER, LOCAL_SETTINGS, PROJECT_SERVERS, SETTINGS, Locations
from serena_central.config.document import DocumentError, read_whole
from serena_central.core.owners import is_strangers

KEYS = (
    *("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "env", "fileSuggestion", "hooks", "mcpServers"),
    *("otelHeadersHelper", "statusLine"),
)
"""Top-level keys of settings under which a command, a program, a URL or a variable may stand."""


def files_of(root: Path, locations: Locations) -> Iterator[tuple[Path, Path]]:
    """The files that may bring something, each with the repository's folder that it must not lead out of."""
    brought = locations.brought_folder(root)
    if brought is not None:
        yield brought / SETTINGS, root
    yield root / FOLDER / LOCAL_SETTINGS, root
    for folder in server_folders(root, locations):
        yield folder / PROJECT_SERVERS, folder


def server_folders(root: Path, locations: Locations) -> list[Path]:
    """Folders whose `.mcp.json` counts in a root: from itself up to its repository's root."""
    found: list[Path] = []
    for folder in (root, *locations.around(root)):
        if folder != root and any(is_strangers(folder / name, root) for name in (PROJECT_SERVERS, ".git")):
            break
        found.append(folder)
        if (folder / ".git").exists():
            return found
    return [root]


def executable_texts(root: Path, locations: Locations) -> dict[str, str]:
    """File → canonical text of what in it can execute; only files where there is something."""
    found: dict[str, str] = {}
    for file, within in files_of(root, locations):
        try:
            text = executable_text(file, read_whole(file, within) or "")
        except DocumentError:
            continue  # nor does anything of it count
        if text:
            found[str(file)] = text
    return found


def executable_text(file: Path, whole: str) -> str:
    """What can execute of the text that stands in a file, or is to; "" where nothing can."""
    document = Document(str(file), whole)
    value = as_object(document.value) if document.complete else None
    parts: dict[str, Any] = {key: value[key] for key in KEYS if value.get(key)} if value else {}
    return json.dumps(parts, indent=2, sort_keys=True, ensure_ascii=True) if parts else ""
