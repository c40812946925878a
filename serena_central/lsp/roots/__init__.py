"""Finds where a language server runs for a file: its root, workspace folder and environment."""

from serena_central.lsp.roots.dependencies import ProjectDependencies
from serena_central.lsp.roots.go import Manifests
from serena_central.lsp.roots.neighbours import users_elsewhere
from serena_central.lsp.roots.outer_project import Reach, deciding, reach
from serena_central.lsp.roots.place import ServerRoot
from serena_central.lsp.roots.project_python import ProjectPython
from serena_central.lsp.roots.resolve import has_marker, server_root

__all__ = [
    "Manifests",
    "ProjectDependencies",
    "ProjectPython",
    "Reach",
    "ServerRoot",
    "deciding",
    "has_marker",
    "reach",
    "server_root",
    "users_elsewhere",
]
