"""Keys of query strings: one description of each serves the check of requests and the API's document."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request

from serena_central.core.errors import InvalidArguments
from serena_central.core.quoting import quoted


class Query(NamedTuple):
    """One key. `schema` is a JSON schema of type string, integer or number (a time)."""

    name: str
    description: str
    schema: Mapping[str, Any] = {"type": "string"}
    repeated: bool = False
    required: bool = False

    def check(self, values: Collection[str]) -> None:
        """Raises InvalidArguments for values that the schema does not allow."""
        if self.required and not values:
            raise InvalidArguments(f"The query string needs {self.name}: {self.description}")
        if len(values) > 1 and not self.repeated:
            raise InvalidArguments(f"{self.name} stands twice in the query string.")
        for value in values:
            if not _fits(value, self.schema):
                raise InvalidArguments(f"{self.name} must be {_allowed(self.schema)}.")


def choice(name: str, description: str, choices: Collection[str]) -> Query:
    return Query(name, description, {"type": "string", "enum": [str(one) for one in choices]})


MOST_ROWS = 1000
"""Of anything, in one answer."""

DEFAULT_ROWS = 100

MOST_SECONDS = 1e11
"""A time beyond it is in milliseconds."""

SECONDS: Mapping[str, Any] = {"type": "number", "minimum": 0, "exclusiveMaximum": MOST_SECONDS}
"""A time, in Unix seconds."""


def limit_of(most: int) -> Query:
    schema = {"type": "integer", "minimum": 0, "maximum": most, "default": DEFAULT_ROWS}
    return Query("limit", "Maximum number of entries.", schema)


LIMIT = limit_of(MOST_ROWS)
CURSOR = Query("cursor", "`next_cursor` of an answer of this list: continues behind its last entry.")


def check_query(request: Request, known: Collection[Query]) -> None:
    """Raises InvalidArguments for a key that is not among these, since a misspelt filter would choose everything, and
    for a value that its key can't have."""
    unknown = sorted(request.query_params.keys() - {one.name for one in known})
    if unknown:
        names = ", ".join(one.name for one in known)
        allowed = f"It may have {names}." if names else "It has none here."
        raise InvalidArguments(f"The query string has no key {quoted(unknown[0])}. {allowed}")
    for one in known:
        one.check(request.query_params.getlist(one.name))


def limit_in(request: Request) -> int:
    """Maximum number of entries; `check_query` has checked it."""
    return int(request.query_params.get(LIMIT.name, DEFAULT_ROWS))


def seconds_in(request: Request, name: str) -> float | None:
    """A time, in Unix seconds; None if there is none. `check_query` has checked it."""
    text = request.query_params.get(name)
    return None if text is None else float(text)


def _fits(value: str, schema: Mapping[str, Any]) -> bool:
    if schema["type"] == "integer":
        most: int = schema["maximum"]
        is_number = value.isascii() and value.isdigit() and len(value) <= len(str(most))
        return is_number and schema["minimum"] <= int(value) <= most
    if schema["type"] == "number":
        try:
            return schema["minimum"] <= float(value) < schema["exclusiveMaximum"]
        except ValueError:
            return False
    return value in schema.get("enum", (value,))


def _allowed(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    if schema["type"] == "number":
        return "a time in Unix seconds"
    return f"one of {', '.join(schema['enum'])}"
