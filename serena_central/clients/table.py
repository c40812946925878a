"""The clients that can be connected, by the names that commands take."""

from serena_central.clients import (
    amp,
    claude_code,
    claude_desktop,
    cline,
    codex,
    copilot_cli,
    cursor,
    gemini,
    junie,
    kilo_code,
    kiro,
    opencode,
    qwen_code,
    roo_code,
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
    "copilot-cli": copilot_cli.CLIENT,
    "qwen-code": qwen_code.CLIENT,
    "kiro": kiro.CLIENT,
    "roo-code": roo_code.CLIENT,
    "kilo-code": kilo_code.CLIENT,
    "amp": amp.CLIENT,
    "junie": junie.CLIENT,
}

HOOKS: dict[str, Hooks] = {
    "claude-code": claude_code.HOOKS,
    "codex": codex.HOOKS,
    "gemini": gemini.HOOKS,
    "cursor": cursor.HOOKS,
    "vscode": vscode.HOOKS,
}
"""Clients whose hooks can stop a text search."""
