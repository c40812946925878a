"""Languages whose names are case-insensitive, for all symbols or for some kinds."""

from serena_central.symbols.symbol import CALLABLE, GROUPS, TYPES

_ALL = frozenset({"ada", "fortran", "pascal", "powershell", "sql", "vb"})
_SOME = {"php": CALLABLE | GROUPS | TYPES}
"""In PHP variables, fields and constants are case-sensitive, functions and classes are not."""


def ignores_case(language: str | None, kind: int) -> bool:
    """Whether a symbol of a kind has the same name in any case, by the language's name in the catalogue."""
    return language in _ALL or kind in _SOME.get(language or "", ())


def may_ignore_case(language: str) -> bool:
    """Whether some symbols of a language do."""
    return language in _ALL or language in _SOME
