"""The statement or list item that a declaration is part of, and what has to go with it when it is deleted: a separator,
the comment that ends its line.

Runs in the worker's process, like `outline`. Knows trees and bytes only.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from serena_central.core.text import Range, Text

_STATEMENTS = frozenset(
    {"ambient_declaration", "const_declaration", "constant_declaration", "declaration", "declaration_command"}
    | {"decorated_definition", "event_field_declaration", "export_statement", "expression_statement"}
    | {"field_declaration", "friend_declaration", "lexical_declaration", "local_declaration_statement"}
    | {"local_variable_declaration", "property_declaration", "template_declaration", "type_declaration"}
    | {"var_declaration", "var_spec_list", "variable_declaration"}
)
"""What a declaration is wrapped in: with one declaration in it, it is all of the statement."""

BLOCKS = frozenset(
    {"block", "body_statement", "chunk", "compound_statement", "declaration_list", "document", "module", "program"}
    | {"source_file", "statement_block", "statement_list", "then", "translation_unit"}
)
"""What holds statements, and may be as long as the only one in it."""

_CONTROL = re.compile(
    r"(?:async_)?(?:case|catch|do|elif|else|enhanced_for|except|for|foreach|if|import|loop|match|switch|try|using|while"
    r"|with)_(?:in_)?(?:arm|clause|expression|group|item|statement)"
)
"""Statements that bind names beside doing something else."""

_ASIDE = re.compile(r"annotation|attribute|comment|decorator|modifier|template_parameter_list")
"""Parts of a statement that declare nothing."""

_MEMBERS = frozenset(
    {"const_spec", "enum_assignment", "enum_member_declaration", "enum_variant", "enumerator", "property_identifier"}
)
"""What may get its value from its place among others like it."""


LONGEST_SHOWN = 60
"""Characters of what is assigned to, in a message."""


class Span(NamedTuple):
    """In bytes."""

    start: int
    end: int


def span_of(text: Text, stretch: Range) -> Span:
    """Where a stretch of a text lies in its UTF-8."""
    start, end = (len(text.content[: text.offset(at)].encode()) for at in (stretch.start, stretch.end))
    return Span(start, end)


def statement_of(node: Node) -> Node:
    """The largest statement that declares nothing but what the node does."""
    while (parent := node.parent) is not None and parent.type in _STATEMENTS and _is_only(node, parent):
        node = parent
    return node


def extent_of(statement: Node, span: Span, source: bytes) -> Span:
    """A statement with what the server counts to it, without the blanks that some grammars count."""
    end = len(source[: statement.end_byte].rstrip())
    return Span(min(statement.start_byte, span.start), max(end, span.end))


def removal_of(statement: Node, span: Span, source: bytes) -> Span:
    """What is deleted with a statement or list item, of which `span` is the server's range."""
    start, end = extent_of(statement, span, source)
    after, before = _beside(statement, forward=True), _beside(statement, forward=False)
    is_last = before is not None and before.type == "," and (after is None or after.type != ",")
    if after is not None and after.type in (",", ";") and not is_last:
        end = max(end, after.end_byte)
        blanks = re.compile(rb"[ \t]*").match(source, end)
        behind = blanks.end() if blanks else end
        if source[behind : behind + 1] not in (b"\n", b"\r", b"") and source[behind : behind + 2] not in (b"//", b"/*"):
            end = behind
    elif before is not None and _is_separator_before(before, statement, after):
        start = before.start_byte
    return Span(start, _with_comment(statement, end, source))


def is_alone(statement: Node) -> bool:
    """Whether it is the only statement of a Python block, or of what is like one."""
    parent = statement.parent
    return parent is not None and parent.type == "block" and list(_told(parent)) == [statement]


_OF_FILES = frozenset(
    {"file_scoped_namespace_declaration", "namespace_definition", "package_clause", "package_declaration"}
)
"""Without a body: those of PHP, C#, Go and Java."""


def kept_because(statement: Node, name_at: int) -> str:
    """Why a statement can't be deleted for a name in it."""
    if statement.type in _OF_FILES and statement.child_by_field_name("body") is None:
        return "it says where all that follows it in the file belongs"
    name = statement.child_by_field_name("name")
    if _CONTROL.fullmatch(statement.type) and (name is None or name.start_byte != name_at):
        return f"its name is bound by a {statement.type.replace('_', ' ')}, which does more than that"
    parent = statement.parent
    if "parameter" in statement.type or (parent is not None and "parameter" in parent.type):
        return "it is a parameter, which callers pass"
    return ""


_SETS = re.compile(r"(?:augmented_|compound_)?assignment(?:_expression)?|update_expression")


def kept_by_value(declaring: Sequence[Node]) -> str:
    """Why what declares a variable, smallest first, can't be deleted for its value: it gives something else a value,
    too, as in `const app = module.exports = {}`."""
    inner = (one.child_by_field_name("declarator") for one in declaring)
    nodes = [*declaring, *(one for one in inner if one is not None)]
    value = next(
        (its for one in nodes for field in ("value", "right") if (its := one.child_by_field_name(field))), None
    )
    while value is not None and value.type == "parenthesized_expression" and value.named_child_count == 1:
        value = value.named_children[0]
    if value is None or not _SETS.fullmatch(value.type):
        return ""
    target = value.child_by_field_name("left") or value.child_by_field_name("argument")
    shown = (target.text or b"").decode() if target is not None else ""
    what = shown if 0 < len(shown) <= LONGEST_SHOWN and "\n" not in shown else "something else"
    return f"its value is an assignment to {what}, which would go with it"


def shifted_by(statement: Node) -> str:
    """What gets another value silently when a constant of a group, or a member of an enumeration, is deleted."""
    parent = statement.parent
    if statement.type not in _MEMBERS or parent is None:
        return ""
    if statement.type == "enum_variant" and not _is_numbered(parent):
        return ""
    later = [one for one in _told(parent) if one.start_byte > statement.start_byte]
    for one in later:
        if one.type not in _MEMBERS:
            continue
        value = one.child_by_field_name("value")
        if value is None and one.type == "enum_member_declaration" and "=" in (one.text or b"").decode():
            continue
        if value is None or (one.type == "const_spec" and b"iota" in re.findall(rb"\w+", value.text or b"")):
            return "members after it in its group get their values from their positions, which would change"
    return ""


_NUMBERED = re.compile(rb"\brepr\s*\(\s*(?:C\b|[iu](?:\d+|size)\b)")


def _is_numbered(variants: Node) -> bool:
    """Whether the values of an enum of Rust matter to others: one is written, or its representation is."""
    if any(one.child_by_field_name("value") is not None for one in variants.named_children):
        return True
    before = variants.parent and variants.parent.prev_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
        if before.type == "attribute_item" and _NUMBERED.search(before.text or b""):
            return True
        before = before.prev_sibling
    return False


def _is_only(node: Node, parent: Node) -> bool:
    """Whether all else in a statement are keywords, and what says more of the same declaration."""
    return all(one == node or not one.is_named or _ASIDE.search(one.type) for one in parent.children)


def _told(parent: Node) -> Iterator[Node]:
    return (one for one in parent.named_children if "comment" not in one.type)


def _beside(node: Node, *, forward: bool) -> Node | None:
    """The next sibling that is no comment; before a node, the sibling right before it."""
    beside = node.next_sibling if forward else node.prev_sibling
    while forward and beside is not None and "comment" in beside.type:
        beside = beside.next_sibling
    return beside


def _is_separator_before(before: Node, statement: Node, after: Node | None) -> bool:
    # A semicolon on a line above ends what stands there, and keeps it apart from what follows.
    if before.type == ";":
        return before.end_point[0] == statement.start_point[0] and (after is None or not after.is_named)
    return before.type == ","


def _with_comment(statement: Node, end: int, source: bytes) -> int:
    """The end with the comment behind it, if the lines hold nothing else."""
    line_start = source.rfind(b"\n", 0, statement.start_byte) + 1
    line_end = source.find(b"\n", end)
    line_end = len(source) if line_end < 0 else line_end
    rest = source[end:line_end]
    if source[line_start : statement.start_byte].strip() or not rest.strip():
        return end
    first = end + len(rest) - len(rest.lstrip())
    root = statement
    while root.parent is not None:
        root = root.parent
    comment = root.descendant_for_byte_range(first, first + 1)
    while comment is not None and "comment" not in comment.type:
        comment = comment.parent
    if comment is None or comment.start_byte != first:
        return end
    last = first + len(source[first:line_end].rstrip())
    return last if last <= comment.end_byte <= line_end + 1 else end
