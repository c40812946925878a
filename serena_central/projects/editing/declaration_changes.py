"""Finds the names that an edit removed or whose signatures it changed, which decide whether others may be broken.

Pure and cheap: only symbols that reach into the changed stretch of a file are compared.
"""

import msgspec

from serena_central.core.text import Text
from serena_central.editing.plan import changed_span
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.editing.positional_values import called_as, is_moved, values
from serena_central.projects.editing.signatures import reach, signature
from serena_central.symbols.symbol import CALLABLE, TYPES, VALUES, FileSymbols

_HIDDEN = VALUES | {SymbolKind.FUNCTION, SymbolKind.CLASS}
"""What is local where it stands in a variable, which may hold a function; the others are members of an object."""


class Redeclared(msgspec.Struct, frozen=True):
    """Names of one file's symbols. `gone`: a symbol of this name is not there any more; `changed`: it is, and has
    another signature; `moved`: what code hands it by position may mean something else now, for each whether it is a
    type."""

    gone: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    moved: frozenset[tuple[str, bool]] = frozenset()


def redeclared(old: Text, before: FileSymbols, new: Text, after: FileSymbols) -> Redeclared:
    """What an edit of a file's text did to what it declares."""
    start, old_end, new_end = changed_span(old.content, new.content)
    was, now = _touched(old, before, start, old_end), _touched(new, after, start, new_end)
    gone: set[str] = set()
    changed: set[str] = set()
    moved: set[tuple[str, bool]] = set()
    # What one text has in the stretch, the other may have just beside it: a decorator that came or went, for example.
    for path in {**was, **now}:
        old_place = was[path] if path in was else before.place_of(path)
        new_place = now[path] if path in now else after.place_of(path)
        if new_place is None:
            gone.add(path)
        elif old_place is not None:
            if signature(old, before, old_place) != signature(new, after, new_place):
                changed.add(path)
            if is_moved(values(old, before, old_place), values(new, after, new_place)):
                name = called_as(after, new_place)
                moved.add((name, name != _name(path) or after.symbols[new_place].kind in TYPES))
    return Redeclared(frozenset(map(_name, gone)), frozenset(map(_name, changed)), frozenset(moved))


def _touched(text: Text, file: FileSymbols, start: int, end: int) -> dict[str, int]:
    """Name path → place, of symbols that others may refer to and that begin or stand where a stretch of a text
    is."""
    places = file.meeting(text.position(start), reach(text, text.position(end)))
    return {file.name_path(place): place for place in places if not _is_local(file, place)}


def all_gone(before: FileSymbols) -> Redeclared:
    """Of a file that was deleted."""
    names = {symbol.name for place, symbol in enumerate(before.symbols) if not _is_local(before, place)}
    return Redeclared(frozenset(names))


def _is_local(file: FileSymbols, place: int) -> bool:
    own, container = file.symbols[place].kind, file.symbols[place].container
    while container >= 0:
        kind = file.symbols[container].kind
        if kind in CALLABLE or (kind in VALUES and own in _HIDDEN):
            return True
        container = file.symbols[container].container
    return False


def _name(name_path: str) -> str:
    return name_path.rpartition("/")[2].partition("[")[0]
