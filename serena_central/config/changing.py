"""Changes one value in a person's YAML file; everything else in it, comments included, stays as it is.

The new text is parsed and compared before it counts: a file whose form is not understood is refused, not damaged.
"""

import json
from typing import Any

import yaml

from serena_central.config.document import DocumentError, parse_document
from serena_central.core.errors import ConfigError


def with_value(text: str, key: str, value: Any, *, file: str) -> str:
    """The text of a file whose top-level `key` has this value, plain data; None removes the key.

    Raises:
        ConfigError
    """
    try:
        before = parse_document(text).values
        fresh = _edited(text, key, value)
        after = parse_document(fresh).values
    except (DocumentError, yaml.YAMLError) as error:
        raise ConfigError(key, f"can't be changed in this file ({error})", file=file) from error
    wanted = {name: one for name, one in before.items() if name != key} | ({} if value is None else {key: value})
    if after != wanted:
        raise ConfigError(key, "has a form that can't be changed here; change it in the file", file=file)
    return fresh


def _edited(text: str, key: str, value: Any) -> str:
    pair = _pair_of(text, key)
    said = json.dumps(value, ensure_ascii=False)
    if pair is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return text if value is None else f"{text}{end}{key}: {said}\n"
    name, node = pair
    start, end = node.start_mark.index, _end(node)
    if value is None:
        line = text.rfind("\n", 0, name.start_mark.index) + 1
        after = text.find("\n", max(end - 1, line))
        return text[:line] + ("" if after < 0 else text[after + 1 :])
    gap = "" if text[start - 1 : start].isspace() else " "
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        colon = text.index(":", name.end_mark.index) + 1
        return f"{text[:colon]} {said}{text[end:]}"
    return f"{text[:start]}{gap}{said}{text[end:]}"


def _end(node: yaml.Node) -> int:
    """Where a value ends; a block's own mark is at the next key, past the comments before that."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return node.end_mark.index


def _pair_of(text: str, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    return next(((name, value) for name, value in root.value if name.value == key), None)
