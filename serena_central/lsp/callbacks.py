"""Handles the requests and notifications that a language server sends to its client.

Every known request gets an answer, since some servers wait for it: settings, registrations, progress tokens. None of
them touches a file. Called by the connection's reader, so nothing here waits.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.lsp import watching
from serena_central.lsp.handshake import workspace_folders
from serena_central.lsp.readiness import ReadinessTracker
from serena_central.lsp.types import (
    LspConfigurationParams,
    LspLogMessage,
    LspPublishedDiagnostics,
    LspRegistrations,
    LspUnregistrations,
)
from serena_central.lsp.wire import MethodUnknown

logger = logging.getLogger(__name__)

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


class Callbacks:
    """One server's view of us. `registered` are the methods that it registered for after its start."""

    def __init__(
        self,
        server: str,
        folders: Sequence[Path],
        settings: dict[str, Any],
        *,
        readiness: ReadinessTracker,
        watchers: watching.Watchers,
        on_diagnostics: Callable[[LspPublishedDiagnostics], None],
        on_registered: Callable[[], None],
    ) -> None:
        self._server = server
        self._folders = folders
        self._settings = settings
        self._readiness = readiness
        self._watchers = watchers
        self._on_diagnostics = on_diagnostics
        self._on_registered = on_registered
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
                asked = msgspec.json.decode(params, type=LspConfigurationParams)
                return [self._section(item.section or "") for item in asked.items]
            case "workspace/workspaceFolders":
                return workspace_folders(self._folders)
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "this client does not apply edits requested by servers"}
            case "window/showDocument":
                return {"success": False}
            case "client/registerCapability":
                return self._register(msgspec.json.decode(params, type=LspRegistrations))
            case "client/unregisterCapability":
                return self._unregister(msgspec.json.decode(params, type=LspUnregistrations))
            case _:
                raise MethodUnknown(method)

    def notification(self, method: str, params: msgspec.Raw) -> None:
        """Raises: msgspec.DecodeError."""
        if method == "textDocument/publishDiagnostics":
            self._on_diagnostics(msgspec.json.decode(params, type=LspPublishedDiagnostics))
            return
        if method in ("window/logMessage", "window/showMessage"):
            logger.debug("%s: %s", self._server, msgspec.json.decode(params, type=LspLogMessage).message)
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
            if registration.method == watching.METHOD:
                self._watchers.register(registration)
        self._on_registered()

    def _unregister(self, registrations: LspUnregistrations) -> None:
        for registration in registrations.unregisterations:
            self._registrations.pop(registration.id, None)
            self._watchers.unregister(registration.id)
