"""Which Rust files may belong to a library, whose public names other crates use: by Cargo's rules."""

import tomllib
from collections.abc import Callable, Collection
from typing import Any

MANIFEST = "Cargo.toml"

_NOT_LIBRARY = ("tests/", "benches/", "examples/", "src/bin/", "src/main.rs", "build.rs")
"""Where Cargo looks for a package's other targets (The Cargo Book, "Package Layout")."""


class Crates:
    """Knows the packages of one project. `read` gives the text of a root-relative file, "" if it can't be read."""

    def __init__(self, files: Collection[str], read: Callable[[str], str]) -> None:
        self._files = files
        self._read = read
        self._known: dict[str, bool] = {}

    def in_library(self, path: str) -> bool:
        """Whether a file may be a part of its package's library. One outside of `src` may be: a manifest names the
        library's file, and `include!` and `#[path]` name others. So may one without a manifest."""
        package = self._package_of(path)
        if package is None:
            return True
        if package not in self._known:
            self._known[package] = self._has_library(package)
        return self._known[package] and not path.removeprefix(package).startswith(_NOT_LIBRARY)

    def _package_of(self, path: str) -> str | None:
        """The nearest folder with a manifest, "" or with a `/` at its end."""
        folder = path
        while folder:
            folder = folder.rstrip("/").rpartition("/")[0]
            folder = f"{folder}/" if folder else ""
            if f"{folder}{MANIFEST}" in self._files:
                return folder
        return None

    def _has_library(self, package: str) -> bool:
        if f"{package}src/lib.rs" in self._files:
            return True
        try:
            manifest: dict[str, Any] = tomllib.loads(self._read(f"{package}{MANIFEST}"))
        except tomllib.TOMLDecodeError:
            return True  # a library is not ruled out
        return "lib" in manifest
