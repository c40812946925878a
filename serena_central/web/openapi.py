"""The OpenAPI 3.1 document of the HTTP API, made of the route table: paths, parameters, bodies, answers, errors."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from serena_central.web.api_answers import Failure
from serena_central.web.operation import Operation

REFERENCE = "#/components/schemas/{name}"

_IN_PATH = re.compile(r"{(\w+)}")

DESCRIPTION = """\
For scripts, the command line and hooks. Every request but /health needs `Authorization: Bearer` with the token of the \
server's home. Failures are `{"error": {"kind", "message"}}`. Lists have `limit` and `cursor`; the next page has the \
`next_cursor` of the page before. Unknown keys of a query string, and values that a key can't have, are refused with \
400."""

JSON, NDJSON = "application/json", "application/x-ndjson"

LINES: dict[str, Any] = {
    "type": "string",
    "description": 'Lines of JSON: {"says": …, "part": 0 to 1 or null} while it lasts; last {"outcome": …} with the '
    'answer, or {"error": …, "status": …}',
}


def document(operations: Sequence[Operation], version: str) -> dict[str, Any]:
    """The whole document."""
    types = [kind for one in operations for kind in (one.answer, one.outcome, one.body) if _has_schema(kind)]
    named, components = msgspec.json.schema_components(
        [*types, Failure], schema_hook=_schema_of, ref_template=REFERENCE
    )
    schemas = dict(zip([*map(id, types), id(Failure)], named, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "serena-central", "version": version, "description": DESCRIPTION},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: _described(schema) for name, schema in components.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Failure": {"description": "What went wrong", "content": _json(schemas[id(Failure)])}},
        },
    }


def _operation(one: Operation, schemas: Mapping[int, Any]) -> dict[str, Any]:
    words = inspect.cleandoc(one.handler.__doc__ or "").split("\n\n")
    body = {"requestBody": {"content": _json(schemas[id(one.body)])}} if one.body is not None else {}
    return {
        "operationId": one.name,
        "summary": one.summary,
        **({"description": "\n\n".join(words)} if words[0] else {}),
        "parameters": list(_parameters(one)),
        **body,
        "responses": {
            str(one.status): {"description": "Success", "content": _content(one, schemas)},
            "default": {"$ref": "#/components/responses/Failure"},
        },
        **({"security": []} if one.is_open else {}),
    }


def _parameters(one: Operation) -> Iterable[dict[str, Any]]:
    for name in _IN_PATH.findall(one.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for key in one.query:
        schema = {"type": "array", "items": key.schema} if key.repeated else key.schema
        required = {"required": True} if key.required else {}
        yield {"name": key.name, "in": "query", "description": key.description, **required, "schema": schema}


def _content(one: Operation, schemas: Mapping[int, Any]) -> dict[str, Any]:
    if isinstance(one.answer, str):
        return {one.answer: {"schema": {"type": "object" if one.answer == JSON else "string"}}}
    lines = {} if one.outcome is None else {NDJSON: {"schema": LINES | {"x-outcome": schemas[id(one.outcome)]}}}
    return {**_json(schemas[id(one.answer)]), **lines}


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """With the description of a class as it reads, not as it is indented."""
    return schema | {key: inspect.cleandoc(schema[key]) for key in ("description",) if key in schema}


def _json(schema: Any) -> dict[str, Any]:
    return {JSON: {"schema": schema}}


def _has_schema(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError(kind)
