"""Identifies the source of a file's symbols, so that symbols from an outdated source are read again.

A server's name is the symbol source's business; here are those of symbols by syntax. They name no server: what the
syntax says of a file stays true when a server is installed, trusted or exchanged.
"""

from functools import cache

from serena_central.symbols.indexing.symbol_source import SymbolSource
from serena_central.symbols.syntax.grammars import REVISION, Grammar

_BY_SYNTAX = "tree-sitter "
_INSTEAD = "by syntax "


def is_by_syntax(identity: str) -> bool:
    return identity.startswith(_BY_SYNTAX)


@cache
def instead(grammar: Grammar) -> str:
    """The syntax, for files that it knows better than their server does: final, as a server's own word is."""
    return f"{_INSTEAD}{grammar.query} {REVISION}"


def united(server: str, instead: str) -> str:
    """A server that can't know a file, and the syntax, whose answers are united."""
    return f"{server}, {instead}"


def is_instead(identity: str) -> bool:
    return identity.startswith(_INSTEAD)


def by_syntax(source: SymbolSource, path: str) -> str | None:
    """The identity of a file's grammar; None if there is none, or the file is not read."""
    grammar = source.grammar(path)
    return None if grammar is None or source.identity(path) is None else _name_of(grammar)


def today(source: SymbolSource, path: str, identity: str) -> str | None:
    """What a source of this kind would be called for a file today."""
    if is_instead(identity):
        return source.instead(path)
    return by_syntax(source, path) if is_by_syntax(identity) else source.identity(path)


@cache
def _name_of(grammar: Grammar) -> str:
    """One string for all files that it stands beside."""
    return f"{_BY_SYNTAX}{grammar.query} {REVISION}"
