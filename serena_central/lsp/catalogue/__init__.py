"""The catalogue of languages and their servers: data in TOML, validated when it is loaded."""

from serena_central.lsp.catalogue.registry import Catalogue, Claim, FileKind, catalogue, is_read
from serena_central.lsp.catalogue.spec import (
    Documents,
    InstallRecipe,
    Language,
    Launching,
    Naming,
    Readiness,
    Roots,
    ServerSpec,
    Untrusted,
    Watching,
)

__all__ = [
    "Catalogue",
    "Claim",
    "Documents",
    "FileKind",
    "InstallRecipe",
    "Language",
    "Launching",
    "Naming",
    "Readiness",
    "Roots",
    "ServerSpec",
    "Untrusted",
    "Watching",
    "catalogue",
    "is_read",
]
