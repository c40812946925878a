"""Compares a document with a JSON Schema, and keeps of it what fits.

It knows the part of JSON Schema 2020-12 that our schemas use: type, enum, properties, additionalProperties, items,
required, minimum, maximum, $ref into $defs. What does not fit is a problem with its place, and is left out alone: the
rest of its object or list counts. Keys that the schema does not name are kept and noted, since the format belongs to
others and grows.
"""

import difflib
from collections.abc import Mapping
from typing import Any, cast

from serena_central.claude_config.checks import EVENTS
from serena_central.claude_config.document import Document
from serena_central.claude_config.problems import KeyPath, Severity, brief

Schema = Mapping[str, Any]

LEFT_OUT = object()
"""In place of a value that does not fit."""

_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}


class Fitting:
    """One comparison of one document."""

    def __init__(self, document: Document, schema: Schema, *, notes: bool = True) -> None:
        """`notes`: report keys that the schema does not name."""
        self._document = document
        self._root = schema
        self._notes = notes

    def fit(self) -> Any:
        """The part of the document's value that fits; LEFT_OUT for nothing."""
        return self._fit(self._document.value, self._root, ())

    def _fit(self, value: Any, schema: Schema, path: KeyPath) -> Any:
        schema = self._resolved(schema)
        wanted = schema.get("type")
        if wanted is not None and not _is_of(value, wanted):
            if wanted == "array" and isinstance(value, str) and self._items_are_text(schema):
                self._report(
                    Severity.WARNING, path, "a list is needed; it is read as a list of one", "write [ ] around it"
                )
                return self._list([value], schema, path)
            self._report(Severity.ERROR, path, f"{_kind(value)} stands here", f"{_named(wanted)} is needed")
            return LEFT_OUT
        allowed = schema.get("enum")
        if allowed is not None and value not in allowed:
            self._report(
                Severity.ERROR, path, f"{brief(value)} is not allowed", f"allowed are {', '.join(map(str, allowed))}"
            )
            return LEFT_OUT
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value), schema, path)
        if isinstance(value, list):
            return self._list(cast("list[Any]", value), schema, path)
        return value if self._in_bounds(value, schema, path) else LEFT_OUT

    def _object(self, value: Mapping[str, Any], schema: Schema, path: KeyPath) -> Any:
        known: Mapping[str, Schema] = schema.get("properties", {})
        others: Schema | None = schema.get("additionalProperties")
        fitting: dict[str, Any] = {}
        for key, inside in value.items():
            if key in known or others:
                fitted = self._fit(inside, known.get(key, others or {}), (*path, key))
                if fitted is not LEFT_OUT:
                    fitting[key] = fitted
            else:
                if known and self._notes:
                    self._unknown(key, known, path)
                fitting[key] = inside
        missing = [key for key in schema.get("required", ()) if key not in fitting]
        if missing:
            names = ", ".join(missing)
            self._report(Severity.ERROR, path, f"{names} is missing, so that this entry has no effect", f"add {names}")
            return LEFT_OUT
        return fitting

    def _list(self, value: list[Any], schema: Schema, path: KeyPath) -> list[Any]:
        items: Schema = schema.get("items", {})
        fitted = [self._fit(inside, items, (*path, place)) for place, inside in enumerate(value)]
        return [one for one in fitted if one is not LEFT_OUT]

    def _in_bounds(self, value: Any, schema: Schema, path: KeyPath) -> bool:
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is None or value >= low) and (high is None or value <= high):
            return True
        bounds = (
            f"from {low} to {high}" if None not in (low, high) else f"at least {low}" if high is None else f"to {high}"
        )
        self._report(Severity.ERROR, path, f"{brief(value)} is out of range", f"{bounds} is allowed")
        return False

    def _unknown(self, key: str, known: Mapping[str, Schema], path: KeyPath) -> None:
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
        remedy = f"did you mean {close[0]}?" if close else "it is kept, and has no effect here"
        if not path and key in EVENTS:
            remedy = "hooks at this event have an effect below hooks only"
        self._report(Severity.NOTE, (*path, key), "the key is not known here", remedy)

    def _items_are_text(self, schema: Schema) -> bool:
        return self._resolved(schema.get("items", {})).get("type") == "string"

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _report(self, severity: Severity, path: KeyPath, text: str, remedy: str) -> None:
        self._document.report(severity, path, text, remedy)


def _is_of(value: Any, wanted: str | list[str]) -> bool:
    return _kind_of(value) in _alternatives(wanted) or (
        isinstance(value, float) and value.is_integer() and "integer" in _alternatives(wanted)
    )


def _alternatives(wanted: str | list[str]) -> set[str]:
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    return names | {"integer"} if "number" in names else names


def _kind_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _kind(value: Any) -> str:
    return _NAMES[_kind_of(value)] if not isinstance(value, bool) else brief(value).lower()


def _named(wanted: str | list[str]) -> str:
    return " or ".join(_NAMES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))
