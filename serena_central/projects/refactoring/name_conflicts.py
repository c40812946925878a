"""What a new name meets where it would stand: keywords, other declarations in the same container, and code that says
it already. What it means there is not asked: a declaration objects to a rename, code is listed for whoever reads it. So
are Go's examples that keep the old name."""

import re
from collections.abc import Collection, Iterator, Mapping

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, PathError, listed
from serena_central.core.pacing import paced
from serena_central.core.text import Position, Range, Text, whole_word
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.possible_references import Possible
from serena_central.projects.refactoring.c_scopes import macros_called, may_meet
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.symbol import TYPES, FileSymbols
from serena_central.symbols.syntax.keywords import is_keyword

FILES_READ = 50
"""Changed files whose code is searched for the new name; each is parsed."""

_FOLDER_IS_PACKAGE = frozenset({"go", "java", "kotlin"})
"""Languages in which the files of one folder share their top level."""

_NAMED_RECEIVER = frozenset(
    {"go", "javascript", "javascriptreact", "lua", "python", "rust", "typescript", "typescriptreact"}
)
"""Languages in which a member is only ever named behind its receiver."""

_MEMBERS = frozenset(
    {
        SymbolKind.METHOD,
        SymbolKind.PROPERTY,
        SymbolKind.FIELD,
        SymbolKind.CONSTRUCTOR,
        SymbolKind.ENUM_MEMBER,
        SymbolKind.EVENT,
    }
)

_OF_EVERY_TYPE = {
    "csharp": {"Equals", "GetHashCode", "GetType", "ToString"},
    "java": {"clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"},
    "javascript": {"constructor", "hasOwnProperty", "toString", "valueOf"},
    "kotlin": {"equals", "hashCode", "toString"},
    "typescript": {"constructor", "hasOwnProperty", "toString", "valueOf"},
}

_JAVA_LANG = """
    Appendable ArithmeticException AssertionError AutoCloseable Boolean Byte CharSequence Character Class ClassLoader
    Cloneable Comparable Deprecated Double Enum Error Exception Float FunctionalInterface IllegalArgumentException
    IllegalStateException IndexOutOfBoundsException Integer InterruptedException Iterable Long Math Module
    NullPointerException Number Object Override Package Process ProcessBuilder Readable Record Runnable Runtime
    RuntimeException SafeVarargs Short String StringBuffer StringBuilder SuppressWarnings System Thread ThreadLocal
    Throwable UnsupportedOperationException Void
"""
_SEEN_EVERYWHERE = {"java": frozenset(_JAVA_LANG.split())}
"""Types that a type of the same name in a package hides from all code there."""

_QUALIFIED = re.compile(r"(?:\.|->|::)\s*$")


class Naming:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(
        self, tree: FileTree, index: SymbolIndex, indexer: Indexer, languages: ProjectLanguages, possible: Possible
    ) -> None:
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._languages = languages
        self._possible = possible

    async def objections(self, hit: Hit, new_name: str) -> list[str]:
        """Sentences about what forbids a symbol that name."""
        identifier, is_type = self._languages.selection.identifier(hit.path), hit.symbol.kind in TYPES
        if is_keyword(identifier, new_name, member=_is_member(hit.file, hit.place), of_type=is_type):
            return [f"{new_name} is a keyword of {self._languages.language_of(hit.path)}."]
        places = [f"{hit.path}:{one.symbol.name_line}" for one in _declared(hit.path, hit.file, hit, new_name)]
        others = await self._sharing(hit, new_name)
        await self._indexer.ensure(others)
        for path in others:
            if path in self._index:
                alike = _declared(path, self._index.file(path), hit, new_name)
                places += [f"{path}:{one.symbol.name_line}" for one in alike if await self._may_meet(hit, one)]
        container = hit.name_path.rpartition("/")[0] or "the same scope"
        found = [f"{container} already declares {new_name}: {', '.join(places)}."] if places else []
        if _is_member(hit.file, hit.place):
            kin = await self._possible.kin_called(hit, new_name)
            if kin is None:
                found.append(
                    f"Whether it would override or hide another member {new_name}, or be overridden or hidden, could "
                    "not be determined in time: call again."
                )
            elif kin:
                named = listed(f"{one.name_path} in {one.path}" for one in kin)
                found.append(f"It would override or hide another member, or be overridden or hidden: {named}.")
            if new_name in _OF_EVERY_TYPE.get(self._languages.language_of(hit.path) or "", ()):
                found.append(f"Every type has a member {new_name}, which it would override or hide.")
        if macros := await self._macros(hit, new_name):
            found.append(f"A macro has that name: {', '.join(macros)}.")
        if is_type and new_name in _SEEN_EVERYWHERE.get(identifier, ()):
            found.append(f"All code sees a type {new_name} of the language's own, which it would hide.")
        return found

    async def standing(self, hit: Hit, new_name: str, texts: Mapping[str, Text]) -> list[str]:
        """Where that name stands in the code of files that are about to be changed, as `path:line`: it may mean the
        symbol then, or the symbol be hidden by what it means."""
        word = whole_word(new_name)

        def matching() -> dict[str, list[Range]]:
            return {
                path: [
                    Range(text.position(match.start()), text.position(match.end()))
                    for match in word.finditer(text.content)
                ]
                for path, text in texts.items()
                if new_name in text.content and word.search(text.content)
            }

        found = await anyio.to_thread.run_sync(matching)
        lines: list[str] = []
        for number, (path, spans) in enumerate(sorted(found.items())):
            apart = await self._apart(path, new_name) if number < FILES_READ else ()
            lines += [
                f"{path}:{span.start.line0}"
                for span in spans
                if span.start not in apart and self._may_mean(hit, path, span.start, texts[path])
            ]
        return list(dict.fromkeys(lines))

    async def examples(self, hit: Hit) -> list[str]:
        """Where examples of Go are named after a symbol, as `path:line`: `ExampleStack_Push_twice` after Stack/Push. Go
        rejects an example that is named after nothing."""
        if self._languages.selection.identifier(hit.path) != "go" or hit.symbol.kind == SymbolKind.FIELD:
            return []
        name = hit.name_path.replace("/", "_")
        is_named = re.compile(rf"Example{re.escape(name)}(?:_.*)?").fullmatch
        tests = [one for one in sorted([hit.path, *self._tree.beside(hit.path)]) if one.endswith("_test.go")]
        await self._indexer.ensure(tests)
        return [
            f"{path}:{symbol.name_line}"
            for path in tests
            if path in self._index
            for symbol in self._index.file(path).symbols
            if symbol.kind == SymbolKind.FUNCTION and is_named(symbol.name)
        ]

    async def _apart(self, path: str, name: str) -> Collection[Position]:
        """Where a name stands in strings and comments, if a grammar can tell."""
        try:
            found = await self._languages.syntax.occurrences(path, name)
        except (LanguageServerError, PathError):
            return ()
        return {one.range.start for one in found if one.kind != "code"}

    def _may_mean(self, hit: Hit, path: str, position: Position, text: Text) -> bool:
        """Whether a name at a place could ever mean a symbol like this one: a member behind its receiver or where a
        type declares one, anything else where it stands alone."""
        is_qualified = bool(_QUALIFIED.search(text.line(position.line0)[: position.column]))
        if not _is_member(hit.file, hit.place):
            return not is_qualified
        if is_qualified or self._languages.selection.identifier(path) not in _NAMED_RECEIVER:
            return True
        file = self._index.file(path) if path in self._index else FileSymbols(())
        return any(
            symbol.name_position == position and _is_member(file, place) for place, symbol in enumerate(file.symbols)
        )

    async def _sharing(self, hit: Hit, new_name: str) -> list[str]:
        """Other files that may declare something in the container of a symbol."""
        identifier = self._languages.selection.identifier(hit.path)
        if self._is_of_c(hit.path) and not _is_member(hit.file, hit.place):
            return [path for path in await self._of_c(new_name) if path != hit.path]
        if identifier not in _FOLDER_IS_PACKAGE:
            return []
        beside = [
            path for path in self._tree.beside(hit.path) if self._languages.selection.identifier(path) == identifier
        ]
        return sorted(await self._possible.holding(beside, new_name))

    def _is_of_c(self, path: str) -> bool:
        return self._languages.language_of(path) == "cpp"

    async def _of_c(self, name: str) -> list[str]:
        """Files of C and C++ that may hold a name."""
        files = [path async for path in paced(list(self._tree.files)) if self._is_of_c(path)]
        return sorted(await self._possible.holding(files, name))

    async def _may_meet(self, hit: Hit, other: Hit) -> bool:
        """Whether declarations in two files that share a scope are in each other's way."""
        if not self._is_of_c(hit.path):
            return True
        try:
            texts = [(await self._languages.fetch(self._tree.root / one.path)).text for one in (hit, other)]
        except PathError:
            return True
        return may_meet(hit, texts[0], other, texts[1])

    async def _macros(self, hit: Hit, name: str) -> list[str]:
        """Where macros of a name are defined, as `path:line`: they would replace it."""
        found: list[str] = []
        for path in await self._of_c(name) if self._is_of_c(hit.path) else ():
            try:
                text = (await self._languages.fetch(self._tree.root / path)).text
            except PathError:
                continue
            found += [f"{path}:{line0}" for line0 in macros_called(text, name)]
        return found


def _declared(path: str, file: FileSymbols, hit: Hit, name: str) -> Iterator[Hit]:
    """What a file declares under a name in the container of a symbol, whatever the container's definition."""
    container = [part.name for part in hit.file.path(hit.place)[:-1]]
    for place, symbol in enumerate(file.symbols):
        if symbol.name == name and [part.name for part in file.path(place)[:-1]] == container:
            yield Hit(path, file, place)


def _is_member(file: FileSymbols, place: int) -> bool:
    symbol = file.symbols[place]
    return symbol.kind in _MEMBERS or (symbol.container >= 0 and file.symbols[symbol.container].kind in TYPES)
