"""Changes one value in a person's YAML file; everything else in it, comments included, stays as it is.

The new text is parsed and compared before it counts: a file whose form is not understood is refused, not damaged.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from serena_central.config.document import DocumentError, parse_document
from serena_central.core.errors import ConfigError

_COMMENT = re.compile(r"#[^\r\n]*")


def with_value(text: str, key: str, value: Any, *, file: str) -> str:
    """The text of a file whose `key`, top-level or dotted (`pool.idle_ttl_s`), has this value, plain data; None removes
    the key.

    Raises:
        ConfigError
    """
    unclear = ConfigError(key, "has a form that can't be changed here; change it in the file", file=file)
    try:
        before = parse_document(text).values
        group = before.get(key.rpartition(".")[0])
        if group is not None and not isinstance(group, dict):
            raise unclear
        fresh = _edited(text, key, value)
        after = parse_document(fresh).values
    except (DocumentError, yaml.YAMLError) as error:
        raise ConfigError(key, f"can't be changed in this file ({error})", file=file) from error
    if after != _with(before, key, value):
        raise unclear
    return fresh


def lock_of(file: Path) -> Path:
    """The lock under which a person's file is read and changed: several servers may have one file."""
    return file.with_name(f".{file.name}.lock")


def value_in(text: str, key: str) -> Any:
    """The value of a key, as in `with_value`; None if there is none.

    Raises:
        DocumentError
    """
    found: Any = parse_document(text).values
    for name in key.split("."):
        found = cast("dict[Any, Any]", found).get(name) if isinstance(found, dict) else None
    return found


def _with(values: Mapping[Any, Any], key: str, value: Any) -> dict[Any, Any]:
    """The whole, as it has to be afterwards: a group that has lost its last key is gone."""
    name, _, inner = key.partition(".")
    if inner and value is None and name not in values:
        return dict(values)
    if inner:
        value = _with(values.get(name) or {}, inner, value) or None
    others = {one: held for one, held in values.items() if one != name}
    return others if value is None else others | {name: value}


def _edited(text: str, key: str, value: Any) -> str:
    group, _, inner = key.rpartition(".")
    pair = _pair_of(_root(text), group or key)
    if not group:
        return _set(text, pair, key, value)
    if pair is None or not isinstance(pair[1], yaml.MappingNode) or not pair[1].value:
        if value is None:
            return text
        return (
            _set(text, pair, group, {inner: value}) if pair else _appended(text, f"{group}:\n  {_line(inner, value)}")
        )
    entries = pair[1]
    own = _pair_of(entries, inner)
    if own is not None and value is None and len(entries.value) == 1:
        return _set(text, pair, group, None)
    if own is not None:
        return _set(text, own, inner, value)
    if value is None or entries.flow_style:
        at = entries.start_mark.index + 1
        return text if value is None else f"{text[:at]}{_line(inner, value).rstrip()}, {text[at:]}"
    at = text.find("\n", max(_end(entries) - 1, entries.start_mark.index)) + 1 or len(text)
    indent = " " * entries.start_mark.column
    return _appended(text[:at], f"{indent}{_line(inner, value)}") + text[at:]


def _line(key: str, value: Any) -> str:
    return f"{key}: {json.dumps(value, ensure_ascii=False)}\n"


def _appended(text: str, lines: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}"


def _set(text: str, pair: tuple[yaml.Node, yaml.Node] | None, key: str, value: Any) -> str:
    """The text with another value of this key, or without it; `pair` is where it stands."""
    said = json.dumps(value, ensure_ascii=False)
    if pair is None:
        return text if value is None else _appended(text, _line(key, value))
    name, node = pair
    start, end = node.start_mark.index, _end(node)
    end = max(start, len(text[:end].rstrip()))  # a block of text ends where the next key begins
    line = text.rfind("\n", 0, name.start_mark.index) + 1
    if value is None:
        after = text.find("\n", max(end - 1, line)) + 1 or len(text)
        return text[:line] + _comments(text, line, after, name) + text[after:]
    gap = "" if text[start - 1 : start].isspace() else " "
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        start, gap = text.index(":", name.end_mark.index) + 1, " "
    return f"{text[:line]}{_comments(text, start, end, name)}{text[line:start]}{gap}{said}{text[end:]}"


def _comments(text: str, start: int, end: int, name: yaml.Node) -> str:
    """The comments between two offsets, as lines of their own: they stay, in front of the key, when what they stand in
    is replaced. A comment stands between two tokens."""
    found: list[str] = []
    at = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        gap = text[at : token.start_mark.index]
        found += [one[0] for one in _COMMENT.finditer(gap) if start <= at + one.start() < end]
        at = token.end_mark.index
    return "".join(f"{' ' * name.start_mark.column}{one}\n" for one in found)


def _end(node: yaml.Node) -> int:
    """Where a value ends; a block's own mark is at the next key, past the comments before that."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return node.end_mark.index


def _root(text: str) -> yaml.Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _pair_of(mapping: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    if not isinstance(mapping, yaml.MappingNode):
        return None
    return next(((name, value) for name, value in mapping.value if name.value == key), None)
