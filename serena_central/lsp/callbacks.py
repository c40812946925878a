"""Handles the requests and notifications that a language server sends to its client, and decides which changes on
disk it is notified of: by its catalogue entry, and by its registrations.

Every known request gets an answer, since some servers wait for it: settings, registrations, progress tokens. None of
them touches a file. Called by the connection's reader, so nothing here waits.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from serena_central.core.decoding import from_json
from serena_central.lsp.answers import FileEvent
from serena_central.lsp.catalogue import Watching
from serena_central.lsp.conversion import path_of, uri_of
from serena_central.lsp.globs import matches
from serena_central.lsp.handshake import workspace_folders
from serena_central.lsp.readiness import ReadinessTracker
from serena_central.lsp.types import (
    LspConfigurationParams,
    LspLogMessage,
    LspPublishedDiagnostics,
    LspRegistration,
    LspRegistrations,
    LspUnregistrations,
)
from serena_central.lsp.wire import MethodUnknown

logger = logging.getLogger(__name__)

METHOD = "workspace/didChangeWatchedFiles"

_TYPE: dict[Literal["created", "changed", "deleted"], int] = {"created": 1, "changed": 2, "deleted": 3}
"""LSP 3.17, FileChangeType."""

_ALL_KINDS = 7

_WILD = frozenset("*?{[")

_NOTHING_TO_SAY = frozenset(
    {
        "window/workDoneProgress/create",
        "window/showMessageRequest",  # null: the person chose none of the actions
        "workspace/codeLens/refresh",
        "workspace/diagnostic/refresh",
        "workspace/foldingRange/refresh",
        "workspace/inlayHint/refresh",
        "workspace/inlineValue/refresh",
        "workspace/semanticTokens/refresh",
    }
)
"""Requests whose answer is null."""


class _Watcher(msgspec.Struct):
    """One glob. `base` is None for patterns that match from the root or the file system's; `kinds` is LSP's bit set."""

    pattern: str
    base: Path | None
    kinds: int


class FileStatus(msgspec.Struct):
    """What a server does with a file, of clangd's textDocument/clangd.fileStatus."""

    uri: str
    state: str


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


class Callbacks:
    """One server's view of us. `registered` are the methods that it registered for after its start."""

    def __init__(
        self,
        server: str,
        folders: Sequence[Path],
        settings: dict[str, Any],
        *,
        readiness: ReadinessTracker,
        watchers: Watchers,
        on_diagnostics: Callable[[LspPublishedDiagnostics], None],
        on_registered: Callable[[], None],
        file_status: str,
        on_file_status: Callable[[FileStatus], None],
    ) -> None:
        """`file_status` is the notification of what the server does with a file, if it sends one."""
        self._server = server
        self._folders = folders
        self._settings = settings
        self._readiness = readiness
        self._watchers = watchers
        self._on_diagnostics = on_diagnostics
        self._on_registered = on_registered
        self._file_status = file_status
        self._on_file_status = on_file_status
        self._registrations: dict[str, str] = {}

    @property
    def registered(self) -> set[str]:
        return set(self._registrations.values())

    def request(self, method: str, params: msgspec.Raw) -> Any:
        """The result for a request of the server.

        Raises:
            MethodUnknown, msgspec.DecodeError
        """
        if method in _NOTHING_TO_SAY:
            return None
        match method:
            case "workspace/configuration":
                asked = from_json(params, LspConfigurationParams)
                return [self._section(item.section or "") for item in asked.items]
            case "workspace/workspaceFolders":
                return workspace_folders(self._folders)
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "this client does not apply edits requested by servers"}
            case "window/showDocument":
                return {"success": False}
            case "client/registerCapability":
                return self._register(from_json(params, LspRegistrations))
            case "client/unregisterCapability":
                return self._unregister(from_json(params, LspUnregistrations))
            case _:
                raise MethodUnknown(method)

    def notification(self, method: str, params: msgspec.Raw) -> None:
        """Raises: msgspec.DecodeError."""
        if method == "textDocument/publishDiagnostics":
            self._on_diagnostics(from_json(params, LspPublishedDiagnostics))
            return
        if method == self._file_status:
            self._on_file_status(from_json(params, FileStatus))
            return
        if method in ("window/logMessage", "window/showMessage"):
            logger.debug("%s: %s", self._server, from_json(params, LspLogMessage).message)
        self._readiness.hear(method, params)

    def _section(self, section: str) -> Any:
        """`{}` for what is not set: some servers die of null."""
        value: Any = self._settings
        for name in filter(None, section.split(".")):
            value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        return {} if value is None else value

    def _register(self, registrations: LspRegistrations) -> None:
        for registration in registrations.registrations:
            self._registrations[registration.id] = registration.method
            if registration.method == METHOD:
                self._watchers.register(registration)
        self._on_registered()

    def _unregister(self, registrations: LspUnregistrations) -> None:
        for registration in registrations.unregisterations:
            self._registrations.pop(registration.id, None)
            self._watchers.unregister(registration.id)
