"""Checks a call's arguments against an upstream's JSON Schema, before anything is sent.

Importing jsonschema takes 60 ms; only a hub that runs does. Schemas come from others: their patterns are matched within
a deadline, references are resolved within the schema alone, and one that can't be used checks nothing.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import regex
from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

logger = logging.getLogger(__name__)

PATTERN_S = 0.2
"""For one match."""

MOST_PROBLEMS = 5
PROBLEM_CHARS = 300

_NONE: Mapping[str, Any] = {}


class ArgumentChecker:
    """For one tool; made once for a schema. `problems` may be asked from any thread."""

    def __init__(self, schema: object, defaults: Mapping[str, Any] = _NONE) -> None:
        """`defaults` are for arguments that a call does not name."""
        self._defaults = defaults
        self._schema: dict[str, Any] = {**cast("Mapping[str, Any]", schema)} if isinstance(schema, Mapping) else {}
        self._validator = _validator(self._schema)

    def checked(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The arguments to send, and what is wrong with them. Left out are those that are null where that means "not
        given", and a `semantic_context` that the tool does not know: clients send both to every tool."""
        given = {**self._defaults, **arguments}
        properties = self._schema.get("properties")
        known: Mapping[str, Any] = cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else {}
        if "semantic_context" not in known:
            given.pop("semantic_context", None)
        problems = self._problems(given)
        if problems:
            required = self._schema.get("required") or ()
            named = {name: value for name, value in given.items() if value is not None or name in required}
            without = named | {name: value for name, value in self._defaults.items() if named.get(name) is None}
            if without != given and not self._problems(without):
                return without, []
        return given, problems

    def _problems(self, arguments: dict[str, Any]) -> list[str]:
        if self._validator is None:
            return []
        try:
            found = sorted(self._validator.iter_errors(arguments), key=lambda one: list(map(str, one.absolute_path)))
        except (Unresolvable, RecursionError, TypeError, ValueError, KeyError, AttributeError, regex.error) as error:
            # The schema's fault, or that of these arguments alone.
            logger.info("a tool's schema can't be applied, and the arguments of a call are not checked: %s", error)
            return []
        return [_told(one) for one in found[:MOST_PROBLEMS]]


def _validator(schema: dict[str, Any]) -> Validator | None:
    try:
        kind = cast("Any", validators.validator_for(schema, default=Draft202012Validator))
        kind.check_schema(schema)
        # Theirs have no types here.
        extended = cast("Any", validators).extend(kind, {"pattern": _pattern, "patternProperties": _pattern_properties})
        return cast("Validator", extended(schema, registry=cast("Any", Registry)()))
    except (SchemaError, RecursionError, TypeError, ValueError) as error:
        logger.info("a tool's schema is not a JSON Schema, and its arguments are not checked: %s", str(error)[:200])
        return None


def _told(error: ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path))
    text = error.message if len(error.message) <= PROBLEM_CHARS else error.message[:PROBLEM_CHARS] + "…"
    return f"{where}: {text}" if where else text


def _matches(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=PATTERN_S) is not None
    except (regex.error, TimeoutError):
        return True  # the server itself decides


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(str(pattern), instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping) or not isinstance(patterns, Mapping):
        return
    held = cast("Mapping[str, Any]", instance)
    for pattern, part in cast("Mapping[str, Any]", patterns).items():
        for name, value in held.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def problem_text(tool: str, problems: Sequence[str], schema: object) -> str:
    """The text of a refusal: the problems, and all parameters."""
    properties = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    names = ", ".join(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else ""
    return f"{tool}: {' '.join(f'{one}.' for one in problems)} Parameters: {names or 'none'}."
