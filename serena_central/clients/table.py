"""The clients that can be connected, by the names that commands take."""

from serena_central.clients import (
    claude_code,
    claude_desktop,
    cline,
    codex,
    cursor,
    gemini,
    opencode,
    vscode,
    windsurf,
    zed,
)
from serena_central.clients.client import Client
from serena_central.clients.hooks import Hooks

CLIENTS: dict[str, Client] = {
    "claude-code": claude_code.CLIENT,
    "codex": codex.CLIENT,
    "gemini": gemini.CLIENT,
    "cursor": cursor.CLIENT,
    "vscode": vscode.CLIENT,
    "opencode": opencode.CLIENT,
    "cline": cline.CLIENT,
    "windsurf": windsurf.CLIENT,
    "zed": zed.CLIENT,
    "claude-desktop": claude_desktop.CLIENT,
}

HOOKS: dict[str, Hooks] = {
    "claude-code": claude_code.HOOKS,
    "codex": codex.HOOKS,
    "gemini": gemini.HOOKS,
    "cursor": cursor.HOOKS,
    "vscode": vscode.HOOKS,
}
"""Clients whose hooks can stop a text search."""
