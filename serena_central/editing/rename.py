"""Computes the changes of a rename: a language server's proposal, compared with the symbol's references. Pure.

A proposal is never trusted blindly: it must cover every place that names the symbol by its own name, or the places it
leaves out are added. A place that names it otherwise (an alias, a keyword such as `self` or `super`) stays as it is;
one that names a property of PHP without its `$` gets the new name without it.
Where the proposal writes both names (`{ new: old }`), the old one goes on as the name of something else.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text, whole_word
from serena_central.editing.plan import TextEdit

_IDENTIFIER = re.compile(r"[#$@]?[^\W\d][\w$]*[?!']?")
"""What is a name in some language; the language server knows better for its own."""

_OPERATOR = re.compile(r"operator\b\s*[^\w\s?!'$]")

_MODIFIERS = r"(?:(?:ref|mut)\s+)*"
"""What stands in Rust between a field's name and the variable that is bound to it."""

_LISTED = re.compile(r"\b(?:import|export)\b[^{}()'\"]*\{[^{}]*\Z")
"""Before a name that a JavaScript module imports or exports."""

_LOOKED_BACK = 4_000
"""Characters before a name in which such a list would begin."""

_AS_TAKES = 50
"""Characters, with the white space around it."""

_VALUE = r"\s*(?:\|\||&&|\?\?)?[=:]\s*(?:async\b\s*+)?(?:function\b\s*+(?:\*\s*+)?|class\b\s*+)"
"""Between a name and the one that its value, a function or class of JavaScript, has for itself."""

MAX_NAME = 500


class Rename(NamedTuple):
    """Edits per file, the places that the server's proposal had left out, and those at which the old name stays beside
    the new one."""

    edits: dict[str, list[TextEdit]]
    added: list[tuple[str, Range]]
    kept: frozenset[tuple[str, Position]] = frozenset()

    @property
    def places(self) -> int:
        return sum(map(len, self.edits.values()))

    def with_places(self, places: Collection[tuple[str, Range]], new: str) -> "Rename":
        """Gives more places the new name."""
        edits = {path: list(some) for path, some in self.edits.items()}
        for path, span in places:
            edits.setdefault(path, []).append(TextEdit(span, new))
        return self._replace(edits=edits, added=[*self.added, *places])

    def without(self, places: Collection[tuple[str, Range]]) -> "Rename":
        """Leaves some of the added places as they are."""
        edits = {path: [edit for edit in some if (path, edit.range) not in places] for path, some in self.edits.items()}
        return self._replace(
            edits={path: some for path, some in edits.items() if some},
            added=[place for place in self.added if place not in places],
        )


def check_new_name(old: str, new: str, language: str | None = None) -> None:
    """Raises InvalidArguments for what is no name, or the same one, and for what has no name of its own."""
    if language == "php" and old.startswith("$") != new.startswith("$"):
        fitting = f"${new}" if old.startswith("$") else new.removeprefix("$")
        raise InvalidArguments(f"{new[:60]!r} can't be the name of {old!r}. Pass {fitting[:60]!r}.")
    if old.startswith("~") and language == "go":
        raise InvalidArguments(f"{old!r} is a constraint, which has no name.")
    if old.startswith("~"):
        raise InvalidArguments(f"{old!r} is a destructor. It is renamed with its class: rename that.")
    if _OPERATOR.match(old):
        raise InvalidArguments(f"{old!r} is an operator, whose name can't be changed.")
    if old.endswith(">") and language in ("c", "cpp"):
        raise InvalidArguments(f"{old!r} is a specialization. It is renamed with its template: rename that.")
    if len(new) > MAX_NAME or not _IDENTIFIER.fullmatch(new):
        raise InvalidArguments(
            f"{new[:60]!r} is not a valid name. Pass one identifier without spaces, dots or parentheses."
        )
    if new == old:
        raise InvalidArguments(f"The symbol is already named {old!r}.")


def completed(
    proposed: Mapping[str, Sequence[TextEdit]],
    references: Mapping[str, Sequence[Range]],
    texts: Mapping[str, Text],
    old: str,
    new: str,
    *,
    ignore_case: bool = False,
    sigil: str = "",
) -> Rename:
    """The proposal with the references that it does not cover. `references` holds the definition's own place, too;
    `texts` holds the text of every file in either of them. `ignore_case`: the name is the same in any case. `sigil` is
    what the name begins with, and some places leave out."""
    edits = {path: _of_one(dict.fromkeys(some), old, new) for path, some in proposed.items() if some}
    kept = frozenset((path, at) for path, some in edits.items() for at in _kept(some, texts[path], old, new))
    added: list[tuple[str, Range]] = []
    for path, spans in references.items():
        covered = edits.get(path, [])
        exactly = {edit.range for edit in covered}
        for span in dict.fromkeys(spans):
            if span in exactly:
                continue
            stands = texts[path].slice(span)
            is_bare = sigil != "" and sigil + stands == old
            is_old = is_bare or stands == old or (ignore_case and stands.casefold() == old.casefold())
            named = is_old and (path, span.start) not in kept
            if named and not any(_touch(edit.range, span) for edit in covered):
                edits.setdefault(path, []).append(TextEdit(span, new.removeprefix(sigil) if is_bare else new))
                added.append((path, span))
    return Rename(edits, added, kept)


def own_name(text: Text, name: Range) -> Position | None:
    """Where a function or class has the same name for itself as what it is assigned to, which stands in `name`:
    `exports.run = function run() {}`. No code sees it but the function's own."""
    word = re.escape(text.slice(name))
    found = re.compile(rf"{_VALUE}(?P<own>{word})(?![\w$])").match(text.content, text.offset(name.end))
    return text.position(found.start("own")) if found else None


def without_repetition(rename: Rename, texts: Mapping[str, Text], new: str) -> Rename:
    """A rename that leaves `{ new }` where modules would import or export `{ new as new }`: one that is renamed back is
    as it was."""
    behind = re.compile(rf"\s+as\s+{re.escape(new)}(?![\w$])")
    before = re.compile(rf"(?<![\w$]){re.escape(new)}\s+as\s+\Z")
    near = len(new) + _AS_TAKES

    def once(text: Text, edit: TextEdit) -> TextEdit:
        start, end = text.offset(edit.range.start), text.offset(edit.range.end)
        if edit.new_text != new:
            return edit
        found = behind.match(text.content, end) or before.search(text.content, max(start - near, 0), start)
        if found is None or not _LISTED.search(text.content, max(start - _LOOKED_BACK, 0), start):
            return edit
        place = Range(text.position(min(start, found.start())), text.position(max(end, found.end())))
        return TextEdit(place, new)

    return rename._replace(
        edits={path: [once(texts[path], edit) for edit in some] for path, some in rename.edits.items()}
    )


def _of_one(edits: Collection[TextEdit], old: str, new: str) -> list[TextEdit]:
    """Edits of which one is left for a place: where an exported pattern takes a renamed field (`export const { load } =
    table`), TypeScript's server may propose `new: old` and, for its variable, `old: new`."""
    fields = {edit.range for edit in edits if edit.new_text == f"{new}: {old}"}
    return [edit for edit in edits if edit.range not in fields or edit.new_text != f"{old}: {new}"]


def _kept(edits: Sequence[TextEdit], text: Text, old: str, new: str) -> Iterator[Position]:
    """Where the old name stays beside the new one: written by the edit itself, or left before or behind it."""
    old_word, new_word = whole_word(old), whole_word(new)
    for edit in edits:
        start, end, written = edit.range.start, edit.range.end, edit.new_text
        if not new_word.search(written):
            continue
        if start != end:
            place = old_word.search(text.slice(Range(start, end)))
            if place and old_word.search(written):
                yield text.position(text.offset(start) + place.start())
            continue
        line, behind = text.line(start.line0), start.column - len(old)
        before = re.compile(rf"{_MODIFIERS}{re.escape(old)}(?![\w$])").match(line, start.column)
        if before:
            yield Position(start.line0, before.end() - len(old))
        elif behind >= 0 and line[behind : start.column] == old:
            yield Position(start.line0, behind)


def _touch(one: Range, other: Range) -> bool:
    return one == other or (one.start < other.end and other.start < one.end)
