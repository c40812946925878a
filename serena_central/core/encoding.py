"""JSON of what clients and files brought, which may hold halves of surrogate pairs: UTF-8 has no bytes for them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

_SURROGATES = re.compile("[\ud800-\udfff]")


def encodable(value: Any) -> Any:
    """The same with U+FFFD for lone surrogates: they are no characters, and many readers refuse them as escapes."""
    match value:
        case str():
            return value if value.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", value)
        case Mapping():
            return {encodable(key): encodable(part) for key, part in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [encodable(part) for part in cast("Sequence[Any]", value)]
        case _:
            return value


def lossy_json(value: Any, enc_hook: Callable[[Any], Any] | None = None) -> bytes:
    """JSON for those who only read it, with U+FFFD for lone surrogates."""
    try:
        return msgspec.json.encode(value, enc_hook=enc_hook)
    except UnicodeEncodeError:
        return msgspec.json.encode(encodable(msgspec.to_builtins(value, enc_hook=enc_hook)))


def canonical_json(value: Any) -> bytes:
    """The same bytes for the same value, whatever the order of its keys: to compare by, not to be read."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True).encode("ascii")
