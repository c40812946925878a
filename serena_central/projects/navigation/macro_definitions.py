"""Tells what a name in the definition of a C macro is. What it means there depends on where the macro is used, and
clangd, asked where it leads, answers with anything that is called so."""

import re
from typing import Literal

from serena_central.core.text import Position, Text

_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?:\((?P<parameters>[^)]*)\))?")
_WORD = re.compile(r"\w+")

Part = Literal["parameter", "body"]


def part_of_macro(text: Text, position: Position) -> Part | None:
    """What stands at a position of a macro's definition; None outside of one, and of its own name."""
    line0 = position.line0
    while line0 > 0 and text.line(line0 - 1).endswith("\\"):
        line0 -= 1
    defined = _DEFINE.match(text.content, text.offset_at(line0, 0))
    at = text.offset(position)
    word = _WORD.match(text.content, at)
    if defined is None or word is None or at == defined.start("name"):
        return None
    return "parameter" if word[0] in _WORD.findall(defined["parameters"] or "") else "body"
