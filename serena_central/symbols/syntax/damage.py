"""What an edit breaks in the syntax of a text: more that can't be parsed than before, or, if something is deleted,
other parts that are not what they were.

Runs in the worker's process, like `outline`.
"""

from collections.abc import Iterator

from tree_sitter import Node

from serena_central.core.text import Text
from serena_central.symbols.syntax.messages import SyntaxEdit
from serena_central.symbols.syntax.statements import Span, span_of
from serena_central.symbols.syntax.trees import errors_in, tree_after, tree_of


def damage(identifier: str, source: bytes, edit: SyntaxEdit) -> str:
    """A sentence without its end; empty if nothing is broken."""
    text = Text(source.decode())
    removed = span_of(text, edit.range)
    new = edit.new_text.encode("utf-8", "replace")
    before = tree_of(identifier, source).root_node
    after = tree_after(identifier, source, removed.start, removed.end, new).root_node
    known = len(errors_in(before))
    more = len(errors_in(after)) - known
    if more > 0:
        return f"the file would have {more} more place{'s' * (more > 1)} that can't be parsed"
    if edit.is_deletion and not known:
        added = Span(removed.start, removed.start + len(new))
        if not _is_rest(before, after, removed, added):
            return "the remaining code would not be the same as before"
    return ""


def _is_rest(before: Node, after: Node, removed: Span, added: Span) -> bool:
    """Whether a node is what it was, but for what was removed and added."""
    waiting = [(before, after)]
    while waiting:
        old, new = waiting.pop()
        left, right = list(_parts(old, removed)), list(_parts(new, added))
        if len(left) != len(right):
            return False
        for one, other in zip(left, right, strict=True):
            if one.type != other.type:
                return False
            if one.start_byte < removed.end and one.end_byte > removed.start:
                waiting.append((one, other))
            elif (one.text or b"").strip() != (other.text or b"").strip():
                return False
    return True


def _parts(node: Node, without: Span) -> Iterator[Node]:
    """The children of a node but for comments and for those in a span."""
    for child in node.children:
        is_in = without.start <= child.start_byte and child.end_byte <= without.end
        if (
            "comment" not in child.type
            and not (is_in and without.start < without.end)
            and child.end_byte > child.start_byte
        ):
            yield child
