"""Why a symbol of Java may be in use although nothing refers to it, read off its declaration. Pure.

Java hands code over by annotations, calls some members by their names alone, and gives enum constants, components of
records and constructors by ways that name none of them.
"""

import re

from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit
from serena_central.symbols.java_declarations import head_of, holder_of, is_component, only_heir_of, takes_nothing
from serena_central.symbols.symbol import CALLABLE, TYPES

_CALLED_BY_NAME = """
    finalize readExternal readObject readObjectNoData readResolve serialPersistentFields serialVersionUID writeExternal
    writeObject writeReplace
"""
CALLED_BY_NAME = frozenset(_CALLED_BY_NAME.split())
"""Members that serialization and the virtual machine look for."""

_ANNOTATION = re.compile(r"@\s*(?!interface\b)(?:\w+\s*\.\s*)*(\w+)")

_FOR_THE_COMPILER = frozenset({"Deprecated", "FunctionalInterface", "Override", "SafeVarargs", "SuppressWarnings"})
"""Annotations of java.lang: they hand what they stand on to nobody."""


def annotated(hit: Hit, text: Text) -> str | None:
    """Who may use a symbol by an annotation: on itself, or on the type whose fields it reads (entities, Lombok)."""
    if names := _annotations(head_of(hit.symbol, text)):
        return f"it has the annotation @{names[0]}"
    holder = holder_of(hit)
    if holder is None or hit.symbol.kind in CALLABLE | TYPES or _is_static(hit, text):
        return None
    names = _annotations(head_of(holder, text))
    return f"its type has the annotation @{names[0]}, by which fields may be read" if names else None


def given_without_name(hit: Hit, text: Text) -> str | None:
    """What the language itself does with a symbol that nobody names."""
    symbol, holder = hit.symbol, holder_of(hit)
    if symbol.kind in TYPES and (base := only_heir_of(hit, text)):
        return f"it is the only subtype of {base}, which is sealed and must have one"
    if holder is None:
        return None
    if symbol.kind == SymbolKind.ENUM_MEMBER:
        return "values() and valueOf() give enum constants that no code names"
    siblings = (hit.file.symbols[place] for place in hit.file.children(hit.symbol.container))
    if symbol.kind == SymbolKind.CONSTRUCTOR and sum(one.kind == symbol.kind for one in siblings) == 1:
        return "without its only constructor, a class has one without parameters, of the same access as the class"
    if symbol.kind == SymbolKind.CONSTRUCTOR and takes_nothing(hit, text):
        return "serialization and libraries make objects by a constructor without parameters that no code names"
    if is_component(hit, text):
        return f"it is a component of the record {holder.name}, whose constructor and patterns take it by its position"
    return None


def may_override(hit: Hit, text: Text) -> bool:
    """Whether a member is of a sort that may be called through another type: of Java, methods of objects alone."""
    is_own = re.search(r"\b(?:private|static)\b", head_of(hit.symbol, text)) is not None
    return hit.symbol.kind in (SymbolKind.METHOD, SymbolKind.FUNCTION) and not is_own


def overrides(hit: Hit, text: Text) -> bool:
    """Whether a method says that it overrides one."""
    return "Override" in _ANNOTATION.findall(head_of(hit.symbol, text))


def is_exported(hit: Hit, text: Text) -> bool:
    """Whether a symbol is public or protected; constants of an enum are what their enum is."""
    symbol, holder = hit.symbol, holder_of(hit)
    if symbol.kind == SymbolKind.ENUM_MEMBER and holder is not None:
        symbol = holder
    line = text.line(symbol.name_line)[: symbol.name_column]
    return re.search(r"\b(?:public|protected)\b", f"{head_of(symbol, text)} {line}") is not None


def _annotations(head: str) -> list[str]:
    return [name for name in _ANNOTATION.findall(head) if name not in _FOR_THE_COMPILER]


def _is_static(hit: Hit, text: Text) -> bool:
    return re.search(r"\bstatic\b", head_of(hit.symbol, text)) is not None
