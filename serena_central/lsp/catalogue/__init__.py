"""The catalogue of languages and their servers: data in TOML, validated when it is loaded."""

from serena_central.lsp.catalogue.registry import Catalogue, Claim, catalogue
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
]
