"""Go package names, which qualify names in code and may differ from the folder's name."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from serena_central.files.text import read_each

FILES_READ = 200
"""Of files that define a name."""

_CLAUSE = re.compile(rb"^package[ \t]+(\w+)[ \t\r]*(?:;|//[^\n]*|/\*[^\n]*)?$", re.MULTILINE)

_CLAUSE_WITHIN = 100_000
"""Bytes: licences and documentation stand before it."""


def package_name(source: bytes) -> str | None:
    """What the package clause of a Go file says; None without one."""
    clause = _CLAUSE.search(source, 0, _CLAUSE_WITHIN)
    return clause[1].decode("utf-8", "replace") if clause else None


def of_package(root: Path, paths: Iterable[str], name: str) -> Collection[str]:
    """Those of some Go files (root-relative) whose package clause has this name; reads some, in the calling thread."""
    asked = sorted(path for path in paths if path.endswith(".go"))[:FILES_READ]
    return {path for path, data in read_each(root, asked) if package_name(data) == name}
