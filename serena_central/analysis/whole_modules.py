"""What code of JavaScript and TypeScript looks up by a name that it does not write: exports of a module that it uses as
a value (`import * as handlers`, then `handlers[name]()` or `Object.keys(handlers)`), and members of an object, an
enumeration, a class or `this` (`this[name]()`).

By the text: a language server lists what names a module, but not what is done with it.
"""

import posixpath
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from serena_central.analysis.framework_files import ENDING, exported
from serena_central.analysis.word_index import imported_as
from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

MOST_READ = 200
"""Files that are looked into for imports of one module."""

LONGEST = 300_000
"""Characters of such a file: a longer one is a bundle, which imports nothing of the project."""

MOST_MODULES = 20
"""Modules that hand on what another one exports, and are looked for in turn."""

_SCRIPTS = (".astro", ".cjs", ".cts", ".js", ".jsx", ".mjs", ".mts", ".svelte", ".ts", ".tsx", ".vue")

_MODULE = r"""\s*["'](?P<module>[^"'\n]+)["']"""

_NAMED = (
    re.compile(rf"\bimport\s+(?:[\w$]+\s*,\s*)?\*\s*as\s+(?P<name>[\w$]+)\s+from{_MODULE}"),
    re.compile(
        rf"\b(?:const|let|var|import)\s+(?P<name>[\w$]+)\s*(?::[^=\n]{{1,200}})?=\s*(?:await\s+)?"
        rf"(?:import|require)\s*\({_MODULE}\s*\)(?!\s*[.\[])"
    ),
    re.compile(rf"\bimport\s*\({_MODULE}\s*\)\s*\.\s*then\s*\(\s*+(?:async\s++)?\(?\s*+(?P<name>[\w$]++)\s*+\)?\s*+=>"),
)
"""Where a module gets a name. Blanks are matched possessively, and what ends somewhere in the line is bounded: else a
text can be made that takes one of these expressions minutes, in which no other thread runs."""

_IMPORT = re.compile(r"\bimport\b(?:(?!\bimport\b)[^;'\"])*\bfrom\b")

_HANDED_ON = re.compile(rf"\bexport\s*\*\s*(?:as\s+(?P<name>[\w$]+)\s+)?from{_MODULE}")

_AWAITED = re.compile(rf"(?<!=)(?<!= )\bawait\s+import\s*\({_MODULE}\s*\)(?!\s*+\)?\s*+[.\[])")
_LOADED = re.compile(rf"(?<!await)(?<!await )\bimport\s*\({_MODULE}\s*\)(?!\s*\.)")
"""Where it has none: all of it, or as a rule its default export (`lazy(() => import("./page"))`)."""

_BY_PATH = re.compile(
    r"""(?:\bimport|\brequire|\.glob\w*)\s*\(\s*+\[?\s*+["'`](?P<module>[^"'`$*\n]+)(?:\$\{|\*|["'`]\s*\+)"""
    r"""|\brequire\.context\(\s*["'`](?P<folder>[^"'`\n]+)"""
)
"""Where modules are loaded whose paths begin in this way."""

_NOT_WRITTEN = r"""(?:\s++as\s++[^()\n]{1,200}+\))?\s*+!?\s*+(?:\?\.)?\s*+\[\s*+(?![\d\]]|[^\]\n]{0,200}["'`])"""
"""Behind an object: a member that is computed. `composed_names` knows those that begin or end with a text."""

_ALL_OF = re.compile(r"(?:\bObject\s*\.\s*(?:keys|values|entries)\s*\(|\b(?:in|of)\s)\s*\Z")
"""Before an object of which all members are used."""

_ALL_OF_ENUM = re.compile(rf"{_ALL_OF.pattern}|(?:(?<!\bfunction)[\w$]\(|\benum\s*:)\s*\Z")
"""Likewise of an enumeration, which is a value only where its members are asked for: `z.nativeEnum(Color)`."""

_THIS = re.compile(rf"(?<![\w$.])this{_NOT_WRITTEN}")


_AS_VALUE = "{} uses its module as a value, and may look it up by its name"


class _Module(NamedTuple):
    """Who may use the exports of a module without their names, and who the default one, as clauses."""

    whole: str | None = None
    default: str | None = None


class WholeModules:
    """Knows such things of one project, and remembers what it looked up. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, _Module] = {}
        self._members: dict[tuple[str, int], str | None] = {}
        self._scripts: list[str] | None = None

    async def reason(self, hit: Hit, text: Text) -> str | None:
        """Why a symbol may be looked up by its name, as a clause."""
        if hit.symbol.container >= 0:
            holder = Hit(hit.path, hit.file, hit.symbol.container)
            if hit.symbol.name.startswith("#") or not re.fullmatch(r"[\w$]+", holder.symbol.name):
                return None
            if (hit.path, holder.place) not in self._members:
                self._members[hit.path, holder.place] = await self._looked_up(holder, text)
            return self._members[hit.path, holder.place]
        found = exported(hit, text)
        if found is None:
            return None
        if hit.path not in self._known:
            self._known[hit.path] = await self._find(hit.path)
        module = self._known[hit.path]
        return module.whole or (module.default if found.is_default else None)

    async def _looked_up(self, holder: Hit, text: Text) -> str | None:
        """Where members of a class, an enumeration or an object are looked up, as a clause."""
        name, is_enum = holder.symbol.name, holder.symbol.kind == SymbolKind.ENUM
        if holder.symbol.kind == SymbolKind.INTERFACE:
            return None
        start, end = (text.offset(at) for at in (holder.symbol.range.start, holder.symbol.range.end))
        if not is_enum and (found := _THIS.search(text.content, start, end)):
            return f"{holder.path}:{text.position(found.start()).line0} looks up members of {name} by a computed name"
        word = re.escape(name)
        used = re.compile(rf"{word}(?<![\w$.]{word})(?:{_NOT_WRITTEN}|(?P<all>\s*[),}}]))")
        whole = _ALL_OF_ENUM if is_enum else _ALL_OF
        async for path, its in self._holding(name):
            for found in used.finditer(its.content):
                if found["all"] is None or whole.search(its.content, max(found.start() - 60, 0), found.start()):
                    return f"{path}:{its.position(found.start()).line0} looks up members of {name} by a computed name"
        return None

    async def _find(self, module: str) -> _Module:
        if place := await self._loaded_by_path(module):
            return _Module(f"{place} loads modules by paths that it composes, and may load its own")
        modules, default = [module], None
        for path in modules:
            async for importer, text in self._holding(imported_as(path)):
                means = partial(_means, importer=importer, path=path)
                if (line0 := await self._value_in(importer, text, means)) is not None:
                    return _Module(_AS_VALUE.format(f"{importer}:{line0}"))
                if path == module and default is None and (found := next(_which(_LOADED, text, means), None)):
                    line0 = text.position(found.start()).line0
                    default = f"{importer}:{line0} loads its module, and may use the default export"
                for found in _which(_HANDED_ON, text, means):
                    if found["name"] and (place := await self._value_beyond(importer, found["name"])):
                        return _Module(_AS_VALUE.format(place))
                    if not found["name"] and importer not in modules and len(modules) < MOST_MODULES:
                        modules.append(importer)
        return _Module(default=default)

    async def _loaded_by_path(self, module: str) -> str | None:
        """Where modules are loaded by paths that are composed, of which one may be that of a file, as `path:line`."""
        folder = posixpath.dirname(module)
        async for path, text in self._holding(posixpath.basename(folder), folder):
            for found in _BY_PATH.finditer(text.content):
                if path != module and _begins(found["module"] or f"{found['folder']}/", importer=path, path=module):
                    return f"{path}:{text.position(found.start()).line0}"
        return None

    async def _value_in(self, importer: str, text: Text, means: Callable[[str], bool]) -> int | None:
        """The line in which a file uses a module as a value."""
        if found := next(_which(_AWAITED, text, means), None):
            return text.position(found.start()).line0
        for found in (one for pattern in _NAMED for one in _which(pattern, text, means)):
            if (line0 := await self._used_as_value(importer, text, found["name"], behind=found.end())) is not None:
                return line0
        return None

    async def _value_beyond(self, importer: str, name: str) -> str | None:
        """Where other files use a module as a value that a file exports under a name, as `path:line`."""
        async for path, text in self._holding(name):
            if path != importer and (line0 := await self._used_as_value(path, text, name)) is not None:
                return f"{path}:{line0}"
        return None

    async def _used_as_value(self, path: str, text: Text, name: str, behind: int = 0) -> int | None:
        """The line in which a name is used as a value: not to reach a member that is written behind it, nor in an
        import."""
        word = re.escape(name)
        used = re.compile(
            rf"(?:(?<![\w$.])|(?<=\.\.\.))(?<!typeof ){word}(?![\w$])"
            r"(?!\s*(?:\?\.|!?\.)\s*[\w#$])(?!\s*\[\s*(?P<quote>[\"'])[^\"'\n]*(?P=quote)\s*\])"
        )
        imported = [one.span() for one in _IMPORT.finditer(text.content)]
        starts = {one.start() for one in used.finditer(text.content) if one.start() != behind}
        starts = {at for at in starts if not any(first <= at < last for first, last in imported)}
        if not starts:
            return None
        try:
            found = await self._project.languages.syntax.occurrences(path, name)
        except (LanguageServerError, PathError):
            return text.position(min(starts)).line0
        places = (one.range.start for one in found if one.kind == "code")
        return next((place.line0 for place in places if text.offset(place) in starts), None)

    async def _holding(self, name: str, folder: str | None = None) -> AsyncIterator[tuple[str, Text]]:
        """Files of scripts that hold a name, or lie in a folder, with their texts."""
        if self._scripts is None:
            self._scripts = [path async for path in paced(list(self._project.tree.files)) if path.endswith(_SCRIPTS)]
        holding = (await self._project.navigation.possible.holding(self._scripts, name))[:MOST_READ] if name else []
        beside = [one for one in self._scripts if folder is not None and posixpath.dirname(one) == folder]
        for path in dict.fromkeys([*holding, *beside[:MOST_READ]]):
            with suppress(PathError):
                text = (await self._project.read(path)).text
                if len(text.content) <= LONGEST:
                    yield path, text


def _which(pattern: re.Pattern[str], text: Text, means: Callable[[str], bool]) -> Iterator[re.Match[str]]:
    return (one for one in pattern.finditer(text.content) if means(one["module"]))


def _means(module: str, *, importer: str, path: str) -> bool:
    """Whether an import of `module` in a file may mean another file."""
    bare = ENDING.sub("", path)
    names = {bare, bare.removesuffix("/index")}
    if module.startswith("."):
        return ENDING.sub("", posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))) in names
    below = ENDING.sub("", module).partition("/")[2]  # behind an alias: `@/lib/cart`, `~/cart`
    return bool(below) and any(name == below or name.endswith(f"/{below}") for name in names)


def _begins(module: str, *, importer: str, path: str) -> bool:
    """Whether the path of a file may begin as one in another file does."""
    if module.startswith("."):
        begin = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
        begin = "" if begin == "." else begin + "/" * module.endswith("/")
        return path.startswith(begin)
    below = module.partition("/")[2]  # behind an alias, or the root
    return bool(below) and f"/{below}" in f"/{path}"
