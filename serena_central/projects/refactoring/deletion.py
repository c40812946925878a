"""Decides what text to cut to delete a symbol, and why it may not be deleted."""

from serena_central.core.errors import EditRefused
from serena_central.editing.placement import removed, removed_in_python, with_doc_comment
from serena_central.editing.plan import TextEdit
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.edits import Site
from serena_central.symbols.index import SymbolIndex
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import GROUPS, TYPES, VALUES

_HAVE_VALUES = VALUES | {SymbolKind.FIELD, SymbolKind.PROPERTY}
_RUN = _HAVE_VALUES | GROUPS | TYPES
"""Kinds of symbols of which something runs where they stand; of functions nothing does."""
_COMPUTED_BEFORE = frozenset({"c", "rust"})
"""Languages in which the values of variables outside of functions are known to the compiler."""


def deletion(site: Site, language: str | None, *, force: bool) -> TextEdit:
    """The edit that deletes a symbol. `force` overrides what it may change elsewhere, and nothing else.

    Raises:
        EditRefused: it can't be deleted, or not alone.
    """
    site.check_whole()
    known, name = site.declared, site.hit.name_path
    span = known.removal if known and known.removal else site.hit.symbol.range
    if known and known.kept:
        raise EditRefused(f"{name} was not deleted: {known.kept}. Edit it as text (replace_content).")
    others = sorted(set(site.others_in(span)))
    if others:
        raise EditRefused(
            f"{name} was not deleted: it shares one definition with {', '.join(others)} in "
            f"{site.hit.path}:{span.start.line0}. Edit it as text (replace_content)."
        )
    if known and known.shifts and not force:
        raise EditRefused(f"{name} was not deleted: {known.shifts}. Pass force=true to delete it anyway.")
    whole = with_doc_comment(site.text, span, language)
    if language == "python" and (known is None or known.removal is None):
        return removed_in_python(site.text, whole)
    if known and known.is_alone and known.statement:
        return TextEdit(known.statement, "pass")
    return removed(site.text, whole)


def call_removed(site: Site, language: str | None) -> str | None:
    """A sentence about what ran where a deleted symbol stood: the call that gave it its value, since what registers
    something returns it, too; a static block of a class; the variables of a namespace."""
    symbol, known = site.hit.symbol, site.declared
    if symbol.kind not in _RUN or language in _COMPUTED_BEFORE or known is None or known.calls is None:
        return None
    if symbol.kind in _HAVE_VALUES:
        return (
            f"{symbol.name} got its value from a call in {site.hit.path}:{symbol.name_line}, which is no longer made. "
            "If the call also does something else, make it elsewhere."
        )
    return (
        f"{symbol.name} made a call where it was declared, in {site.hit.path}:{known.calls.line0}, which is no longer "
        "made. If others depend on that call, make it elsewhere."
    )


def construction_removed(site: Site, index: SymbolIndex) -> str | None:
    """The same about an object of C++ whose constructor is no longer called: of a class of the project that declares
    one, or of another type if its values stand right behind its name."""
    for built in site.declared.built if site.declared is not None else ():
        own = [one for one in index.find(parse_pattern(built.type)) if one.symbol.kind in TYPES]
        named = index.find(parse_pattern(f"{built.type}/{built.type}"))
        constructor = next((one for one in named if one.symbol.kind == SymbolKind.CONSTRUCTOR), None)
        if constructor is None and (own or not built.is_likely):
            continue
        place = f" ({constructor.path}:{constructor.symbol.name_line})" if constructor is not None else ""
        return (
            f"{site.hit.symbol.name} was made by a constructor of {built.type}{place} when the program started, which "
            "is no longer called there. If it also registers something, do that elsewhere."
        )
    return None
