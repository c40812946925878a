"""LSP's SymbolKind in the tools' terms: names in answers, names or numbers in filters."""

from collections.abc import Iterable

from serena_central.core.errors import InvalidArguments
from serena_central.lsp.answers import SymbolKind

_NAMES = {kind.value: kind.name.title().replace("_", "") for kind in SymbolKind}
_NUMBERS = {name.casefold(): number for number, name in _NAMES.items()}


TYPES = frozenset({SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.ENUM, SymbolKind.OBJECT})
"""What members and bases have."""

GROUPS = frozenset({SymbolKind.MODULE, SymbolKind.NAMESPACE, SymbolKind.PACKAGE})
"""What only groups names: what is in it may be used by its own."""

VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT})

CALLABLE = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})


def kind_name(kind: int) -> str:
    """`Class` for 5; a number that LSP doesn't know is shown as such."""
    return _NAMES.get(kind, f"Kind{kind}")


def kind_numbers(kinds: Iterable[int | str]) -> frozenset[int]:
    """Numbers for what a caller wrote as numbers or names.

    Raises:
        InvalidArguments: a kind that LSP doesn't know.
    """
    return frozenset(_number(kind) for kind in kinds)


def _number(kind: int | str) -> int:
    number = _NUMBERS.get(kind.casefold()) if isinstance(kind, str) else kind
    if number is None and isinstance(kind, str) and kind.isdecimal():
        number = int(kind)
    if number not in _NAMES:
        known = ", ".join(f"{value} {name}" for value, name in _NAMES.items())
        raise InvalidArguments(f"{kind!r} is not a symbol kind. Kinds: {known}.")
    return number
