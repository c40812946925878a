"""What the text of a declaration in Java says of a symbol. Pure."""

import re

from serena_central.core.text import Range, Text
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES, Symbol

_NO_CODE = re.compile(r'/\*.*?(?:\*/|\Z)|//[^\n]*|"""(?:\\.|.)*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*+"?', re.DOTALL)
_TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")
_SEALED = re.compile(r"(?<!-)\bsealed\b")
_PERMITS = re.compile(r"\bpermits\b")
_NO_PARAMETERS = re.compile(r"\s*\(\s*\)")


def is_component(hit: Hit, text: Text) -> bool:
    """Whether a symbol stands in the head of a record."""
    holder = holder_of(hit)
    if holder is None or not re.search(r"\brecord\s+\Z", head_of(holder, text)):
        return False
    behind = text.content[text.offset(holder.name_position) : text.offset(hit.symbol.name_position)]
    return "{" not in _NO_CODE.sub(" ", behind)


def takes_nothing(hit: Hit, text: Text) -> bool:
    """Whether a method or a constructor has no parameters, as a record's accessors."""
    behind = text.slice(Range(hit.symbol.name_position, hit.symbol.range.end))[len(hit.symbol.name) :]
    return _NO_PARAMETERS.match(_NO_CODE.sub(" ", behind)) is not None


def parameters(hit: Hit, text: Text) -> int:
    """How many parameters a method has."""
    behind = _NO_CODE.sub(" ", text.slice(Range(hit.symbol.name_position, hit.symbol.range.end)))
    depth, count, is_empty = 0, 1, True
    for char in behind[behind.find("(") + 1 :]:
        if char == ")" and not depth:
            break
        depth += (char in "(<[{") - (char in ")>]}")
        count += char == "," and not depth
        is_empty &= char.isspace()
    return 0 if is_empty else count


def may_take_parameters_types(hit: Hit, text: Text) -> bool:
    """Whether types of a method's parameters may be given by a type below its own, or by a call."""
    holder = holder_of(hit)
    behind = text.content[text.offset(holder.name_position) + len(holder.name) :] if holder else ""
    return behind.lstrip().startswith("<") or "<" in head_of(hit.symbol, text)


def head_of(symbol: Symbol, text: Text) -> str:
    """What stands before the name in a symbol's declaration, without comments and the text of strings."""
    return _NO_CODE.sub(" ", text.slice(Range(symbol.range.start, symbol.name_position)))


def bases_of(symbol: Symbol, text: Text) -> frozenset[str]:
    """The types that a type says it extends and implements, without packages and type arguments; those that it permits
    are among them."""
    behind = text.slice(Range(symbol.name_position, symbol.range.end))[len(symbol.name) :]
    head, count = _NO_CODE.sub(" ", behind).partition("{")[0], 1
    while count:
        head, count = _TYPE_ARGUMENTS.subn(" ", head)
    said = re.split(r"\b(?:extends|implements)\b", head)[1:]
    return frozenset(name for part in said for name in re.findall(r"([\w$]+)(?!\s*\.)\b", part))


def only_heir_of(hit: Hit, text: Text) -> str | None:
    """The sealed type that has no other subtype than this one in its file, where all must be that it does not list."""
    bases = bases_of(hit.symbol, text)
    others = (one for place, one in enumerate(hit.file.symbols) if place != hit.place)
    types = [one for one in others if one.kind in TYPES] if bases else []
    for base in types:
        line = text.line(base.name_line)[: base.name_column]  # jdtls draws a type from behind the word
        if base.name not in bases or not _SEALED.search(f"{line} {head_of(base, text)}"):
            continue
        behind = _NO_CODE.sub(" ", text.slice(Range(base.name_position, base.range.end))).partition("{")[0]
        if not _PERMITS.search(behind) and not any(base.name in bases_of(one, text) for one in types):
            return base.name
    return None


def holder_of(hit: Hit) -> Symbol | None:
    """The type that a symbol is a direct part of."""
    container = hit.symbol.container
    if container < 0 or hit.file.symbols[container].kind not in TYPES:
        return None
    return hit.file.symbols[container]
