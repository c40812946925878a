"""What code of Python looks up by a name that it does not write: symbols of its own module (`globals()[name]`, `eval`),
of another one (`getattr(handlers, name)`, `vars(handlers)`), and members of a class (`getattr(self, name)`).

By the text: a language server lists what names a symbol. Names that begin or end with a text are known to
`composed_names`, whole ones in strings to `loaded_by_name`.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress

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

_OBJECT = r"(?:self|cls|type\(self\)|self\.__class__|super\(\))"

_LOOKUPS = ("getattr", "dir", "vars", "getmembers", "getmembers_static", "__dict__")
"""Words of which one stands in each lookup of another module's symbols, or a class's members."""

_AS = re.compile(r"(?<!\w)(\w+)\s+as\s+(\w+)")


_Counts = Callable[[str, Tokens | None, int], bool]
"""Whether a place in a text, of which these are the tokens, is such a lookup."""


class PythonLookups:
    """Knows such things of one project, and remembers what it looked up. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[tuple[str, int], str | None] = {}
        """File, and place of a class in it or -1 → where its members may be looked up."""
        self._looking: list[str] | None = None

    async def reason(self, hit: Hit, text: Text, hierarchy: SameHierarchy) -> str | None:
        """Why a symbol may be in use, as a clause."""
        own = type_of(hit)
        if own is not None:
            found = await self._once((hit.path, own.place), self._of_class(own, hierarchy))
            if found is None and hit.symbol.kind not in CALLABLE:
                found = _place(hit.path, text, own, rf"\bvars\({_OBJECT}\)|(?<![\w.]){_OBJECT}\.__dict__\b")
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
            (_looked_up(rf"(?:{called})"), None),
            (_HANDED_ON, _is_handed_on),
            (_OF_PLACE, _is_at_top),
            (_EVALUATED, _sees_own_names),
        ]
        if not _OWN_EVALUATOR.search(text.content):
            lookups.append((_EVALUATOR_HANDED_ON, None))
        for pattern, counts in lookups:
            if found := _place(path, text, None, pattern, counts):
                yield found
        word = imported_as(path)
        async for other, its in self._holding(word):
            statements = import_statements(its.content.encode("utf-8", "replace"))
            importing = [one for one in statements if other != path and imports(other, [one], path)]
            aliases = [pair for one in importing for pair in _AS.findall(one.decode("utf-8", "replace"))]
            names = {word, *(alias for name, alias in aliases if name == word)}
            if importing and (found := _place(other, its, None, _looked_up(_module_called(names)))):
                yield found

    async def _of_class(self, own: Hit, hierarchy: SameHierarchy) -> AsyncIterator[str]:
        for one in (own, *await hierarchy.types_above(own)):
            with suppress(PathError):
                text = (await self._project.read(one.path)).text
                if found := _place(one.path, text, one, _looked_up(_OBJECT)):
                    yield found
        named = _looked_up(rf"(?:\w+\.)*{re.escape(own.symbol.name)}(?:\([^()]*\))?")
        async for path, text in self._holding(own.symbol.name):
            if found := _place(path, text, None, named):
                yield found

    async def _holding(self, name: str) -> AsyncIterator[tuple[str, Text]]:
        """Files of Python that hold a name, and look something up, with their texts."""
        holding = self._project.navigation.possible.holding
        if self._looking is None:
            languages, files = self._project.languages, list(self._project.tree.files)
            python = [path async for path in paced(files) if languages.language_of(path) == "python"]
            self._looking = list(dict.fromkeys([path for word in _LOOKUPS for path in await holding(python, word)]))
        for path in (await holding(self._looking, name))[:MOST_READ]:
            with suppress(PathError):
                yield path, (await self._project.read(path)).text


def _looked_up(holder: str) -> re.Pattern[str]:
    """Where members of something are looked up, which an expression matches."""
    return re.compile(
        rf"\bgetattr\(\s*{holder}\s*,{_COMPUTED}|\bdir\(\s*{holder}\s*\)|\bgetmembers\w*\(\s*{holder}\s*[,)]"
        + ("" if holder == _OBJECT else rf"|\bvars\(\s*{holder}\s*\)|(?<![\w.]){holder}\.__dict__\b")
    )


def _module_called(names: Iterable[str]) -> str:
    either = "|".join(map(re.escape, sorted(names)))
    return rf"(?:(?:\w+\.)*(?:{either})|(?:importlib\.)?import_module\([^()]*\))"


def _place(
    path: str,
    text: Text,
    within: Hit | None,
    pattern: re.Pattern[str] | str,
    counts: _Counts | None = None,
) -> str | None:
    """The first place where a pattern matches in code and that counts, in a symbol's range if one is given, as
    `path:line`."""
    span = (text.offset(within.symbol.range.start), text.offset(within.symbol.range.end)) if within else ()
    starts = [one.start() for one in re.compile(pattern).finditer(text.content, *span)]
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
