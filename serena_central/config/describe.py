"""Presents settings to people: the commented template of `config init`, and the rows of `config show --origins`.

Both are generated from the model, so that they can't drift from it.
"""

import json
import textwrap
from typing import Any, NamedTuple

import msgspec

from serena_central.config.layers import Loaded, Settings
from serena_central.config.model import Setting, get, groups_of, settings_of, split_key
from serena_central.config.settings import ServerSettings, SharedSettings

WIDTH = 100

_HEAD = """\
# Settings of serena-central. Every key is optional; the values here are the defaults. To change one, remove
# the # before its key (and before its group's).
# This file may be shared with Serena; its other keys are ignored here.
# `serena-central config show --origins` shows the effective values and where they come from.
"""


class Row(NamedTuple):
    """One key as `config show` prints it; `value` is JSON, a secret only says that it is set."""

    key: str
    value: str
    origin: str
    description: str


def template(model: type[SharedSettings] = ServerSettings) -> str:
    """A YAML file in which every key stands, commented out, with its default."""
    groups = groups_of(model)
    parts = [_HEAD]
    group = ""
    for setting in settings_of(model).values():
        of, _, name = setting.key.rpartition(".")
        if of != group:
            group = of
            parts.append(f"{_comment(groups[group])}\n#{group}:\n")
        indent = "  " if of else ""
        explained = _comment(f"{setting.description} ({setting.allowed})", indent)
        parts.append(f"{explained}\n#{indent}{name}: {json_of(setting.default)}\n")
    return "\n".join(parts)


def describe(loaded: Loaded[Settings]) -> list[Row]:
    """Every value with its origin, in the model's order; entries of free mappings stand one by one."""
    settings = settings_of(type(loaded.value))
    order = list(settings)
    rows: list[Row] = []
    values = values_of(loaded)
    for key in sorted(values, key=lambda key: (order.index(split_key(key, settings)[0]), key)):
        setting = settings[split_key(key, settings)[0]]
        origin = ", ".join(str(origin) for origin in loaded.origins[key])
        rows.append(Row(key, _shown(setting, values[key]), origin, setting.description))
    return rows


def values_of(loaded: Loaded[Settings]) -> dict[str, Any]:
    """Every value by its key as `describe` has it, secrets included: for comparing, never to be shown."""
    settings = settings_of(type(loaded.value))
    found: dict[str, Any] = {}
    for key in loaded.origins:
        name, entry = split_key(key, settings)
        value = get(loaded.value, name)
        found[key] = value[entry] if entry else value
    return found


def _shown(setting: Setting, value: Any) -> str:
    if setting.secret and value is not None:
        return "(set; hidden)"
    return json_of(value)


def json_of(value: Any) -> str:
    """A value as a YAML file may have it."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _comment(text: str, indent: str = "") -> str:
    mark = f"# {indent}"
    return textwrap.fill(text, WIDTH, initial_indent=mark, subsequent_indent=mark)
