"""Derives a definition's name, and the containers written before it, from the nodes that a query captures."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tree_sitter import Node

_WORD = re.compile(r"\w+")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_CLOSING_HASHES = re.compile(r"\s+#+\s*$")

_NAME_AND_KIND = 2
"""Captures of nearly all definitions; where they are all, the node has the whole name."""


class Name(NamedTuple):
    """A definition's own name, where it begins (byte), and its containers, outermost first."""

    text: str
    start: int
    scope: tuple[str, ...] = ()


def name_of(captures: Mapping[str, list[Node]], source: bytes) -> Name:
    name = captures["name"][0]
    composed = _COMPOSED.get(name.type)
    if composed is not None:
        return composed(name)
    if len(captures) == _NAME_AND_KIND:
        return Name(" ".join(source[name.start_byte : name.end_byte].decode().split()), name.start_byte)
    start = captures["from"][0].start_byte if "from" in captures else name.start_byte
    left_out = captures["without"][0] if "without" in captures else None
    first, then = (left_out.start_byte, left_out.end_byte) if left_out else (start, start)
    text = " ".join((source[start:first] + source[then : name.end_byte]).decode().split())
    if "receiver" in captures:
        return Name(text, name.end_byte - len(text.encode()), tuple(_WORD.findall(_text(captures["receiver"][0]))[:1]))
    return Name(text, name.start_byte)


def _qualified(name: Node) -> Name:
    """`a::B<T>::c` in C++."""
    *scope, text = _without_arguments(_text(name)).split("::")
    text = text.strip()
    return Name(text, name.end_byte - len(text.encode()), tuple(part.strip() for part in scope if part.strip()))


def _without_arguments(text: str) -> str:
    before = ""
    while text != before:
        text, before = _ARGUMENTS.sub("", text), text
    return text


def _heading(name: Node) -> Name:
    """A heading of Markdown, as it is written: without the hash signs that may close it."""
    return Name(" ".join(_CLOSING_HASHES.sub("", _text(name)).split()), name.start_byte)


def _key(name: Node) -> Name:
    """A key of TOML, `a."b c".d` or one of its parts; the quotes belong to no name."""
    if name.type == "dotted_key":
        *scope, last = (_key(part) for part in name.named_children)
        return Name(last.text, last.start, tuple(part for one in scope for part in (*one.scope, one.text)) + last.scope)
    text = _text(name)
    return Name(text[1:-1], name.start_byte + 1) if name.type == "quoted_key" else Name(text, name.start_byte)


def _text(node: Node) -> str:
    return (node.text or b"").decode()


_COMPOSED = {
    "qualified_identifier": _qualified,
    "inline": _heading,
    "dotted_key": _key,
    "quoted_key": _key,
}
"""Kinds of nodes whose text is not the name alone."""
