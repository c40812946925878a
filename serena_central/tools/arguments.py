"""Explains refused arguments so that a model can correct all of them at once.

Asked only after a call's arguments were refused: every problem, what is allowed in its place, and what was meant.
"""

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from serena_central.core.decoding import converted
from serena_central.core.quoting import escaped

SHOWN_CHARACTERS = 60
"""Of a value that was given."""

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def problems_of(params: type[msgspec.Struct], given: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Sentences about arguments by their real names; none where nothing is wrong. `schema` is the JSON schema of what
    is accepted."""
    properties: Mapping[str, Any] = schema["properties"]
    missing = [name for name in schema.get("required", ()) if name not in given]
    said = [f"{name} is required{_described(properties[name])}." for name in missing]
    for field in msgspec.structs.fields(params):
        if field.name not in given:
            continue
        try:
            converted(given[field.name], field.type, strict=False)
        except (msgspec.ValidationError, UnicodeError):
            wanted = allowed(properties[field.name])
            said.append(f"{field.name} must be {wanted}, not {shown(given[field.name])}.")
    return said


def unknown(name: str, known: tuple[str, ...]) -> str:
    """A sentence about a parameter that there is none of."""
    alike = difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean {alike[0]}?" if alike else ""
    return f"There is no parameter {escaped(repr(name[:SHOWN_CHARACTERS]))}.{meant}"


def allowed(part: Mapping[str, Any]) -> str:
    """What one parameter's schema allows, in words."""
    choices = [choice for choice in part.get("anyOf", ()) if choice != {"type": "null"}]
    if choices:
        return " or ".join(dict.fromkeys(allowed(choice) for choice in choices))
    if "enum" in part:
        return f"one of {', '.join(str(one) for one in part['enum'] if one is not None)}"
    text = _TYPES.get(part.get("type", ""), "another value")
    items = part.get("items")
    if items:
        text += f" whose items are each {allowed(items)}"
    bounds = [f"{word} {part[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in part]
    return f"{text} of {' and '.join(bounds)}" if bounds else text


def shown(value: Any) -> str:
    """A value that was given, as JSON, shortened."""
    try:
        text = msgspec.json.encode(value).decode("utf-8")
    except (UnicodeError, TypeError, ValueError, OverflowError):
        text = repr(value)
    return escaped(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


def _described(part: Mapping[str, Any]) -> str:
    description = str(part.get("description", "")).strip().rstrip(".")
    return f" ({description})" if description else ""
