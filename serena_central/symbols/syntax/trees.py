"""Syntax trees of texts. An edit asks several times about one text, and the next edit about what it left.

Runs in the worker's process, like `outline`.
"""

from functools import cache, lru_cache
from importlib import import_module

from tree_sitter import Language, Parser, Query, Tree

from serena_central.symbols.syntax.grammars import GRAMMARS, QUERIES

KEPT = 4
KEPT_BYTES = 500_000
"""Of the longest text whose tree is kept: a tree takes 60 times its text at the worst, ten times as a rule."""


@cache
def tools(identifier: str) -> tuple[Parser, Query]:
    """The parser of a language, and the query for its definitions."""
    grammar = GRAMMARS[identifier]
    pointer: object = getattr(import_module(grammar.package), grammar.function)()
    language = Language(pointer)
    query = (QUERIES / f"{grammar.query}.scm").read_text(encoding="utf-8")
    return Parser(language), Query(language, query)


def tree_of(identifier: str, source: bytes) -> Tree:
    """Of a text (valid UTF-8) in the language of an LSP identifier that `GRAMMARS` holds; shared, so never edited."""
    return _kept(identifier, source) if len(source) <= KEPT_BYTES else _parsed(identifier, source)


def _parsed(identifier: str, source: bytes) -> Tree:
    parser, _ = tools(identifier)
    return parser.parse(source)


_kept = lru_cache(maxsize=KEPT)(_parsed)
