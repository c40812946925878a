"""Migrates older forms of settings files.

`schemaVersion` names the form; a file without it has today's, or shows by its keys that it is older. Version 0 is what
Claude Code wrote before it had `permissions`: lists of tools at the top level, and patterns of files to leave alone.
"""

from typing import Any

from serena_central.claude_config.document import Document, as_list, as_object
from serena_central.claude_config.problems import Severity
from serena_central.claude_config.schema import VERSION

_RENAMED = {
    "allowedTools": "allow",
    "disallowedTools": "deny",
    "blockedTools": "deny",
    "deniedTools": "deny",
}
"""Top-level key of version 0, also accepted in `permissions` → list of `permissions`."""

_IGNORED_FILES = "ignorePatterns"


def migrate(document: Document) -> bool:
    """Brings a document's value into today's form, with a note for each key. False for a file that is newer than this
    program: then its rules alone are kept, so that a policy is not lifted."""
    settings = as_object(document.value)
    if settings is None:
        return True
    version = settings.get("schemaVersion", VERSION)
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        document.report(
            Severity.ERROR,
            ("schemaVersion",),
            f"the file is written for version {version} of the format, and version {VERSION} is the newest known here",
            "update serena-central, or write the file for an older version; its deny and ask rules hold meanwhile",
        )
        return False
    _migrate_lists(document, settings, settings, ())
    inside = as_object(settings.get("permissions"))
    if inside is not None:
        _migrate_lists(document, settings, inside, ("permissions",))
    patterns = settings.get(_IGNORED_FILES)
    if isinstance(patterns, list):
        _note(document, (_IGNORED_FILES,), "permissions.deny, as Read(…)")
        rules = [f"Read({one})" for one in settings.pop(_IGNORED_FILES) if isinstance(one, str) and one]
        _rules_of(settings, "deny").extend(rules)
    return True


def _migrate_lists(document: Document, settings: dict[str, Any], holder: dict[str, Any], path: tuple[str, ...]) -> None:
    for old, new in _RENAMED.items():
        if isinstance(holder.get(old), list):
            _note(document, (*path, old), f"permissions.{new}")
            _rules_of(settings, new).extend(holder.pop(old))


def _rules_of(settings: dict[str, Any], name: str) -> list[Any]:
    """The list of rules of this name, made where there is none."""
    permissions = as_object(settings.get("permissions"))
    if permissions is None:
        permissions = settings["permissions"] = {}
    rules = as_list(permissions.get(name))
    if rules is None:
        before = permissions.get(name)
        rules = permissions[name] = [before] if isinstance(before, str) else []
    return rules


def _note(document: Document, path: tuple[str, ...], now: str) -> None:
    document.report(Severity.NOTE, path, f"the key is of an older form of the format, and read as {now}", "rename it")


def rules_alone(value: Any) -> dict[str, Any]:
    """Of settings that can't be used as a whole: what restricts."""
    settings = as_object(value) or {}
    permissions = as_object(settings.get("permissions")) or {}
    kept = {name: permissions[name] for name in ("deny", "ask") if name in permissions}
    restricting: dict[str, Any] = {"permissions": kept} if kept else {}
    return restricting | ({"trust": "never"} if settings.get("trust") == "never" else {})
