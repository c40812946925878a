"""LSP's handshake: the parameters of initialize, and the server's capabilities.

Pure data in and out; LSP 3.17, "Initialize Request".
"""

import os
import re
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.text import Encoding
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.catalogue.spec import Feature
from serena_central.lsp.conversion import uri_of
from serena_central.lsp.types import LspInitializeResult

_DYNAMIC = {"dynamicRegistration": True}
_LINKS = {"linkSupport": True}
"""A link says where the name of its target stands; a place may be the whole definition (Intelephense)."""

CLIENT_CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        # All or none: jdtls renames no file for a client that does not create and delete them, too. Those are refused.
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        "didChangeConfiguration": _DYNAMIC,
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"symbolKind": {"valueSet": list(range(1, 27))}},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"didSave": False},
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": list(range(1, 27))},
        },
        "references": {},
        "definition": _LINKS,
        "declaration": _LINKS,
        "implementation": _LINKS,
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "signatureHelp": {"signatureInformation": {"documentationFormat": ["markdown", "plaintext"]}},
        "rename": {"prepareSupport": False},
        "callHierarchy": {},
        "typeHierarchy": {},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    },
    "window": {"workDoneProgress": True, "showMessage": {}},
}

METHODS: dict[Feature, tuple[str, str]] = {
    "document_symbols": ("textDocument/documentSymbol", "documentSymbolProvider"),
    "references": ("textDocument/references", "referencesProvider"),
    "definition": ("textDocument/definition", "definitionProvider"),
    "declaration": ("textDocument/declaration", "declarationProvider"),
    "implementation": ("textDocument/implementation", "implementationProvider"),
    "hover": ("textDocument/hover", "hoverProvider"),
    "signature": ("textDocument/signatureHelp", "signatureHelpProvider"),
    "diagnostics": ("textDocument/diagnostic", "diagnosticProvider"),
    "call_hierarchy": ("textDocument/prepareCallHierarchy", "callHierarchyProvider"),
    "type_hierarchy": ("textDocument/prepareTypeHierarchy", "typeHierarchyProvider"),
    "rename": ("textDocument/rename", "renameProvider"),
}
"""Feature → the request, and the server capability that offers it."""


_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


class _BuildInfo(msgspec.Struct):
    """Go's debug.BuildInfo of gopls; the field is spelt as there."""

    Version: str = ""


class ServerOffer(msgspec.Struct):
    """What a server said of itself."""

    capabilities: dict[str, Any] = {}
    version: str = ""
    encoding: Encoding = "utf-16"
    sync_kind: int = 1


def initialize_params(spec: ServerSpec, folders: Sequence[Path]) -> dict[str, Any]:
    own = {"general": {"positionEncodings": list(spec.encodings)}}
    return {
        "processId": os.getpid(),
        "clientInfo": {"name": "serena-central"},
        "locale": "en",
        "rootPath": str(folders[0]),
        "rootUri": uri_of(folders[0]),
        "capabilities": merged(merged(CLIENT_CAPABILITIES, own), spec.capabilities),
        "initializationOptions": spec.initialization_options,
        "workspaceFolders": workspace_folders(folders),
    }


def workspace_folders(folders: Sequence[Path]) -> list[dict[str, str]]:
    return [{"uri": uri_of(folder), "name": folder.name} for folder in folders]


def offer_of(result: LspInitializeResult) -> ServerOffer:
    said = result.capabilities
    chosen = said.get("positionEncoding", "utf-16")
    encoding: Encoding = chosen if chosen in ("utf-8", "utf-32") else "utf-16"
    sync: Any = said.get("textDocumentSync", 1)
    kind = cast("dict[str, Any]", sync).get("change", 0) if isinstance(sync, dict) else sync
    version = (result.server_info.version if result.server_info else None) or ""
    return ServerOffer(said, _plain_version(version), encoding, kind if isinstance(kind, int) else 1)


def _plain_version(said: str) -> str:
    """The number alone: gopls sends its whole build information as JSON, clangd a sentence."""
    if said.startswith("{"):
        try:
            said = from_json(said, _BuildInfo).Version
        except msgspec.DecodeError:
            return ""
    match = _VERSION.search(said)
    return match.group() if match else said[:40]


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid on it, table by table; neither is changed."""
    result = deepcopy(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            result[key] = merged(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            result[key] = deepcopy(value)
    return result
