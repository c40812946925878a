"""Tells after which changes on disk a server has to build again what the compiler runs, procedural macros and build
scripts: one that looks at no file that a script reads.

A script of Cargo's says which files those are. Cargo keeps that beside the folder that the script writes into, for
which a server that has run it registers.
"""

import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from serena_central.core.nofollow import open_following

_NAMED = re.compile(r"^cargo::?rerun-if-changed=(.*?)\r?$", re.MULTILINE)

_MACROS = re.compile(r"^[^\S\n]*proc[-_]macro\s*=\s*true\b", re.MULTILINE)

_KNOWN = frozenset({"Cargo.toml", "Cargo.lock"})
"""The server loads the workspace again when these change."""

_MOST_BYTES = 1_000_000
"""Of what one script says."""


def asks_for_a_build(changed: Collection[Path], folders: Iterable[Path], root: Path) -> bool:
    """Whether a build script or a source of a procedural macro in `root` is among files that changed, or an input of a
    script. `folders` are those that the server registered for. Looks at the disk."""
    outputs = {folder: said for folder in folders if (said := _said(folder)) is not None}
    paths = [
        path for path in changed if outputs.keys().isdisjoint(path.parents)
    ]  # else one build would ask for the next
    sources = {path.parent for path in paths if path.suffix == ".rs" and path.is_relative_to(root)}
    return _has_input(paths, outputs.values()) or any(map(_makes_macros, sources))


def built_files(folders: Iterable[Path]) -> list[Path]:
    """What build scripts wrote. Looks at the disk."""
    return [path for folder in folders if _said(folder) is not None for path in folder.rglob("*") if path.is_file()]


def _makes_macros(folder: Path) -> bool:
    """Whether the package that a folder belongs to is built to be run by the compiler."""
    for above in (folder, *folder.parents):
        try:
            return _MACROS.search(_beginning(above / "Cargo.toml")) is not None
        except OSError:
            continue
    return False


def _said(folder: Path) -> str | None:
    """What a build script said whose folder this is; None for all others."""
    if folder.name != "out":
        return None
    try:
        return _beginning(folder.parent / "output")
    except OSError:
        return None


def _beginning(file: Path) -> str:
    """Raises: OSError."""
    with os.fdopen(open_following(str(file)), "rb") as opened:  # which never waits, whatever it is
        return (opened.read(_MOST_BYTES) or b"").decode("utf-8", "replace")


def _has_input(paths: Iterable[Path], outputs: Iterable[str]) -> bool:
    """Whether what scripts said makes an input of one of some files.

    A script that names nothing, or its whole package, is run after each change of that. Its sources are left out here:
    after each edit it would be run, for which no script is written.
    """
    of_each = [set(map(_inside, _NAMED.findall(said))) for said in outputs]
    takes_all = any(not names or "" in names for names in of_each)
    named = set[str]().union(*of_each)
    return bool(of_each) and any(
        path.name == "build.rs"
        or (takes_all and path.suffix != ".rs" and path.name not in _KNOWN)
        or not named.isdisjoint(_parts_of(path))
        for path in paths
    )


def _inside(name: str) -> str:
    """What a path of which only the end is known has to contain: it is relative to the package, which is not said, or
    leads out of that."""
    return re.sub(r"^(?:\.\.(?:/|$))+|^\.$", "", posixpath.normpath(name).lstrip("/"))


def _parts_of(path: Path) -> Iterator[str]:
    """All paths that one contains, be they of the file or of a folder around it."""
    names = path.as_posix().strip("/").split("/")
    return ("/".join(names[first:end]) for end in range(1, len(names) + 1) for first in range(end))
