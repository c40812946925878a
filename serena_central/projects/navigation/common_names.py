"""What a name alone may mean. Where the receiver's type is unknown, most places with the name of a built-in type's
member mean that; in strings and files of other languages an everyday word means a symbol behind its module or type, in
the braces of a template, or as all that a call is given."""

import re
from collections.abc import Callable, Iterator, Mapping
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

_JOINS = frozenset(".:#/$·")
"""What joins a name with that of its module or type."""

_BEFORE = 500
"""Characters before a name in which its module or type may stand."""


def is_common(language: str | None, name: str) -> bool:
    """Whether built-in types of a language have a member of that name."""
    return name in _MEMBERS.get(language or "", ())


def is_unusual(name: str) -> bool:
    """Whether a string with this name in it means the symbol, rather than an everyday word."""
    bare = name.removeprefix("$")
    everyday = bare.isalpha() and (bare.islower() or bare.istitle())
    return len(bare) >= 4 and not everyday


class BehindHolder:
    """The name of a symbol behind that of its module (a package's is its folder's) or type, or behind the dot of Go's
    assembly (`CALL ·start(SB)`); of a member also behind any value in the braces of a template: `{{ page.title }}`,
    `{{if .Title}}`, `{% if page.title %}`. Or where Python imports it from its module, in a notebook's strings, too.

    What stands before is looked at where the name is found: an expression that begins with it takes a hundred times as
    long in a text.
    """

    def __init__(self, hit: Hit) -> None:
        holders = _holders(hit)
        in_template = r"|\{[{%][^{}]*\." if "/" in hit.name_path else ""
        self._name = re.compile(rf"{re.escape(hit.symbol.name)}(?!\w)")
        self._qualified = re.compile(rf"(?:(?<!\w)(?:{holders})\s*(?:[.:#/$]|::)\s*|·{in_template})\Z")
        self._imported = re.compile(
            rf"(?<!\w)from\s+[\w.]*(?<!\w)(?:{holders})\s+import\b[\w\s,(\\\"]{{0,300}}?(?<!\w)\Z"
        )

    def ends(self, text: str) -> Iterator[int]:
        """Where the name ends in such places."""
        for found in self._name.finditer(text):
            at, first = found.start(), max(found.start() - _BEFORE, 0)
            if text[first:at].rstrip()[-1:] in _JOINS:
                is_meant = self._qualified.search(text, first, at)
            else:
                is_meant = text.find("import", first, at) >= 0 and self._imported.search(text, first, at)
            if is_meant:
                yield found.end()

    def stands_in(self, text: str) -> bool:
        """Whether there is such a place."""
        return any(True for _ in self.ends(text))


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
    """A name (group `name`) as that of an attribute in the braces of a Python format: `"{0.title}"`."""
    return re.compile(rf"\{{\w[\w.\[\]]*\.(?P<name>{re.escape(name)})(?=[}}!:.\[])")


def _holders(hit: Hit) -> str:
    """Names of the module or type of a symbol, as alternatives; a package's is its folder's."""
    file = PurePosixPath(hit.path)
    holders = {file.name.partition(".")[0], file.parent.name}
    if hit.symbol.container >= 0:
        holders.add(hit.file.symbols[hit.symbol.container].name)
    return "|".join(re.escape(holder) for holder in sorted(holders) if holder)


def as_argument(name: str) -> re.Pattern[str]:
    """A name (group `name`) that is all of a string that a call takes, as `getDeclaredMethod("run")`: in a line."""
    return re.compile(rf"(?:^|[(,])\s*(?P<quote>[\"'])(?P<name>{re.escape(name)})(?P=quote)(?=\s*[,)])")


def as_qualified(name: str) -> re.Pattern[str]:
    r"""A name (group `name`) behind its namespace in a string of PHP: `'Shop\checkout'`, `"Shop\\Cart::pay"`."""
    named = rf"(?P<name>{re.escape(name)})(?=(?P=quote)|::|@)"
    return re.compile(r"(?P<quote>[\"'])\\{0,2}\w[\w\\]{0,300}?\\{1,2}" + named)


_RUN_BY = (
    r"(?<![\w.\-])(?:trap|eval|alias|bind|complete|watch|xargs|ssh|sudo|su|timeout|(?:ba|da|k|z)?sh[ \t]+-\w*c)"
    r"(?![\w.=\-])|(?:COMMAND|CMD)(?==)"
)
"""What runs, in a shell, the string that follows it."""


def as_command(name: str) -> re.Pattern[str]:
    """A name (group `name`) where a command begins in a string that a shell runs: `trap 'cleanup 1' EXIT`."""
    before = rf"(?:{_RUN_BY})[^\"'\n]{{0,60}}[\"'](?:[^\"'\n]{{0,60}}[;&|({{])?[ \t]*"
    return re.compile(rf"{before}(?P<name>{re.escape(name)})(?=[\s;&|)}}\"'])")
