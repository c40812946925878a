"""Whether a stretch of a text is a whole declaration: what a language server calls a symbol's range may begin or end
inside of one, if the server is wrong or late, and an edit would then leave parts of it behind.

Runs in the worker's process, like `outline`. Knows no files and no language servers.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from serena_central.core.text import Range, Text
from serena_central.lsp.answers import at_all_levels
from serena_central.symbols.syntax.calls import built_at_start, first_call
from serena_central.symbols.syntax.macros import LANGUAGES
from serena_central.symbols.syntax.messages import Claimed, Declared
from serena_central.symbols.syntax.outline import outline_around
from serena_central.symbols.syntax.statements import (
    BLOCKS,
    Span,
    extent_of,
    is_alone,
    kept_because,
    kept_by_value,
    removal_of,
    shifted_by,
    span_of,
    statement_of,
)
from serena_central.symbols.syntax.trees import tree_of

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"\w")
_NAMELESS = frozenset(
    {"anonymous_function", "arrow_function", "class", "closure_expression", "func_literal", "function_expression"}
    | {"generator_function", "lambda", "lambda_expression"}
)
"""Expressions that may have no name, so that servers make one up."""


_LEADING = frozenset(
    {"annotation", "attribute", "attribute_declaration", "attribute_item", "attribute_list", "decorator"}
    | {"marker_annotation"}
)
"""Beside comments, what some servers count to a declaration and some do not."""

_MACROS = re.compile(rb"(?:[A-Z_][A-Z0-9_]{2,}(?:\([^()\n]*\))?\s+)+")
"""What looks like macros in a row, as they stand before a declaration of C or C++."""

_SEPARATORS = b" \t\r\n\f;,"
"""Likewise, at either end."""


def declared(identifier: str, source: bytes, claimed: Claimed) -> Declared:
    """What the syntax says of a range that a server claims for a symbol."""
    text = Text(source.decode())
    parts = _parts(identifier, source, text, claimed)
    if not _is_declaration(identifier, source, text, claimed, parts):
        whole = _with_macros(identifier, source, text, claimed)
        return Declared(is_whole=True, removal=_range(text, source, whole)) if whole else Declared()
    span = Span(*(len(text.content[:offset].encode()) for offset in _extent(text, claimed.range)))
    held = [node for node in parts or _exactly(identifier, source, span) if node.type not in BLOCKS and node.parent]
    if not held:
        return Declared(is_whole=True)
    statement = statement_of(held[-1])
    removal = removal_of(statement, span, source)
    called = first_call(held[-1], source)
    return Declared(
        is_whole=True,
        statement=_range(text, source, extent_of(statement, span, source)),
        removal=_range(text, source, removal),
        is_alone=identifier == "python" and is_alone(statement),
        kept=kept_because(statement, span_of(text, Range(claimed.name_at, claimed.name_at)).start)
        or kept_by_value(held),
        shifts=shifted_by(statement),
        calls=None if called is None else text.position(len(source[:called].decode())),
        built=built_at_start(held[-1]) if identifier == "cpp" else [],
    )


def _parts(identifier: str, source: bytes, text: Text, claimed: Claimed) -> list[Node]:
    """The parts of the syntax that hold the name and are what lies in the range, smallest first."""
    root = tree_of(identifier, source).root_node
    name_at = span_of(text, Range(claimed.name_at, claimed.name_at)).start
    return [
        node
        for node in _holding(root, name_at, span_of(text, claimed.range))
        # The name alone declares nothing.
        if (node.start_byte != name_at or node.named_child_count) and node.text != claimed.name.encode()
    ]


def _exactly(identifier: str, source: bytes, span: Span) -> Iterator[Node]:
    """The parts of the syntax that are a span, smallest first: members may be names alone."""
    node = tree_of(identifier, source).root_node.named_descendant_for_byte_range(*span)
    while node is not None and (node.start_byte, node.end_byte) == span:
        yield node
        node = node.parent


def _is_declaration(identifier: str, source: bytes, text: Text, claimed: Claimed, parts: Sequence[Node]) -> bool:
    at = span_of(text, Range(claimed.name_at, claimed.name_at)).start
    start, end = span_of(text, claimed.range)
    definitions = list(at_all_levels(outline_around(identifier, source, min(start, at), max(end, at + 1))))
    named = [one for one in definitions if one.selection.start == claimed.name_at and one.name == claimed.name]
    if any(_extent(text, one.range) == _extent(text, claimed.range) for one in named):
        return True
    if named:
        is_shared = sum(one.range == named[0].range for one in definitions) > 1
        return any(_is_whole(node, span_of(text, named[0].range), is_shared=is_shared) for node in parts)
    if _is_named(text, claimed):
        return bool(parts)
    return claimed.name_at == claimed.range.start and any(map(_is_nameless, parts))


def _with_macros(identifier: str, source: bytes, text: Text, claimed: Claimed) -> Span | None:
    """The whole of a declaration of C or C++ that begins with macros (`EXPORT char *name(void);`), if a server claims
    what follows them: where they stand for nothing, they are no part of it."""
    if identifier not in LANGUAGES:
        return None
    start, end = span_of(text, claimed.range)
    at = span_of(text, Range(claimed.name_at, claimed.name_at)).start
    for one in at_all_levels(outline_around(identifier, source, min(start, at), max(end, at + 1))):
        whole = span_of(text, one.range)
        is_named = one.selection.start == claimed.name_at and one.name == claimed.name
        behind = source[end : whole.end].strip(_SEPARATORS)
        if is_named and not behind and _MACROS.fullmatch(source[whole.start : start]):
            return whole
    return None


def _is_whole(node: Node, definition: Span, *, is_shared: bool) -> bool:
    """Whether a part of a definition is all of it, but for what leads it or what it is wrapped in; where several names
    share one (`int a, b;`), each has its part."""
    if is_shared:
        return definition.start <= node.start_byte and node.end_byte <= definition.end
    root = _root(node)
    is_whole = (
        definition.start <= node.start_byte
        and _is_aside(root, definition.start, node.start_byte, _LEADING)
        and _is_aside(root, node.end_byte, definition.end)
    )
    defining = root.named_descendant_for_byte_range(*definition)
    if is_whole or defining is None or defining.parent is None:
        return is_whole
    return (defining.start_byte, defining.end_byte) == definition and statement_of(defining) == statement_of(node)


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _range(text: Text, source: bytes, span: Span) -> Range:
    return Range(*(text.position(len(source[:offset].decode())) for offset in span))


def _extent(text: Text, span: Range) -> tuple[int, int]:
    """A range without the blanks at its ends."""
    held = text.slice(span)
    first = text.offset(span.start)
    return first + len(held) - len(held.lstrip()), first + len(held.rstrip())


def _is_named(text: Text, claimed: Claimed) -> bool:
    """Whether a name stands where its server says; or, for what gets its name from where it is put (`get = function`),
    before it in its line. Names that stand nowhere were made up, and may be anywhere."""
    offset, name = text.offset(claimed.name_at), re.escape(claimed.name)
    if not _WORD.search(claimed.name):  # `[]`, `()`: what servers call signatures without a name
        return claimed.name_at == claimed.range.start
    if not _IDENTIFIER.fullmatch(claimed.name):
        first = max(offset - len(claimed.name), 0) if " " in claimed.name else offset  # `Type` of `impl Trait for Type`
        found = text.content.find(claimed.name, first)
        return 0 <= found <= offset or claimed.name not in text.content
    word = rf"(?<!\w){name}(?!\w)"
    before = text.line(claimed.name_at.line0)[: claimed.name_at.column]
    return bool(
        re.compile(word).match(text.content, offset)
        or (claimed.name_at == claimed.range.start and re.search(word, before))
    )


def _is_nameless(node: Node) -> bool:
    return node.type in _NAMELESS and node.child_by_field_name("name") is None


def _holding(root: Node, name_at: int, span: Span) -> Iterator[Node]:
    """The parts of the syntax that hold a name and are what lies in a span, smallest first."""
    node = root.named_descendant_for_byte_range(name_at, name_at + 1)
    while node is not None:
        if _is_aside(root, span.start, node.start_byte, _LEADING) and _is_aside(root, node.end_byte, span.end):
            yield node
        node = node.parent


def _is_aside(root: Node, first: int, last: int, leading: Collection[str] = ()) -> bool:
    """Whether nothing but blanks, comments and what is `leading` lies between two offsets, in whatever order."""
    first, last = min(first, last), max(first, last)
    between = (root.text or b"")[first - root.start_byte : last - root.start_byte]
    place = 0
    while place < len(between):
        if between[place] in _SEPARATORS:
            place += 1
            continue
        node = root.descendant_for_byte_range(first + place, first + place + 1)
        while node is not None and not _is_of(node, leading):
            node = node.parent
        while node is not None and node.parent is not None and _is_of(node.parent, leading):
            node = node.parent
        if node is None or node.start_byte < first or node.end_byte > last:
            return False
        place = node.end_byte - first
    return True


def _is_of(node: Node, leading: Collection[str]) -> bool:
    return "comment" in node.type or node.type in leading
