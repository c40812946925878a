"""Decides what text to cut to delete a symbol, and why it may not be deleted."""

from collections.abc import Iterator

from serena_central.core.errors import EditRefused
from serena_central.core.text import Position, Range
from serena_central.editing.placement import removed, removed_in_python, with_doc_comment
from serena_central.editing.plan import TextEdit
from serena_central.projects.editing.edits import Site
from serena_central.symbols.symbol import below, kind_numbers

_VALUES = kind_numbers(["Constant", "EnumMember", "Field", "Property", "Variable"])


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
    others = sorted(set(others_in(site, span)))
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


def others_in(site: Site, span: Range) -> Iterator[str]:
    """Names that a range defines beside the symbol and what is inside of it."""
    file, place, own = site.hit.file, site.hit.place, site.hit.symbol
    inside = set(below(file, place))
    for number, other in enumerate(file.symbols):
        at = other.name_position
        if number in inside or not span.start <= at < span.end or other.name == own.name:
            continue
        if other.container in inside or site.text.slice(Range(at, _end(at, other.name))) != other.name:
            inside.add(number)  # what has no name in the text is a part of what has one
        elif at < own.name_position or own.kind in _VALUES:
            yield other.name


def _end(at: Position, name: str) -> Position:
    return Position(at.line0, at.column + len(name))
