"""Finds the names by which code elsewhere mentions the package of a file: words that its imports must contain.

Reads the nearest manifest up to the project's root. An empty answer means that no rule is known for the language, or
that the manifest gives no name: then nothing can be ruled out.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, cast

from serena_central.files.text import read_quickly

_GO_MODULE = re.compile(r'^[^\S\n]*module\s+"?([^\s"]+)', re.MULTILINE)


def mentions(root: Path, path: str, language: str) -> list[str]:
    """Names of the package of a root-relative file; any one of them is enough."""
    rule = _RULES.get(language)
    return [name for name in rule(root, PurePosixPath(path)) if name] if rule else []


def _go(root: Path, path: PurePosixPath) -> list[str]:
    found = _GO_MODULE.search(_nearest(root, path, "go.mod"))
    return [found[1]] if found else []


def _npm(root: Path, path: PurePosixPath) -> list[str]:
    """The package's name, or the folder through which a relative import from outside has to lead."""
    name = _name(_parsed(json.loads, _nearest(root, path, "package.json")))
    return [name, root.name] if name else []


def _cargo(root: Path, path: PurePosixPath) -> list[str]:
    manifest = _parsed(tomllib.loads, _nearest(root, path, "Cargo.toml"))
    names = [_name(manifest.get("lib")), _name(manifest.get("package"))]
    return [name.replace("-", "_") for name in names]


def _python(root: Path, path: PurePosixPath) -> list[str]:
    """The topmost package of the file, or the file itself as a module; and the root, where that is a package."""
    package = None
    for folder in path.parents[:-1]:
        if not (root / folder / "__init__.py").is_file():
            break
        package = folder.name
    # A namespace package has no __init__.py: its name is that of the first folder below `src`, or of the root.
    within = path.relative_to("src") if path.is_relative_to("src") else path
    outermost = within.parents[-2].name if len(within.parents) > 1 else within.stem
    names = [package or path.stem, outermost, root.name if (root / "__init__.py").is_file() else ""]
    return list(dict.fromkeys(root.name if name == "__init__" else name for name in names))


_RULES: dict[str, Callable[[Path, PurePosixPath], list[str]]] = {
    "go": _go,
    "javascript": _npm,
    "python": _python,
    "rust": _cargo,
    "typescript": _npm,
}


def _nearest(root: Path, path: PurePosixPath, manifest: str) -> str:
    """The text of the manifest in the file's folder or the nearest one above; empty where there is none."""
    for folder in _folders(root, path):
        data = read_quickly(str(folder / manifest))
        if data is not None:
            return data.decode("utf-8", "replace")
    return ""


def _folders(root: Path, path: PurePosixPath) -> Iterator[Path]:
    return (root / folder for folder in path.parents)


def _parsed(parse: Callable[[str], Any], text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        found = parse(text)
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def _name(table: Any) -> str:
    name = cast("dict[str, Any]", table).get("name") if isinstance(table, dict) else None
    return name if isinstance(name, str) else ""
