"""Where a name stands in a text, and in what: code, a string, or a comment, as the grammar sees it.

Runs in the worker's process, like `outline`. Knows no files and no language servers.
"""

import re

from tree_sitter import Node

from serena_central.core.text import Range, Text
from serena_central.symbols.syntax.messages import Kind, Occurrence
from serena_central.symbols.syntax.outline import tools

MOST = 5_000
"""Occurrences told of one text: data that repeats one word is cut."""

LEVELS = 6
"""How far above a word its string or comment is looked for: they hold at most an escape or a fragment in between."""

_STRINGS = ("string", "char_literal", "heredoc", "jsx_text", "raw_text")
_CODE_IN_STRINGS = ("interpolation", "substitution", "expansion")
_NAMES = ("identifier", "name", "constant")


def occurrences(identifier: str, source: bytes, name: str) -> list[Occurrence]:
    """The places of `name` as a whole word in a text (valid UTF-8), in its order, at most `MOST`."""
    parser, _ = tools(identifier)
    root = parser.parse(source).root_node
    text = Text(source.decode())
    pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    found: list[Occurrence] = []
    byte = before = 0
    for match in pattern.finditer(text.content):
        byte += len(text.content[before : match.start()].encode())
        before = match.start()
        node = root.descendant_for_byte_range(byte, byte + len(match[0].encode()))
        span = Range(text.position(match.start()), text.position(match.end()))
        found.append(Occurrence(span, _kind_of(node)))
        if len(found) == MOST:
            break
    return found


def _kind_of(node: Node | None) -> Kind:
    """Of the smallest node around a word. What the grammar has no word for (errors, macros) is code."""
    if node is not None and node.type.endswith(_NAMES):
        return "code"
    for _ in range(LEVELS):
        if node is None:
            return "code"
        if "comment" in node.type:
            return "comment"
        if any(part in node.type for part in _CODE_IN_STRINGS):
            return "code"
        if any(part in node.type for part in _STRINGS) or node.type == "text":
            return "string"
        node = node.parent
    return "code"
