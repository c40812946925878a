"""Caches syntax trees of texts. An edit asks several times about one text, and the next edit about what it left.

Runs in the worker's process, like `outline`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from tree_sitter import Language, Node, Parser, Point, Query, Tree

from serena_central.core.lru import Lru
from serena_central.symbols.syntax.grammars import GRAMMARS, QUERIES

KEPT = 32
KEPT_BYTES = 1_500_000
"""Of texts whose trees are kept, together: a tree takes 60 times its text at the worst, ten times as a rule. A dozen
large files that hold one name are asked about by turns, for each name that they hold."""

LONGEST_KEPT = 500_000
"""Bytes of the longest one."""

_kept: Lru[tuple[str, bytes], Tree] = Lru(KEPT, max_size=KEPT_BYTES, size_of=lambda tree: tree.root_node.end_byte)


@cache
def tools(identifier: str) -> tuple[Parser, Query]:
    """The parser of a language, and the query for its definitions."""
    grammar = GRAMMARS[identifier]
    pointer: object = getattr(import_module(grammar.package), grammar.function)()
    language = Language(pointer)
    query = (QUERIES / f"{grammar.query}.scm").read_text(encoding="utf-8")
    return Parser(language), Query(language, query)


@cache
def settings_of(identifier: str) -> Sequence[Mapping[str, str | None]]:
    """What the query for a language's definitions sets, by the number of the pattern."""
    _, query = tools(identifier)
    return [query.pattern_settings(pattern) for pattern in range(query.pattern_count)]


def tree_of(identifier: str, source: bytes) -> Tree:
    """Of a text (valid UTF-8) in the language of an LSP identifier that `GRAMMARS` holds; shared, so never edited."""
    known = _kept.get((identifier, source))
    if known is None:
        parser, _ = tools(identifier)
        known = parser.parse(source)
        _keep(identifier, source, known)
    return known


def tree_after(identifier: str, source: bytes, start: int, end: int, new: bytes) -> Tree:
    """Of a text with the bytes from `start` to `end` replaced; equal to what `tree_of` makes of that text.

    What the edit leaves alone is taken from the text's own tree, in a tenth of the time that parsing takes. Only where
    neither text has errors: how a parser recovers from one depends on where it comes from.
    """
    after = source[:start] + new + source[end:]
    before = tree_of(identifier, source)
    if (identifier, after) in _kept or before.root_node.has_error:
        return tree_of(identifier, after)
    tree = before.copy()
    # Blanks behind the edit count to it: a scanner's tokens there (the end of a line, of a block) have no width, and
    # what stands behind them is parsed again if they are not.
    blank = len(source) - end - len(source[end:].lstrip())
    old_end, new_end = end + blank, start + len(new) + blank
    points = _point(source, start), _point(source, old_end), _point(after, new_end)
    tree.edit(start, old_end, new_end, *points)
    parser, _ = tools(identifier)
    tree = parser.parse(after, tree)
    if tree.root_node.has_error:
        return tree_of(identifier, after)
    _keep(identifier, after, tree)
    return tree


def parsed(identifier: str, source: bytes) -> Tree:
    """As `tree_of`, for a text that is not asked about again."""
    parser, _ = tools(identifier)
    return parser.parse(source)


_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))


def errors_in(root: Node) -> list[Node]:
    """The nodes of a tree that are errors, or are missing; but for defaults of Python's type parameters, as in
    `class Box[T = int]`, which the grammar does not know."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "type_parameter" and _has_defaults(node.text or b""):
            continue
        if node.is_error or node.is_missing:
            found.append(node)
        waiting += [child for child in node.children if child.has_error or child.is_missing]
    return found


def _has_defaults(type_parameters: bytes) -> bool:
    """Whether they are Python's, all of them with their brackets, and have defaults. What is not balanced is damage."""
    is_balanced = all(type_parameters.count(one) == type_parameters.count(other) for one, other in _BRACKETS)
    return type_parameters.startswith(b"[") and b"=" in type_parameters and is_balanced


def _keep(identifier: str, source: bytes, tree: Tree) -> None:
    if len(source) <= LONGEST_KEPT:
        _kept[identifier, source] = tree


def _point(source: bytes, offset: int) -> Point:
    return Point(source.count(b"\n", 0, offset), offset - source.rfind(b"\n", 0, offset) - 1)
