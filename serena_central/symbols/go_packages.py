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


def of_package(root: Path, paths: Iterable[str], name: str) -> Collection[str]:
    """Those of some Go files (root-relative) whose package clause has this name; reads some, in the calling thread."""
    asked = sorted(path for path in paths if path.endswith(".go"))[:FILES_READ]
    found: set[str] = set()
    for path, data in read_each(root, asked):
        clause = _CLAUSE.search(data, 0, _CLAUSE_WITHIN)
        if clause is not None and clause[1].decode("utf-8", "replace") == name:
            found.add(path)
    return found
