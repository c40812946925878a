"""What a name alone may mean. Where the receiver's type is unknown, most places with the name of a built-in type's
member mean that; in strings and files of other languages an everyday word means a symbol behind its module or type, in
the braces of a template, or as all that a call is given."""

import re
from collections.abc import Callable, Mapping
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
    before = [rf"(?<!\w)(?:{_holders(hit)})\s*(?:[.:#/$]|::)\s*", "·", _imported_from(hit)]
    if "/" in hit.name_path:
        before.append(r"\{[{%][^{}]*\.")
    return re.compile(rf"(?:{'|'.join(before)}){re.escape(hit.symbol.name)}(?!\w)")


def behind_import(hit: Hit) -> Callable[[str], bool]:
    """Tells whether a text imports a symbol from its module in braces, or its module or type and then has its name as
    that of a member: `import shop as s … s.load()`."""
    name, holders = re.escape(hit.symbol.name), _holders(hit)
    # One without them is matched as a whole: of prose, in a line of a megabyte, each word may begin another one.
    statement = re.compile(rf"\b(?:import|from)[^\S\n](?:[^;\n]*?(?<!\w)(?P<holder>{holders})(?!\w)|[^;\n]*+)")
    member = re.compile(rf"\.\s*{name}(?!\w)")
    module = rf"[\"'`][^\"'`]*(?<!\w)(?:{holders})(?:\.\w+)?[\"'`]"
    in_braces = re.compile(rf"\bimport\b[^;\"'`]{{0,300}}(?<!\w){name}(?!\w)[^;\"'`]{{0,300}}\bfrom\s*{module}")

    def is_one(text: str) -> bool:
        imported = next((one for one in statement.finditer(text) if one["holder"]), None)
        return (imported and member.search(text, imported.end())) is not None or in_braces.search(text) is not None

    return is_one


def in_format(name: str) -> re.Pattern[str]:
    """A name as that of an attribute in the braces of a Python format: `"{0.title}"`."""
    return re.compile(rf"\{{\w[\w.\[\]]*\.{re.escape(name)}(?=[}}!:.\[])")


def _holders(hit: Hit) -> str:
    """Names of the module or type of a symbol, as alternatives; a package's is its folder's."""
    file = PurePosixPath(hit.path)
    holders = {file.name.partition(".")[0], file.parent.name}
    if hit.symbol.container >= 0:
        holders.add(hit.file.symbols[hit.symbol.container].name)
    return "|".join(re.escape(holder) for holder in sorted(holders) if holder)


def _imported_from(hit: Hit) -> str:
    """What stands before a name that Python imports from its module, in a notebook's strings, too."""
    return rf"(?<!\w)from\s+[\w.]*(?<!\w)(?:{_holders(hit)})\s+import\b[\w\s,(\\\"]{{0,300}}?(?<!\w)"


def as_argument(name: str) -> re.Pattern[str]:
    """A name (group `name`) that is all of a string that a call takes, as `getDeclaredMethod("run")`: in a line."""
    return re.compile(rf"(?:^|[(,])\s*(?P<quote>[\"'])(?P<name>{re.escape(name)})(?P=quote)(?=\s*[,)])")
