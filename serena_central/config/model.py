"""Metadata of the settings structs: keys, types, defaults, how layers combine, and what is allowed.

Knows the shape of the structs and nothing of files. A key of a group is dotted: `pool.idle_ttl_s`.
"""

import codecs
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_type_hints

import msgspec
from msgspec import inspect

from serena_central.config.settings import SharedSettings
from serena_central.core.decoding import converted
from serena_central.core.quoting import NAME_RULE, are_names

Model = TypeVar("Model", bound=SharedSettings)
_FIELD = re.compile(r"at `\$\[\.\.\.\]\.(\w+)")
"""Where msgspec says that a value of an entry is wrong."""

_NO_FILES = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Python's codecs from text to bytes that no file is written in: an escape in code would be read as its character."""

Merge = Literal["replace", "add", "entries", "tighten"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. `merge` is `entries` for free mappings: each of their entries is replaced by itself."""

    key: str
    type: Any
    default: Any
    description: str
    merge: Merge
    secret: bool
    names: bool
    """Every text in the value is a name."""
    encoding: bool = False
    """The value names an encoding of texts."""

    @property
    def allowed(self) -> str:
        """What a value may be, for people: "a whole number from 0 to 65535"."""
        return _allowed(inspect.type_info(self.type)) + (f", every text {NAME_RULE}" if self.names else "")

    @property
    def _knows_off(self) -> bool:
        kind = inspect.type_info(self.type)
        bare = kind.type if isinstance(kind, inspect.Metadata) else kind
        return isinstance(bare, inspect.LiteralType) and "off" in bare.values

    def convert(self, value: Any, *, lenient: bool = False) -> Any:
        """The checked value; `lenient` reads numbers and booleans from text.

        Raises:
            msgspec.ValidationError
        """
        if value is False and self._knows_off:
            value = "off"  # how YAML 1.1 reads the word
        checked = converted(value, self.type, strict=not lenient)
        if isinstance(checked, float) and not math.isfinite(checked):  # bounds let NaN pass
            raise msgspec.ValidationError("not a finite number")
        if self.names and not are_names(msgspec.to_builtins(checked)):
            raise msgspec.ValidationError("not a name")
        if self.encoding and checked is not None and not _is_encoding(str(checked)):
            raise msgspec.ValidationError("not an encoding")
        return checked

    def wrong_part(self, value: Any, problem: str) -> tuple[str, Any, str]:
        """The field of an entry that a conversion's error is about: its key after the entry's, its value, and what it
        may be. The whole value with an empty key where no field is named."""
        found = _FIELD.search(problem)
        kind = inspect.type_info(self.type)
        bare = kind.type if isinstance(kind, inspect.Metadata) else kind
        entry = bare.value_type if isinstance(bare, inspect.DictType) else None
        if found is None or not isinstance(entry, inspect.StructType):
            return "", value, self.allowed
        field = next(one for one in entry.fields if one.encode_name == found[1])
        (held,) = value.values()
        return f".{found[1]}", held[found[1]], _allowed(field.type)


@cache
def settings_of(model: type[SharedSettings]) -> dict[str, Setting]:
    """Key → its setting, in the order of the struct."""
    return {setting.key: setting for setting in _walk(model, "")}


@cache
def groups_of(model: type[SharedSettings]) -> dict[str, str]:
    """Key of a group → its description."""
    hints = get_type_hints(model, include_extras=True)
    groups = [field for field in msgspec.structs.fields(model) if isinstance(field.default, msgspec.Struct)]
    return {group.name: _meta(hints[group.name]).description or "" for group in groups}


def split_key(key: str, settings: Collection[str]) -> tuple[str, str]:
    """A setting, and the entry of it that a key means, else "": both may have dots in their names."""
    if key in settings:
        return key, ""
    name, _, entry = key.partition(".")
    if name not in settings:  # a group
        member, _, entry = entry.partition(".")
        name = f"{name}.{member}"
    return name, entry


def get(value: msgspec.Struct, key: str) -> Any:
    """The value at a dotted key."""
    group, _, name = key.rpartition(".")
    return getattr(getattr(value, group) if group else value, name)


def build(model: type[Model], values: dict[str, Any]) -> Model:
    """The struct that holds `values` (dotted keys), all of them checked before."""
    plain: dict[str, Any] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        if group:
            plain.setdefault(group, {})[name] = value
        else:
            plain[key] = value
    return converted(plain, model)


def _walk(model: type[msgspec.Struct], prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(model, include_extras=True)
    for field in msgspec.structs.fields(model):
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        if isinstance(default, msgspec.Struct):
            yield from _walk(type(default), f"{prefix}{field.name}.")
            continue
        meta = _meta(hints[field.name])
        extra = meta.extra or {}
        merge: Merge = extra.get("merge", "entries" if isinstance(default, dict) else "replace")
        secret = bool(extra.get("secret"))
        names, encoding = bool(extra.get("names")), bool(extra.get("encoding"))
        described = meta.description or ""
        yield Setting(prefix + field.name, hints[field.name], default, described, merge, secret, names, encoding)


def _is_encoding(name: str) -> bool:
    try:
        "".encode(name)
        return codecs.lookup(name).name not in _NO_FILES
    except (LookupError, ValueError):  # unknown, or one of bytes alone; with a NUL
        return False


def _meta(hint: Any) -> msgspec.Meta:
    found = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, msgspec.Meta)]
    assert found, f"a setting without a description: {hint}"
    return found[0]


def _allowed(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            said = cast("dict[str, str]", kind.extra or {}).get("allowed")
            return said or _allowed(kind.type)
        case inspect.ListType() | inspect.DictType() | inspect.StructType():
            return _allowed_inside(kind)
        case inspect.IntType():
            return "a whole number" + _bounds(kind)
        case inspect.FloatType():
            return "a number" + _bounds(kind)
        case inspect.LiteralType():
            return "one of " + ", ".join(str(value) for value in kind.values)
        case inspect.UnionType():
            return " or ".join(_allowed(item) for item in kind.types if not isinstance(item, inspect.NoneType))
        case inspect.StrType():
            return "text" if kind.max_length is None else f"text of at most {kind.max_length} characters"
        case _:
            return "true or false" if isinstance(kind, inspect.BoolType) else "any value"


def _allowed_inside(kind: inspect.ListType | inspect.DictType | inspect.StructType) -> str:
    match kind:
        case inspect.ListType():
            return f"a list, each item {_allowed(kind.item_type)}"
        case inspect.DictType(value_type=inspect.AnyType()):
            return "a mapping"
        case inspect.DictType():
            keys = f", each key {_allowed(kind.key_type)}" if isinstance(kind.key_type, inspect.Metadata) else ""
            return f"a mapping{keys}, each entry {_allowed(kind.value_type)}"
        case inspect.StructType():
            return "a mapping with " + ", ".join(field.name for field in kind.fields)


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    least = f", at least {kind.ge}" if kind.ge is not None else f" above {kind.gt}" if kind.gt is not None else ""
    return least + (f", at most {kind.le}" if kind.le is not None else "")
