"""What forms for settings have in common: a value as text, its choices, and the way back from a text to a value."""

import json
from typing import Any

import msgspec

from serena_central.config.model import Setting
from serena_central.core.errors import InvalidArguments


def as_text(value: Any) -> str:
    """JSON, or a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def choices_of(setting: Setting) -> list[str]:
    """Of a closed set of values; empty for others."""
    if isinstance(setting.default, bool):
        return ["true", "false"]
    allowed = setting.allowed
    return allowed.removeprefix("one of ").split(", ") if allowed.startswith("one of ") else []


def checked(setting: Setting, text: str) -> Any:
    """A form's text as the setting's plain value.

    Raises:
        InvalidArguments
    """
    try:
        value: Any = text.strip()
        if isinstance(setting.default, list):
            value = (
                json.loads(value) if value.startswith("[") else [one.strip() for one in value.split(",") if one.strip()]
            )
        return msgspec.to_builtins(setting.convert(value, lenient=True))
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"{setting.key} must be {setting.allowed}.") from error
