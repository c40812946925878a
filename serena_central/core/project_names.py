"""Parses project names as calls give them: one, `a,b`, or a list, also as JSON. It knows no projects."""

from contextlib import suppress
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.paths import expanded


def listed_names(asked: str | list[str]) -> str | list[str]:
    """Names of projects as a call gives them, with `a,b` and `["a", "b"]` taken apart; a folder whose name has a comma
    stays whole."""
    if isinstance(asked, str):
        names = _parts(asked)
        return names[0] if len(names) == 1 else names
    return [name for one in asked for name in _parts(one)]


def _parts(asked: str) -> list[str]:
    if asked.lstrip().startswith("["):
        # What models send for a list, where a parameter is told as a string.
        with suppress(msgspec.DecodeError):
            return from_json(asked, list[str])
    if "," not in asked or (asked.startswith(("/", "~")) and _exists(expanded(asked))):
        return [asked]
    return [name for part in asked.split(",") if (name := part.strip())] or [asked]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
