"""A tool's form: a field for each parameter of its schema, and what was given in them as arguments.

Schemas of upstreams come from others: what can't be read in one is shown as a parameter of any kind.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from serena_central.tools.catalogue import Tool
from serena_central.tools.upstream_tool import UpstreamTool
from serena_central.web.pages.page import Visit

PREFIX = "arg-"
"""What names of the form's fields begin with: parameters can't be mistaken for fields of every form."""

DRY_RUN = "dry_run"

LONG = frozenset({"body", "content", "needle", "repl", "command", "edits"})
"""Parameters with texts of several lines."""

MOST_CHOICES = 100
"""That a field offers."""

MOST_PARAMETERS = 200
"""Fields of a form."""

TEXT_CHARS = 2000
"""Shown of a parameter's description or default."""

REFERENCES = 8
"""How many references are followed, one after the other."""

_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class Choice(msgspec.Struct, frozen=True):
    """`label` is what people read; `chosen`: it was given."""

    value: str
    label: str
    chosen: bool


class Parameter(msgspec.Struct, frozen=True):
    """`kind` is its type in JSON; `field` names it in the form, `given` is what stands there."""

    name: str
    field: str
    kind: str
    required: bool
    default: str
    description: str
    choices: list[Choice]
    given: str
    long: bool
    """Its text has several lines, as a rule."""


def has_dry_run(tool: Tool) -> bool:
    """Whether it can say what it would do. What a parameter of another server's tool means is not known."""
    return not isinstance(tool, UpstreamTool) and DRY_RUN in tool.schema["properties"]


def properties_of(tool: Tool) -> Mapping[str, Any]:
    """Name → schema, as the tool has them."""
    return _mapping(tool.schema.get("properties"))


def parameters_of(tool: Tool, visit: Visit) -> list[Parameter]:
    """A field for each parameter, with what was given."""
    required = tool.schema.get("required")
    named = cast("list[Any]", required) if isinstance(required, list) else []
    return [_parameter(name, part, tool, visit, required=name in named) for name, part in _fields(tool).items()]


def arguments_of(tool: Tool, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a form says; fields that are empty are not given. Whether it is right, the call itself finds out."""
    given = {name: form.get(PREFIX + name, [""])[0] for name in _fields(tool)}
    return {name: _value(given[name], _kinds(part)) for name, part in _fields(tool).items() if given[name].strip()}


def _fields(tool: Tool) -> dict[str, Mapping[str, Any]]:
    """Name → schema of the parameters that the form asks for; references are followed."""
    schema = tool.schema
    known = properties_of(tool)
    left_out = {DRY_RUN} if has_dry_run(tool) and not tool.read_only else set[str]()
    chosen = [name for name in known if name not in left_out][:MOST_PARAMETERS]
    return {name: _resolved(known[name], schema) for name in chosen}


def _parameter(name: str, part: Mapping[str, Any], tool: Tool, visit: Visit, *, required: bool) -> Parameter:
    kinds = _kinds(part)
    (given, *_) = visit.form.get(PREFIX + name, [visit.query.get(name, "")])
    choices = _own_choices(part, kinds)
    if not choices and not isinstance(tool, UpstreamTool):
        choices = _known_choices(name, visit, given)
    default = json.dumps(part["default"], ensure_ascii=False) if "default" in part else ""
    return Parameter(
        name=name,
        field=PREFIX + name,
        kind=" or ".join(kinds),
        required=required,
        default=default[:TEXT_CHARS],
        description=str(part.get("description") or "")[:TEXT_CHARS],
        choices=[Choice(value, label, value == given) for value, label in choices],
        given=given,
        long=name in LONG or "object" in kinds,
    )


def _own_choices(part: Mapping[str, Any], kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Values of a parameter that has a closed set of them, with their labels; none for free text."""
    if "boolean" in kinds and set(kinds) <= {"boolean", "null"}:
        return [("true", "true"), ("false", "false")]
    sets = [_listed(one, "enum") for one in _alternatives(part) if one.get("type") != "null"]
    values = [value for one in sets for value in one if value is not None]
    if not all(sets) or len(values) > MOST_CHOICES:
        return []
    texts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return [(text, text) for text in dict.fromkeys(texts) if text]


def _known_choices(name: str, visit: Visit, given: str) -> list[tuple[str, str]]:
    """Values that this server knows of parameters of its own tools."""
    found: list[tuple[str, str]] = []
    if name == "project":
        known = sorted(visit.parts.projects.snapshots(), key=lambda one: (not one.open, one.name))[:MOST_CHOICES]
        found = [(one.root, f"{one.name} ({one.root})") for one in known]
    elif name == "modes":
        found = [(json.dumps([mode]), mode) for mode in sorted(visit.parts.offer.profiles.modes)]
    if found and given and given not in dict(found):
        found.append((given, given))
    return found


def _resolved(part: Any, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter's schema with what its references, and those of its alternatives, say."""
    found = _followed(part, schema)
    alternatives = (_listed(found, "anyOf") or _listed(found, "oneOf"))[:MOST_CHOICES]
    return {**found, "anyOf": [_followed(one, schema) for one in alternatives]}


def _followed(part: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what its reference within the whole one says; its own words count first."""
    found = dict(_mapping(part))
    for _ in range(REFERENCES):
        reference = found.pop("$ref", None)
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = schema
        for step in reference[2:].split("/"):
            target = _mapping(target).get(step.replace("~1", "/").replace("~0", "~"))
        found = {**_mapping(target), **found}
    return found


def _alternatives(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _listed(part, "anyOf") or [part]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _listed(part: Mapping[str, Any], name: str) -> list[Any]:
    found = part.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _kinds(part: Mapping[str, Any]) -> list[str]:
    """JSON's types that a parameter may have; `any` where its schema names none."""
    kinds: list[str] = []
    for one in _alternatives(part):
        said = one.get("type")
        kinds += [said] if isinstance(said, str) else map(str, _listed(one, "type"))
        if said is None:
            kinds += [_KINDS[type(value)] for value in _listed(one, "enum") if type(value) in _KINDS]
    return list(dict.fromkeys(kinds)) or ["any"]


def _value(text: str, kinds: Sequence[str]) -> Any:
    """A field's text: as it is where the parameter may be a text, unless it looks like a list or mapping and may be
    one; else read as JSON."""
    if set(kinds) <= {"string", "null"} or ("string" in kinds and text.lstrip()[0] not in "[{"):
        return text
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return text


def _finite(text: str) -> float:
    """JSON has no other numbers.

    Raises:
        ValueError
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
