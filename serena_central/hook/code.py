"""Whether a search is one for code, and which names of symbols its pattern holds. Pure; the server has the last word on
languages.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from serena_central.hook.search import Search, compiled


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SOURCE_FOLDERS = ("src", "lib", "pkg", "cmd", "components")

ENDINGS = _words("""
    py pyi pyw js jsx mjs cjs ts tsx mts cts go rs java kt kts scala c h cc cpp cxx hpp hh hxx ipp m mm cu cs
    fs fsx vb rb php swift lua pl pm r jl ex exs erl hrl hs lhs ml mli clj cljs cljc dart zig vue svelte
    astro sh bash elm groovy nim sol tf f90 f95 f03 v sv vhd adb ads pas cr gleam odin
""")
"""Of files with code, in lower case."""

_NO_CODE = _words("""
    json md txt rst yml yaml toml lock log cfg conf ini env xml csv sql html css svg png com org net io dev e
    g
""")
"""What stands behind a dot in names of files and hosts."""

_KEYWORDS = (
    "class interface struct enum trait impl protocol module namespace def func fn fun function sub const type export "
    "static public private protected abstract async default pub mut override"
).replace(" ", "|")
_ENGLISH = _words("""
    a an and any are as for from has in is not no of on or the this to was with
""")
NOISE = (
    _ENGLISH | frozenset(_KEYWORDS.split("|")) | _words("import require use include return extends implements var let")
)
"""Words that occur in all code, and thus say nothing about a search."""

_DECLARED = re.compile(
    rf"(?:(?:{_KEYWORDS}) +)+(?:\([^)]*\) *)?(?P<before>\*?)(?P<name>[A-Za-z_$][\w$]*)?(?P<after>\*?)"
    r" *(?:$|[*({<:=;\[,].*|(?:extends|implements|for|where|from|as|struct|interface)\b.*)"
)
"""In a plain text: keywords, a Go method's receiver, and a name, of which a part may be left open."""
_IMPORTS = re.compile(r"(?:from +[\w.*]+ +)?import\b|#include\b|require *\(|use +\w+::|export +[{*]")
_MENTIONED = re.compile(r"(?P<name>[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*)(?P<called> *[(<].*)?")
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|^[A-Z][a-z]\w\w*$|\w_\w|^_+[a-z]")
"""Humps, a capital at the beginning alone, or an underscore: no word of English."""

_SPACES = re.compile(r"(?:\\s|\[\[:(?:space|blank):\]\]|\[ ?\\[st]\\?t?\]| )[*+?]?")
_ANYTHING = re.compile(r"(?:\.|\\[wS]|\[[^\]]*\])(?:[*+]\??|\{[^}]*\})")
_EDGES = re.compile(r"\\[bB<>]|[\^$]|\(\?:|\(\?i\)")
_ESCAPED = re.compile(r"\\(.)")

LONGEST_PATTERN = 1000
"""Characters. Nothing is read off a longer one."""

MOST_NAMES = 3

_FILLER = "Zz9"
"""Put before or behind a name, it makes another one."""

_NO_CASE = re.compile(r"\(\?[a-zA-Z]*i")


class Name(NamedTuple):
    """A symbol that a pattern speaks of. `part`: of its name, only this is known."""

    path: str
    part: bool = False
    declared: bool = False
    """Whether the pattern looks for where it is defined, and not for any mention."""


def reason_of(search: Search, folders: Sequence[str] = SOURCE_FOLDERS) -> str | None:
    """The reason why this is a search for code; None if it is not."""
    kinds = [search.pattern, *search.globs] if search.by_name else [*search.globs]
    if any(is_code(name) for name in [*kinds, *search.paths]):
        return "it is limited to code files"
    if any(has_folder(path, folders) for path in search.paths) and not _only_other_files(kinds):
        return "it searches a source folder"
    if not search.by_name and (names_in(search.pattern) or is_import(search.pattern)) and not _only_other_files(kinds):
        return "its pattern looks like code"
    return None


def is_code(name: str) -> bool:
    """Whether a file name, a path or a glob ends as files of code do."""
    return any(ending in ENDINGS for ending in _endings(name))


def has_folder(path: str, folders: Sequence[str]) -> bool:
    parts = path.replace("\\", "/").split("/")
    return any(folder in parts for folder in folders)


def _only_other_files(names: Sequence[str]) -> bool:
    """Whether it is limited to files with an ending, none of which is code's."""
    return any(_endings(name) for name in names)


def _endings(name: str) -> list[str]:
    """`*.{ts,tsx}` → ts, tsx; `src/a.py` → py."""
    base = name.rpartition("/")[2]
    stem, dot, ending = base.rpartition(".")
    if not dot or (not stem and not ending):
        return []
    return [one.strip("*?$").lower() for one in ending.strip("{}").split(",") if one.strip("*?$")]


def names_in(pattern: str) -> list[Name]:
    """The symbols that a regular expression is about, as far as they can be read off it; none for plain words."""
    if len(pattern) > LONGEST_PATTERN:
        return []
    found: dict[str, Name] = {}
    for part in _alternatives(pattern):
        read = _read(_plain(part))
        if read is not None:
            found.setdefault(read.name.path, read.name)
    return list(found.values())[:MOST_NAMES]


def symbols_in(pattern: str) -> list[Name]:
    """The symbols to be found instead of a pattern: every definition that it would find is one of these, or has one as
    a part of its name. None where that can't be told, or there are too many."""
    if len(pattern) > LONGEST_PATTERN or _NO_CASE.search(pattern):
        return []
    found: dict[str, Name] = {}
    for part in _alternatives(pattern):
        for name in _names_of(part):
            known = found.get(name.path, name)
            found[name.path] = known._replace(part=known.part or name.part)
        if not found or _read(_plain(part)) is None:
            return []
    return list(found.values()) if len(found) <= MOST_NAMES else []


def _names_of(part: str) -> list[Name]:
    """What one alternative is about. Whether it may be part of a longer name is tried out: there a shell's `Foo` and
    `Foo\\b` differ."""
    text = _plain(part)
    read = _read(text)
    if read is None:
        return []
    pattern = compiled(part)
    if pattern is None:
        return [read.name._replace(part=True)]

    def goes_on(at: int) -> bool:
        return pattern.search(f"{text[:at]}{_FILLER}{text[at:]}") is not None

    if pattern.search(text) is None or goes_on(read.end) or goes_on(read.start):
        named = read.name._replace(part=True)
    else:
        named = read.name
    container, slash, last = named.path.rpartition("/")
    if slash and (named.part or goes_on(text.index(container))):
        return [named, Name(last, part=True, declared=named.declared)]
    return [named]


def is_import(pattern: str) -> bool:
    return len(pattern) <= LONGEST_PATTERN and _IMPORTS.match(_plain(pattern)) is not None


def _plain(part: str) -> str:
    """A regular expression as the text that it describes, with `*` for what it leaves open."""
    text = _SPACES.sub(" ", part)
    text = _EDGES.sub("", _ANYTHING.sub("*", text))
    return _ESCAPED.sub(r"\1", text).strip()


class _Read(NamedTuple):
    """A name, and where its last step stands in a text."""

    name: Name
    start: int
    end: int


def _read(text: str) -> _Read | None:
    declared = _DECLARED.fullmatch(text)
    if declared is not None and declared["name"] and declared["name"] not in _ENGLISH:
        name = declared["name"]
        is_part = bool(declared["before"] or declared["after"]) or name.endswith("_")
        return _Read(Name(name, part=is_part, declared=True), *declared.span("name"))
    mentioned = _MENTIONED.fullmatch(text)
    if mentioned is None:
        return None
    steps = re.split(r"\.|::|#|->", mentioned["name"])
    if len(steps) == 1 and not mentioned["called"] and not _IDENTIFIER.search(steps[0]):
        return None
    if len(steps) > 1 and steps[-1].lower() in _NO_CODE | ENDINGS:
        return None
    in_type = len(steps) > 1 and steps[-2][:1].isupper()  # what stands before a dot is else a variable's name
    end = mentioned.end("name")
    return _Read(Name("/".join(steps[-2:]) if in_type else steps[-1]), end - len(steps[-1]), end)


def _alternatives(pattern: str) -> list[str]:
    """`a|b` → a, b; `class (A|B)` → class A, class B; no deeper."""
    whole = re.fullmatch(
        r"(?P<before>(?:\\.|[^()|\\])*)\((?:\?:)?(?P<inner>[^()]*)\)(?P<after>(?:\\.|[^()|\\])*)", pattern
    )
    if whole and "|" in whole["inner"]:
        return [f"{whole['before']}{one}{whole['after']}" for one in whole["inner"].split("|") if one]
    parts = re.split(r"(?<!\\)\|", pattern)
    return [part for part in parts if part.strip()]
