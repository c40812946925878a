"""What a name alone may mean. Where the receiver's type is unknown, most places with the name of a built-in type's
member mean that; in strings and files of other languages an everyday word means a symbol behind its module or type, in
the braces of a template, or as all that a call is given."""

import re
from collections.abc import Mapping
from io import TextIOBase
from pathlib import PurePosixPath

from serena_central.symbols.index import Hit

_PYTHON = (bytes, bytearray, dict, Exception, float, frozenset, int, list, property, set, str, tuple, type, TextIOBase)

_SCRIPT = """
    apply at bind call catch charAt clear concat delete endsWith entries every exec fill filter finally find findIndex
    flat flatMap forEach get has includes indexOf join keys lastIndexOf length map match matchAll message name pop push
    reduce repeat replace replaceAll reverse search set shift size slice some sort splice split startsWith stack test
    then toString trim unshift value valueOf values
"""

_MEMBERS: Mapping[str, frozenset[str]] = {
    "python": frozenset(name for kind in _PYTHON for name in dir(kind)),
    "javascript": frozenset(_SCRIPT.split()),
    "typescript": frozenset(_SCRIPT.split()),
}


def is_common(language: str | None, name: str) -> bool:
    """Whether built-in types of a language have a member of that name."""
    return name in _MEMBERS.get(language or "", ())


def is_unusual(name: str) -> bool:
    """Whether a string with this name in it means the symbol, rather than an everyday word."""
    bare = name.removeprefix("$")
    everyday = bare.isalpha() and (bare.islower() or bare.istitle())
    return len(bare) >= 4 and not everyday


def behind_holder(hit: Hit) -> re.Pattern[str]:
    """The name of a symbol behind that of its module (a package's is its folder's) or type, or behind the dot of Go's
    assembly (`CALL ·start(SB)`); of a member also behind any value in the braces of a template: `{{ page.title }}`,
    `{{if .Title}}`, `{% if page.title %}`."""
    file = PurePosixPath(hit.path)
    holders = {file.name.partition(".")[0], file.parent.name}
    if hit.symbol.container >= 0:
        holders.add(hit.file.symbols[hit.symbol.container].name)
    either = "|".join(re.escape(holder) for holder in holders if holder)
    before = [rf"(?<!\w)(?:{either})\s*(?:[.:#/$]|::)\s*", "·"]
    if "/" in hit.name_path:
        before.append(r"\{[{%][^{}]*\.")
    return re.compile(rf"(?:{'|'.join(before)}){re.escape(hit.symbol.name)}(?!\w)")


def as_argument(name: str) -> re.Pattern[str]:
    """A name (group `name`) that is all of a string that a call takes, as `getDeclaredMethod("run")`: in a line."""
    return re.compile(rf"(?:^|[(,])\s*(?P<quote>[\"'])(?P<name>{re.escape(name)})(?P=quote)(?=\s*[,)])")
