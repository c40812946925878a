"""Adds values to a list in a person's YAML file; everything else in it, comments included, stays as it is.

The new text is parsed and compared before it counts: a file whose form is not understood is refused, not damaged.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from serena_central.config.document import DocumentError, parse_document
from serena_central.core.errors import ConfigError


def with_added(text: str, key: str, values: Sequence[str], *, file: Path) -> str:
    """The text of a file in which the top-level list `key` has the values too.

    Raises:
        ConfigError
    """
    try:
        before = parse_document(text).values
        fresh = _edited(text, key, values)
        after = parse_document(fresh).values
    except (DocumentError, yaml.YAMLError) as error:
        raise ConfigError(
            key, f"can't be changed in this file ({error}); add {list(values)} there", file=str(file)
        ) from error
    wanted: dict[Any, Any] = {**before, key: [*(before.get(key) or []), *values]}
    if after != wanted:
        raise ConfigError(key, f"has a form that can't be edited; add {list(values)} there", file=str(file))
    return fresh


def _edited(text: str, key: str, values: Sequence[str]) -> str:
    quoted = [json.dumps(value, ensure_ascii=False) for value in values]
    node = _value_of(text, key)
    if node is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{key}:\n" + "".join(f"  - {one}\n" for one in quoted)
    if not isinstance(node, yaml.SequenceNode) or not node.value:  # nothing, or an empty list
        start, end = node.start_mark.index, node.end_mark.index
        gap = "" if text[start - 1 : start] == " " else " "
        return f"{text[:start]}{gap}[{', '.join(quoted)}]{text[end:]}"
    at: int = node.value[-1].end_mark.index
    if text[node.start_mark.index] == "[":
        return f"{text[:at]}, {', '.join(quoted)}{text[at:]}"
    indent = " " * node.start_mark.column
    at = text.find("\n", at) + 1 or len(text)
    head = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
    return head + "".join(f"{indent}- {one}\n" for one in quoted) + text[at:]


def _value_of(text: str, key: str) -> yaml.Node | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    return next((value for name, value in root.value if name.value == key), None)
