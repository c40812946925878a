"""Finds the names that a package publishes: others may use them although nothing in its project does.

A Python package that a project distributes hands out every name without an underscore, a published JavaScript package
what its files export. Go, Rust and others say it themselves, by rules in `keep_rules`.
"""

import json
import re
from collections.abc import Callable, Collection
from pathlib import PurePosixPath
from typing import Any, cast

from serena_central.analysis.keep_rules import outermost
from serena_central.core.text import Text
from serena_central.symbols.index import Hit

_PYTHON_PROJECT = re.compile(
    r"^\[(project|tool\.poetry|tool\.flit\.metadata|metadata)\]|^[^\S\n]*setup\(", re.MULTILINE
)
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")


class Published:
    """Knows the manifests of one project. `read` gives the text of a root-relative file, "" if it can't be read."""

    def __init__(self, files: Collection[str], read: Callable[[str], str]) -> None:
        self._files = files
        self._read = read
        self._known: dict[str, bool] = {}

    def is_public(self, hit: Hit, text: Text, language: str) -> bool:
        """Whether others may use a symbol by its name."""
        match language:
            case "python":
                return self._is_public_in_python(hit)
            case "typescript" | "javascript":
                top = hit.file.symbols[outermost(hit)]
                exported = text.line(top.name_line).lstrip().startswith("export")
                return exported and self._any_above(hit.path, self._publishes_script)
            case _:
                return False

    def _is_public_in_python(self, hit: Hit) -> bool:
        folder = hit.path.rpartition("/")[0]
        if f"{folder}/__init__.py" not in self._files:
            return False  # a script, or the project's root
        names = [*PurePosixPath(hit.path).with_suffix("").parts, *hit.name_path.split("/")]
        private = any(name.startswith("_") and not name.endswith("__") for name in names)
        return not private and self._any_above(hit.path, self._distributes)

    def _any_above(self, path: str, is_one: Callable[[str], bool]) -> bool:
        """Whether a folder above a file, the project's root included, is one."""
        parts = path.split("/")[:-1]
        for count in range(len(parts) + 1):
            folder = "".join(f"{part}/" for part in parts[:count])
            if folder not in self._known:
                self._known[folder] = is_one(folder)
            if self._known[folder]:
                return True
        return False

    def _distributes(self, folder: str) -> bool:
        manifests = [f"{folder}{name}" for name in _PYTHON_MANIFESTS if f"{folder}{name}" in self._files]
        return any(_PYTHON_PROJECT.search(self._read(one)) for one in manifests)

    def _publishes_script(self, folder: str) -> bool:
        manifest = f"{folder}package.json"
        try:
            told = cast("dict[str, Any]", json.loads(self._read(manifest))) if manifest in self._files else {}
        except ValueError:
            return False
        return bool(told.get("name")) and told.get("private") is not True
