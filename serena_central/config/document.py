"""One YAML file as plain values with the line of every key.

The file may come with an untrusted repository: only plain values are built, and size, depth and the expansion of
anchors are bounded first. Knows nothing of settings.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from serena_central.core.nofollow import open_file, open_following, resolved

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_VALUES = 50_000
"""Scalars, lists and mappings in one file, aliases counted as what they stand for."""

# libyaml's loader is ten times faster; a PyYAML that was built without it has only the other one.
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_DEPTH = 4
"""Of keys whose lines are known: group, setting, entry, field."""

_ITEMS_DEPTH = 8
"""The same where list items count."""


class DocumentError(Exception):
    """The file can't be used as a whole. `line` is 1-based, None where there is none."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """`values` is the file's mapping; `lines` maps `key` and `key.subkey` to a 1-based line; `repeated` lists keys."""

    values: dict[Any, Any]
    lines: dict[str, int]
    repeated: list[str]


def read_document(path: Path, within: Path | None = None) -> Document | None:
    """The file's mapping; None if there is no such file. What a repository brings must lie `within` it: a symlink out
    of it is not followed, since problems quote what they are about.

    Raises:
        DocumentError
    """
    text = read_whole(path, within)
    return None if text is None else parse_document(text)


def parse_document(text: str, *, items: bool = False) -> Document:
    """`items`: the lines of list items, too, `key.0`, and of all keys in them.

    Raises:
        DocumentError
    """
    try:
        _check_events(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None or node.tag == "tag:yaml.org,2002:null":
                return Document({}, {}, [])
            if not isinstance(node, yaml.MappingNode):
                raise DocumentError("must be a mapping of keys to values", node.start_mark.line + 1)
            # Before construction: merge keys (`<<`) expand their aliases in place.
            lines, repeated = _lines(node, items=items)
            _expanded_size(node, {}, 0)
            construct = cast("Callable[[yaml.Node], dict[Any, Any]]", loader.construct_document)
            return Document(construct(node), lines, repeated)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DocumentError(f"not valid YAML: {error.problem}", mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        # Values that look like dates and are none, keys that are lists, characters that YAML excludes.
        raise DocumentError(f"not valid YAML: {error}") from error


def read_whole(path: Path, within: Path | None = None) -> str | None:
    """The text of a configuration file, None if there is no such file; `within` as in `read_document`.

    Never blocks: a FIFO is opened without waiting for its writer, and refused.

    Raises:
        DocumentError
    """
    try:
        descriptor = open_following(str(path)) if within is None else open_file(_resolved(path, within))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DocumentError(f"can't be read: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DocumentError("must be a regular file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DocumentError(f"is larger than {MAX_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError("must be UTF-8 text", line) from error


def _resolved(path: Path, within: Path) -> str:
    real, root = resolved(path), resolved(within)
    if not Path(real).is_relative_to(root):
        raise DocumentError(f"is, or is below, a symlink out of {within}, which is not followed")
    return real


def _check_events(text: str) -> None:
    """Bounds depth and count on the flat stream of events, since everything after it recurses."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, _Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or count > MAX_VALUES:
            line = event.start_mark.line + 1 if event.start_mark else None
            raise DocumentError("is nested too deeply or holds too many values", line)


def _expanded_size(node: yaml.Node, known: dict[int, tuple[int, int]], depth: int) -> tuple[int, int]:
    """Number of values below `node`, and its height; an alias counts as what it stands for. Cycles end by depth."""
    if id(node) not in known:
        size, height = 1, 0
        if depth <= MAX_DEPTH and isinstance(node, yaml.CollectionNode):
            for child in _children(node):
                child_size, child_height = _expanded_size(child, known, depth + 1)
                size, height = size + child_size, max(height, child_height + 1)
        elif depth > MAX_DEPTH:
            height = MAX_DEPTH + 1
        known[id(node)] = size, height
    size, height = known[id(node)]
    if size > MAX_VALUES or depth + height > MAX_DEPTH:
        raise DocumentError("has anchors that expand too far", node.start_mark.line + 1)
    return size, height


def _children(node: yaml.CollectionNode) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value)


def _lines(root: yaml.MappingNode, *, items: bool) -> tuple[dict[str, int], list[str]]:
    lines: dict[str, int] = {}
    repeated: list[str] = []
    _note(root, "", _ITEMS_DEPTH if items else _DEPTH, lines, repeated, items=items)
    return lines, repeated


def _note(
    node: yaml.MappingNode | yaml.SequenceNode,
    prefix: str,
    depth: int,
    lines: dict[str, int],
    repeated: list[str],
    *,
    items: bool,
) -> None:
    """Notes the lines of a node's values, and with `items` those of lists."""
    keyed = isinstance(node, yaml.MappingNode)
    for number, entry in enumerate(node.value):
        key, value = entry if keyed else (entry, entry)
        name = f"{prefix}{key.value if keyed else number}"
        if keyed and name in lines:
            repeated.append(name)
        lines[name] = key.start_mark.line + 1
        goes_on = isinstance(value, yaml.MappingNode) or (keyed and items and isinstance(value, yaml.SequenceNode))
        if depth > 1 and goes_on:
            _note(value, f"{name}.", depth - 1, lines, repeated, items=items)
