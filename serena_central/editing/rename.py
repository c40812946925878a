"""What a rename changes: a language server's proposal, compared with the places that refer to the symbol. Pure.

A proposal is never trusted blindly: it must cover every place that names the symbol by its own name, or the places it
leaves out are added. A place that names it otherwise (an alias, a keyword such as `self` or `super`) stays as it is.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Range, Text
from serena_central.editing.plan import TextEdit

_IDENTIFIER = re.compile(r"[#$@]?[^\W\d][\w$]*[?!']?")
"""What is a name in some language; the language server knows better for its own."""

MAX_NAME = 500


class Rename(NamedTuple):
    """Edits per file, and the places that the server's proposal had left out."""

    edits: dict[str, list[TextEdit]]
    added: list[tuple[str, Range]]

    @property
    def places(self) -> int:
        return sum(map(len, self.edits.values()))


def check_new_name(old: str, new: str) -> None:
    """Raises InvalidArguments for what is no name, or the same one."""
    if len(new) > MAX_NAME or not _IDENTIFIER.fullmatch(new):
        raise InvalidArguments(
            f"{new[:60]!r} can't be a name: give one identifier, without spaces, dots or parentheses."
        )
    if new == old:
        raise InvalidArguments(f"The symbol is named {old!r} already.")


def completed(
    proposed: Mapping[str, Sequence[TextEdit]],
    references: Mapping[str, Sequence[Range]],
    texts: Mapping[str, Text],
    old: str,
    new: str,
) -> Rename:
    """The proposal with the references that it does not cover. `references` holds the definition's own place, too;
    `texts` holds the text of every file in either of them."""
    edits = {path: list(dict.fromkeys(some)) for path, some in proposed.items() if some}
    added: list[tuple[str, Range]] = []
    for path, spans in references.items():
        covered = edits.get(path, [])
        for span in dict.fromkeys(spans):
            named = texts[path].slice(span) == old
            if named and not any(_touch(edit.range, span) for edit in covered):
                edits.setdefault(path, []).append(TextEdit(span, new))
                added.append((path, span))
    return Rename(edits, added)


def _touch(one: Range, other: Range) -> bool:
    return one == other or (one.start < other.end and other.start < one.end)
