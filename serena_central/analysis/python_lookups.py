"""What code of Python looks up by a name that it does not write: symbols of its own module (`globals()[name]`, `eval`),
of another one (`getattr(handlers, name)`, `vars(handlers)`), and members of a class (`getattr(self, name)`).

By the text: a language server lists what names a symbol. Names that begin or end with a text are known to
`composed_names`, whole ones in strings to `loaded_by_name`.
"""

import re
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from serena_central.analysis.python_imports import import_statements, imports
from serena_central.analysis.word_index import imported_as
from serena_central.core.errors import PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Text
from serena_central.projects.navigation.same_hierarchy import SameHierarchy, type_of
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE
from serena_central.symbols.syntax.lexical import Tokens, kinds, tokens

MOST_READ = 100
"""Files that are looked into for the name of one module or class."""

_COMPUTED = r"""(?![^\n)\],]{0,200}["'])\s*[^\s)]"""
"""An argument or a key that is not written as a text."""

_OWN_MODULE = (
    r"(?:sys\.modules(?:\[__name__\]|\.get\(__name__\))|(?:(?:importlib\.)?import_module|__import__)\(__name__\))"
)
_NAMES_LOOKED_UP = rf"\s*(?:\[{_COMPUTED}|\.\s*(?:get\({_COMPUTED}|items\(|values\(|copy\())"
_IS_SET = r"\s*\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]\s*=(?!=)"
_OF_OWN_MODULE = re.compile(
    rf"(?:\bglobals\(\)|\.(?:f_globals|__globals__)\b)(?!{_IS_SET}){_NAMES_LOOKED_UP}|\b(?:vars|dir)\(\)"
)
_OF_PLACE = re.compile(rf"\blocals\(\)(?!{_IS_SET}){_NAMES_LOOKED_UP}")
_HANDED_ON = re.compile(rf"(?:\bglobals\(\)|\b{_OWN_MODULE})(?!\s*(?:[\[.(=]|,\s*locals\(\)))")
"""With `locals()` to `__import__`, which reads the package's name alone."""

_ASKED = re.compile(r"(?:\bin\s*\(*|\b__import__\([^()]*,|\b(?:del|get|has|set)attr\()\s*\Z")
"""Before the own module or its names, where they are not handed on but asked for one name."""

_NAMED_SO = re.compile(r"^[^\S\n]*\w+\s*(?::[^=\n]*)?=\s*\Z", re.MULTILINE)
"""Before the own module, where it gets another name, which is looked for as well."""

_OWN_MODULE_CALLED = re.compile(rf"\b(\w+)\s*(?::[^=\n]{{0,200}})?=\s*{_OWN_MODULE}")
_BEFORE = 200
"""Characters before a place that are looked at."""

_EVALUATED = re.compile(rf"(?:(?<![\w.])|\b(?:__builtins__|builtins)\.)(?:eval|exec)\({_COMPUTED}")
_EVALUATOR_HANDED_ON = re.compile(
    r"(?<!\bdef )\b\w+\(\s*(?:eval|exec)\s*[,)]|=[^\S\n]*(?:eval|exec)[^\S\n]*(?:#|$)", re.MULTILINE
)
_OWN_EVALUATOR = re.compile(
    r"\b(?:as|def|for|import)\s+(?:eval|exec)\b|(?<![\w.])(?:eval|exec)\s*(?:[,:][^=\n]{0,100})?=(?!=)"
)
"""Where a file calls something else so."""

_BRACKET_OR_COMMA = re.compile(r"[()\[\]{},]")
_SEES_OWN_NAMES = re.compile(
    r"\s*(?:$|\*|(?:locals|closure)\s*=)|.*\b(?:(?:globals|locals|vars)\(|(?:None|__globals__|__main__|f_globals)\b)",
    re.DOTALL,
)
"""What stands for the namespace of what is evaluated, if it may be that of the place, or of code that calls it."""

_NAMED = re.compile(r"\s*(?:globals\s*=\s*)?(\w+)\s*")

MOST_EVALUATED, MOST_ARGUMENT_CHARS = 100, 2000
"""Calls of a file that are looked at, and how far each is: what is not may see the names."""

_OBJECT = re.compile(r"self|cls|type\(self\)|self\.__class__|super\(\)")

_LOOKUPS = ("getattr", "dir", "vars", "getmembers", "getmembers_static", "__dict__")
"""Words of which one stands in each lookup of another module's symbols, or a class's members."""

_HOLDER = r"(?=\s*+((?:[^,()]|\([^()]*\))*+)"
"""What members are looked up of, whatever that is."""

_LOOKED_UP = {
    word: re.compile(rf"{word}(?<!\w{word}){behind})")
    for word, behind in (
        ("getattr", rf"\({_HOLDER},{_COMPUTED}"),
        ("dir", rf"\({_HOLDER}\)"),
        ("getmembers", rf"\w*\({_HOLDER}[,)]"),
        ("vars", rf"\({_HOLDER}\)"),
    )
}
"""By the words that they begin with, which are found in no time."""

_OF_DICT = re.compile(r"\.__dict__\b")
_BEFORE_DICT = re.compile(r"(?<![\w.])((?:\w+\.)*\w+(?:\([^()]*\)|\[__name__\])?)\Z")

_AS = re.compile(r"(?<!\w)(\w+)\s+as\s+(\w+)")


_Counts = Callable[[str, Tokens | None, int], bool]
"""Whether a place in a text, of which these are the tokens, is such a lookup."""


class _Lookup(NamedTuple):
    """A place in a text where members are looked up of something, by a computed name."""

    start: int
    word: str
    holder: str


class _File(NamedTuple):
    """What a file of Python looks up, and what it calls modules otherwise than they are called: name → other names."""

    lookups: list[_Lookup]
    aliases: dict[str, set[str]]

    def looks_up(self, holder: re.Pattern[str]) -> bool:
        """Whether there are lookups of what is called so, comments included."""
        return any(holder.fullmatch(one.holder) for one in self.lookups)


class PythonLookups:
    """Knows such things of one project, and remembers what it looked up. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[tuple[str, int], str | None] = {}
        """File, and place of a class in it or -1 → where its members may be looked up."""
        self._looking: list[str] | None = None
        self._files: dict[str, _File] = {}

    async def reason(self, hit: Hit, text: Text, hierarchy: SameHierarchy) -> str | None:
        """Why a symbol may be in use, as a clause."""
        own = type_of(hit)
        if own is not None:
            found = await self._once((hit.path, own.place), self._of_class(own, hierarchy))
            if found is None and hit.symbol.kind not in CALLABLE:
                found = _looked_up(hit.path, text, _OBJECT, ("vars", "__dict__"), own)
        elif hit.symbol.container < 0:
            found = await self._once((hit.path, -1), self._of_module(hit.path, text))
        else:
            return None
        if found:
            of_what = f"members of {own.symbol.name}" if own else "symbols of its module"
            return f"{found} looks up {of_what} by a computed name"
        return None

    async def _once(self, key: tuple[str, int], places: AsyncIterator[str]) -> str | None:
        if key not in self._known:
            self._known[key] = await anext(places, None)
        return self._known[key]

    async def _of_module(self, path: str, text: Text) -> AsyncIterator[str]:
        called = "|".join({_OWN_MODULE, *(re.escape(name) for name in _OWN_MODULE_CALLED.findall(text.content))})
        lookups: list[tuple[re.Pattern[str], _Counts | None]] = [
            (_OF_OWN_MODULE, None),
            (_HANDED_ON, _is_handed_on),
            (_OF_PLACE, _is_at_top),
            (_EVALUATED, _sees_own_names),
        ]
        if not _OWN_EVALUATOR.search(text.content):
            lookups.append((_EVALUATOR_HANDED_ON, None))
        if found := _looked_up(path, text, re.compile(called)):
            yield found
        for pattern, counts in lookups:
            starts = [one.start() for one in pattern.finditer(text.content)]
            if found := _first_that_counts(path, text, starts, counts):
                yield found
        word = imported_as(path)
        async for other, file in self._holding(word):
            called = re.compile(_module_called({word, *file.aliases.get(word, ())}))
            if other == path or not file.looks_up(called):
                continue
            with suppress(PathError):
                its = (await self._project.read(other)).text
                statements = import_statements(its.content.encode("utf-8", "replace"))
                importing = [one for one in statements if imports(other, [one], path)]
                aliases = [pair for one in importing for pair in _AS.findall(one.decode("utf-8", "replace"))]
                called = re.compile(_module_called({word, *(alias for name, alias in aliases if name == word)}))
                if importing and (found := _looked_up(other, its, called)):
                    yield found

    async def _of_class(self, own: Hit, hierarchy: SameHierarchy) -> AsyncIterator[str]:
        for one in (own, *await hierarchy.types_above(own)):
            with suppress(PathError):
                text = (await self._project.read(one.path)).text
                if found := _looked_up(one.path, text, _OBJECT, ("getattr", "dir", "getmembers"), one):
                    yield found
        named = re.compile(rf"(?:\w+\.)*{re.escape(own.symbol.name)}(?:\([^()]*\))?")
        async for path, file in self._holding(own.symbol.name):
            if not file.looks_up(named):
                continue
            with suppress(PathError):
                if found := _looked_up(path, (await self._project.read(path)).text, named):
                    yield found

    async def _holding(self, name: str) -> AsyncIterator[tuple[str, _File]]:
        """Files of Python that hold a name, and look something up."""
        holding = self._project.navigation.possible.holding
        if self._looking is None:
            languages, files = self._project.languages, list(self._project.tree.files)
            python = [path async for path in paced(files) if languages.language_of(path) == "python"]
            self._looking = list(dict.fromkeys([path for word in _LOOKUPS for path in await holding(python, word)]))
        for path in (await holding(self._looking, name))[:MOST_READ]:
            with suppress(PathError):
                if path not in self._files:
                    self._files[path] = _file_of((await self._project.read(path)).text.content)
                yield path, self._files[path]


def _file_of(content: str) -> _File:
    aliases = defaultdict[str, set[str]](set)
    for name, alias in _AS.findall(content):
        aliases[name].add(alias)
    return _File(_lookups_in(content), aliases)


def _lookups_in(content: str, first: int = 0, last: int = sys.maxsize) -> list[_Lookup]:
    """Those of a text, or of a part of it, in their order."""
    found = [
        _Lookup(one.start(), word, one[1].strip())
        for word, pattern in _LOOKED_UP.items()
        if word in content
        for one in pattern.finditer(content, first, last)
    ]
    found += [
        _Lookup(one.start(), "__dict__", before[1])
        for one in (_OF_DICT.finditer(content, first, last) if "__dict__" in content else ())
        if (before := _BEFORE_DICT.search(content[max(one.start() - _BEFORE, 0) : one.start()]))
    ]
    return sorted(found)


def _looked_up(
    path: str, text: Text, holder: re.Pattern[str], words: Collection[str] = _LOOKUPS, within: Hit | None = None
) -> str | None:
    """The first place where members are looked up of something that is called so, by some ways, in a symbol's range if
    one is given."""
    span = (text.offset(within.symbol.range.start), text.offset(within.symbol.range.end)) if within else ()
    lookups = [one for one in _lookups_in(text.content, *span) if one.word in words and holder.fullmatch(one.holder)]
    return _first_that_counts(path, text, [one.start for one in lookups])


def _module_called(names: Iterable[str]) -> str:
    either = "|".join(map(re.escape, sorted(names)))
    return rf"(?:(?:\w+\.)*(?:{either})|(?:importlib\.)?import_module\([^()]*\))"


def _first_that_counts(path: str, text: Text, starts: Sequence[int], counts: _Counts | None = None) -> str | None:
    """The first of some places that is code and counts, as `path:line`."""
    if not starts:
        return None
    taken_apart, looked_at = tokens("python", text.content), 0
    for start, kind in zip(starts, kinds(text.content, taken_apart, starts), strict=True):
        if kind not in ("code", None):
            continue
        looked_at += 1
        if counts is None or looked_at > MOST_EVALUATED or counts(text.content, taken_apart, start):
            return f"{path}:{text.position(start).line0}"
    return None


def _is_handed_on(content: str, taken_apart: Tokens | None, start: int) -> bool:
    before = content[max(start - _BEFORE, 0) : start]
    return not _ASKED.search(before) and (content.startswith("globals", start) or not _NAMED_SO.search(before))


def _is_at_top(content: str, taken_apart: Tokens | None, start: int) -> bool:
    """Whether a line is that of a module's own code: what is indented may be a function's."""
    return not content[content.rfind("\n", 0, start) + 1].isspace()


def _sees_own_names(content: str, taken_apart: Tokens | None, start: int) -> bool:
    """Whether what an `eval` or `exec` evaluates may see the names of the module: it is given no others."""
    depth, ends = 0, list[int]()
    for mark in _BRACKET_OR_COMMA.finditer(content, start, start + MOST_ARGUMENT_CHARS):
        (kind,) = kinds(content, taken_apart, [mark.start()])
        if kind is None:
            return True
        if kind != "code":
            continue
        depth += mark[0] in "([{"
        depth -= mark[0] in ")]}"
        if depth == 0 or (depth == 1 and mark[0] == ","):
            ends.append(mark.start())
            if depth == 0 or len(ends) == 2:
                return len(ends) < 2 or _may_be_own(content[ends[0] + 1 : ends[1]], content)
    return True


def _may_be_own(namespace: str, content: str) -> bool:
    """Whether an argument may be the names of the module, which None stands for."""
    if _SEES_OWN_NAMES.match(namespace):
        return True
    named = _NAMED.fullmatch(namespace)
    return bool(named and re.search(rf"\b{named[1]}\s*(?::[^=\n]{{0,200}})?=\s*None\b", content))
