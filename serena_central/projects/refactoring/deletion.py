"""Decides what text to cut to delete a symbol, and why it may not be deleted."""

from serena_central.core.errors import EditRefused
from serena_central.editing.placement import removed, removed_in_python, with_doc_comment
from serena_central.editing.plan import TextEdit
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.edits import Site
from serena_central.symbols.symbol import VALUES

_HAVE_VALUES = VALUES | {SymbolKind.FIELD, SymbolKind.PROPERTY}
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
    """A sentence about the call that gave a deleted symbol its value: what registers something returns it, too."""
    symbol, known = site.hit.symbol, site.declared
    if symbol.kind not in _HAVE_VALUES or language in _COMPUTED_BEFORE or not (known and known.calls):
        return None
    return (
        f"{symbol.name} got its value from a call in {site.hit.path}:{symbol.name_line}, which is no longer made. "
        "If the call also does something else, make it elsewhere."
    )
