"""Checks a call's arguments against an upstream's JSON Schema, before anything is sent.

Importing jsonschema takes 60 ms; only a hub that runs does. Schemas come from others, and are checked on the event
loop: a check has a deadline, references are resolved within the schema alone, and a schema that can't be used, or takes
too long, checks nothing.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import islice
from typing import Any, cast

import msgspec
import regex
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from serena_central.core.patterns import MAX_LENGTH

logger = logging.getLogger(__name__)

CHECK_S = 0.25
"""CPU time of this thread for one call's arguments, and as much for the schema itself at a tool's first call, which
takes 10 ms for each KB. A few references make a schema of 1 KB that takes years."""

PATTERN_S = 0.2
"""For one match."""

MOST_PROBLEMS = 5
PROBLEM_CHARS = 300

MOST_LOOKED_AT = 100
"""Problems among which the first by their places are shown: a list may hold as many as it has items."""

NAMES_CHARS = 2000
"""Of the parameters' names in a refusal."""

_NONE: Mapping[str, Any] = {}

_until: ContextVar[float] = ContextVar("check_until")
"""When the present check has to be over, in this thread's CPU time."""

_UNUSABLE = (
    *(Unresolvable, UnknownType, RecursionError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError),
    *(IndexError, TimeoutError, regex.error),
)
"""What an attempt to use a schema may raise: the schema's fault, or that of the arguments that it meets."""


class ArgumentChecker:
    """For one tool; made once for a schema, which is looked at when the tool is first called. May be asked from any
    thread."""

    def __init__(self, schema: object, defaults: Mapping[str, Any] = _NONE) -> None:
        """`defaults` are for arguments that a call does not name."""
        self._defaults = defaults
        self._schema: dict[str, Any] = {**cast("Mapping[str, Any]", schema)} if isinstance(schema, Mapping) else {}
        self._validator: Validator | None = None
        self._was_read = False

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
            required: Any = self._schema.get("required") or ()
            named = {name: value for name, value in given.items() if value is not None or name in required}
            without = named | {name: value for name, value in self._defaults.items() if named.get(name) is None}
            if without != given and not self._problems(without):
                return without, []
        return given, problems

    def _problems(self, arguments: dict[str, Any]) -> list[str]:
        found: list[ValidationError] = []
        token = _until.set(time.thread_time() + CHECK_S)
        try:
            if not self._was_read:
                self._was_read = True
                self._validator = _validator(self._schema)
            if self._validator is not None:
                found.extend(islice(self._validator.iter_errors(arguments), MOST_LOOKED_AT))
        except _UNUSABLE as error:
            logger.info("a tool's schema can't be applied to the arguments of a call: %s", str(error)[:200])
        finally:
            _until.reset(token)
        # What was found before time was up counts.
        found.sort(key=lambda one: list(map(str, one.absolute_path)))
        return [_told(one) for one in found[:MOST_PROBLEMS]]


def _validator(schema: dict[str, Any]) -> Validator | None:
    """None where a schema is none. What it raises is one of `_UNUSABLE`."""
    kind = _bounded(validators.validator_for(schema, default=Draft202012Validator), has_patterns=True)
    try:
        wrong = next(kind(kind.META_SCHEMA).iter_errors(schema), None)
    except TimeoutError:
        wrong = None  # most are right: it is used without having been looked at as a whole
        _until.set(time.thread_time() + CHECK_S)
    if wrong is not None:
        logger.info("a tool's schema is not a JSON Schema, and its arguments are not checked: %s", wrong.message[:200])
        return None
    has_patterns = b'"patternProperties"' in msgspec.json.encode(schema)
    return cast("Validator", _bounded(kind, has_patterns=has_patterns)(schema, registry=cast("Any", Registry)()))


def _bounded(kind: Any, *, has_patterns: bool) -> Any:
    """The same kind of validator, whose checks end at `_until`. Its keywords match no pattern by `re`, which can't be
    interrupted, and compare no item of a list with each other."""
    keywords: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    if has_patterns:
        keywords["unevaluatedProperties"] = _nothing
    made = cast("Any", validators).extend(kind, keywords)  # theirs have no types here

    def evolve(self: Any, **changes: Any) -> Any:
        """For a part of the schema: all that a check does passes here. jsonschema's own leaves this class where a part
        names a dialect."""
        _check_time()
        return made(
            **{"schema": self.schema, "registry": self._registry, "_resolver": self._resolver, **changes},
        )

    made.evolve = evolve
    return made


def _check_time() -> float:
    """The seconds that are left.

    Raises:
        TimeoutError: there are none.
    """
    left_s = _until.get() - time.thread_time()
    if left_s <= 0:
        raise TimeoutError(f"that takes longer than {CHECK_S:g} s")
    return left_s


def _told(error: ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path))
    text = error.message if len(error.message) <= PROBLEM_CHARS else error.message[:PROBLEM_CHARS] + "…"
    return f"{where}: {text}" if where else text


def _matches(pattern: str, text: str) -> bool:
    """Where it can't be told, the server itself decides.

    Raises:
        TimeoutError: the whole check has no time left.
    """
    bound_s = min(PATTERN_S, _check_time())
    if len(pattern) > MAX_LENGTH:
        return True
    try:
        return regex.search(pattern, text, timeout=bound_s) is not None
    except (regex.error, RecursionError, TimeoutError):
        return True


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


def _additional_properties(validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    held, patterns = cast("Mapping[str, Any]", instance), schema.get("patternProperties", ())
    known = schema.get("properties", ())
    extra = [name for name in held if name not in known and not any(_matches(one, name) for one in patterns)]
    if isinstance(rest, Mapping):
        for name in extra:
            yield from validator.descend(held[name], rest, path=name)
    elif not rest and extra:
        names = ", ".join(map(repr, sorted(extra)))
        yield ValidationError(
            f"Additional properties are not allowed ({names} {'was' if len(extra) == 1 else 'were'} unexpected)"
        )


def _unique_items(_validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """1 and 1.0, which JSON Schema takes for equal, are left to the server."""
    if wanted and isinstance(instance, list):
        items = cast("list[Any]", instance)
        if len({json.dumps(one, sort_keys=True) for one in items}) < len(items):
            yield ValidationError(f"{items!r} has non-unique elements")


def _nothing(*_: object) -> tuple[()]:
    return ()


def problem_text(tool: str, problems: Sequence[str], schema: object) -> str:
    """The text of a refusal: the problems, and all parameters."""
    properties = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    names = ", ".join(cast("Mapping[str, Any]", properties)) if isinstance(properties, Mapping) else ""
    if len(names) > NAMES_CHARS:
        names = names[:NAMES_CHARS] + "…"
    return f"{tool}: {' '.join(f'{one}.' for one in problems)} Parameters: {names or 'none'}."
