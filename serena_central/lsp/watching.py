"""Decides which changes on disk a server is notified of: by its catalogue entry, and by its registrations."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from serena_central.lsp.answers import FileEvent
from serena_central.lsp.catalogue import Watching
from serena_central.lsp.conversion import path_of, uri_of
from serena_central.lsp.globs import matches
from serena_central.lsp.types import LspRegistration

METHOD = "workspace/didChangeWatchedFiles"

_TYPE: dict[Literal["created", "changed", "deleted"], int] = {"created": 1, "changed": 2, "deleted": 3}
"""LSP 3.17, FileChangeType."""

_ALL_KINDS = 7

_WILD = frozenset("*?{[")


class _Watcher(msgspec.Struct):
    """One glob. `base` is None for patterns that match from the root or the file system's; `kinds` is LSP's bit set."""

    pattern: str
    base: Path | None
    kinds: int


class Watchers:
    """The globs of one server, and the notification that follows from a change."""

    def __init__(self, root: Path, spec: Watching) -> None:
        self._root = root
        self._deaf = spec.by_itself
        self._always = [_Watcher(pattern, None, _ALL_KINDS) for pattern in spec.globs]
        self._registered: dict[str, list[_Watcher]] = {}
        self.folders: frozenset[Path] = frozenset()
        """Folders that the server registered for with all that lies in them: it reads their files."""

    def register(self, registration: LspRegistration) -> None:
        """Takes DidChangeWatchedFilesRegistrationOptions; what can't be read is left out."""
        watchers: list[_Watcher] = []
        options: Any = registration.register_options or {}
        for entry in cast("list[dict[str, Any]]", options.get("watchers", [])):
            glob: Any = entry.get("globPattern")
            kinds = entry.get("kind") or _ALL_KINDS
            if isinstance(glob, str):
                watchers.append(_Watcher(glob, None, kinds))
            elif isinstance(glob, dict):
                relative = cast("dict[str, Any]", glob)
                base: Any = relative.get("baseUri")
                uri = cast("dict[str, Any]", base).get("uri", "") if isinstance(base, dict) else base
                watchers.append(_Watcher(str(relative.get("pattern", "")), path_of(str(uri)), kinds))
        self._registered[registration.id] = watchers
        self._note_folders()

    def unregister(self, registration_id: str) -> None:
        self._registered.pop(registration_id, None)
        self._note_folders()

    def _note_folders(self) -> None:
        found = (_folder(watcher) for watchers in self._registered.values() for watcher in watchers)
        self.folders = frozenset(folder for folder in found if folder is not None)

    def events(self, changes: Iterable[FileEvent]) -> list[dict[str, Any]]:
        """The FileEvents for those changes that somebody wants."""
        if self._deaf:
            return []
        return [{"uri": uri_of(change.path), "type": _TYPE[change.kind]} for change in changes if self._wanted(change)]

    def _wanted(self, change: FileEvent) -> bool:
        kind_bit = 1 << (_TYPE[change.kind] - 1)
        if any(self._matches(watcher, change.path) for watcher in self._always):
            return True
        return any(
            watcher.kinds & kind_bit and self._matches(watcher, change.path)
            for watchers in self._registered.values()
            for watcher in watchers
        )

    def _matches(self, watcher: _Watcher, path: Path) -> bool:
        if watcher.base is None and matches(watcher.pattern, path.as_posix()):
            return True
        base = watcher.base or self._root
        return path.is_relative_to(base) and matches(watcher.pattern, path.relative_to(base).as_posix())


def _folder(watcher: _Watcher) -> Path | None:
    """The folder of which a glob means everything below."""
    parts = watcher.pattern.split("/")
    fixed = next((number for number, part in enumerate(parts) if not _WILD.isdisjoint(part)), len(parts))
    if "**" not in parts[fixed : fixed + 1]:
        return None
    folder = (watcher.base or Path()) / "/".join(parts[:fixed])
    return folder if folder.is_absolute() else None
