"""Reads a project's files by syntax, for languages that have a grammar. No server is asked, but for files without build
information: their servers cannot know how they are built, so they are read by syntax as well. Which of the two knows
the files of a large project better is decided by a sample (symbols/comparison.py).

It also completes symbols of servers that answer flat (LSP's SymbolInformation): one range, in which the name is not
marked, and which may begin behind the definition's own keyword. The syntax of the same text says where each begins.
"""

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
import msgspec

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Position, Range, Text
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, decode, read_bytes
from serena_central.lsp.answers import DocumentSymbol, at_all_levels
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.roots import has_marker
from serena_central.projects.languages.selection import LanguageSelection, Place
from serena_central.symbols.comparison import MANY_FILES, Comparison
from serena_central.symbols.indexing import source_identity
from serena_central.symbols.indexing.symbol_source import Outline, Read
from serena_central.symbols.symbol import Symbol
from serena_central.symbols.syntax import headers
from serena_central.symbols.syntax.grammars import Grammar, grammar_of
from serena_central.symbols.syntax.messages import (
    Claimed,
    Declared,
    Occurrence,
    Packed,
    PythonStructure,
    SyntaxEdit,
    longest,
)
from serena_central.symbols.syntax.reader import SyntaxReader, check_length, encoded
from serena_central.symbols.union import united

logger = logging.getLogger(__name__)

DocumentSymbols = Callable[[str], Awaitable[Sequence[DocumentSymbol]]]
"""Asks the server for a root-relative path. Raises LanguageServerError."""


class _Content(NamedTuple):
    """`identifier`: LSP's of the text's language; `source` is valid UTF-8."""

    stamp: Stamp
    identifier: str
    source: bytes


class SyntaxAccess:
    """Of one project. Paths are root-relative."""

    def __init__(
        self,
        root: Path,
        reader: SyntaxReader | None,
        *,
        identifier: Callable[[str], str],
        read_text: Callable[[Path], Text],
        encoding: str | None,
    ) -> None:
        """`identifier`: LSP's of a file's language, empty where the project serves none. Without `reader` nothing is
        read by syntax."""
        self._root = root
        self._reader = reader
        self._identifier = identifier
        self._read_text = read_text
        self._encoding = encoding

    def grammar(self, path: str) -> Grammar | None:
        """The grammar that reads a root-relative path by syntax, if this project serves its language."""
        return None if self._reader is None else grammar_of(self._identifier(path))

    async def outline(self, path: str) -> Outline:
        """The symbols of a file that has a grammar, by syntax alone.

        Raises:
            LanguageServerError: it can't be parsed.
            PathError: it can't be read.
        """
        assert self._reader is not None, "grammar() found none"
        text = await anyio.to_thread.run_sync(self._read_text, self._root / path)
        return await self._reader.outline(self._identifier_of(path, text.content), text.content)

    async def read(self, paths: Sequence[str]) -> list[Read | LanguageServerError | PathError]:
        """The symbols of files that have a grammar, by syntax alone, as the index keeps them; in their order.

        Raises:
            LanguageServerError: none of them could be read.
        """
        assert self._reader is not None, "grammar() found none"
        texts = await anyio.to_thread.run_sync(self._contents, paths, abandon_on_cancel=True)
        asked = [(one.identifier, one.source) for one in texts.values() if isinstance(one, _Content)]
        answers = iter(await self._reader.packed(asked))
        found: list[Read | LanguageServerError | PathError] = []
        for path in paths:
            one = texts[path]
            if not isinstance(one, _Content):
                found.append(one)
                continue
            answer = next(answers)
            found.append(Read(one.stamp, answer) if isinstance(answer, Packed) else answer)
        return found

    def _contents(self, paths: Sequence[str]) -> "dict[str, _Content | LanguageServerError | PathError]":
        """The texts of files, without caching them; in a thread."""
        found: dict[str, _Content | LanguageServerError | PathError] = {}
        for path in paths:
            try:
                data, stamp = read_bytes(self._root / path, max_bytes=max(MAX_BYTES, longest("c")))
                source = self._in_utf8(data, path)
                identifier = self._identifier_of(path, source)
                check_length(identifier, len(source))  # says the same of all such files, which are counted together
                found[path] = _Content(stamp, identifier, source)
            except (LanguageServerError, PathError) as error:
                found[path] = error
        return found

    def _identifier_of(self, path: str, text: str | bytes) -> str:
        """LSP's identifier of a text's language."""
        identifier = self._identifier(path)
        if identifier != "cpp" or not path.endswith(headers.SUFFIX):
            return identifier
        return headers.identifier_of_header(encoded(text) if isinstance(text, str) else text)

    def _in_utf8(self, data: bytes, path: str) -> bytes:
        if self._encoding is None and data.isascii() and b"\0" not in data:
            return data  # as nearly all sources are
        return encoded(decode(data, path, self._encoding).content)

    async def occurrences(self, path: str, name: str) -> list[Occurrence]:
        """Where a name stands in a file, and in what, by syntax; nothing where its language has no grammar.

        Raises:
            LanguageServerError: it can't be parsed.
            PathError: it can't be read.
        """
        if self._reader is None or self.grammar(path) is None:
            return []
        text = await anyio.to_thread.run_sync(self._read_text, self._root / path)
        return await self._reader.occurrences(self._identifier_of(path, text.content), text.content, name)

    async def python(self, text: str) -> PythonStructure | None:
        """What a text of Python tries, imports and declares; None if it can't be read by syntax."""
        if self._reader is None:
            return None
        try:
            return await self._reader.python(text)
        except LanguageServerError as error:
            logger.warning("cannot read Python by syntax: %s", error)
            return None

    async def declared(self, path: str, text: Text, symbol: Symbol) -> Declared | None:
        """What the syntax says of a symbol's range in a text of a root-relative path; None where it says nothing."""
        if self._reader is None or self.grammar(path) is None:
            return None
        claimed = Claimed(symbol.name, symbol.range, symbol.name_position)
        try:
            return await self._reader.declared(self._identifier_of(path, text.content), text.content, claimed)
        except LanguageServerError as error:
            logger.warning("cannot determine whether %s of %s is complete: %s", symbol.name, path, error)
            return None

    async def damage(self, path: str, text: Text, edit: SyntaxEdit) -> str:
        """What an edit of a text of a root-relative path breaks in its syntax; empty if nothing, or not known."""
        if self._reader is None or self.grammar(path) is None:
            return ""
        try:
            return await self._reader.damage(self._identifier_of(path, text.content), text.content, edit)
        except LanguageServerError as error:
            logger.warning("cannot determine what an edit of %s breaks: %s", path, error)
            return ""


def is_flat(symbols: Sequence[DocumentSymbol]) -> bool:
    """Whether a server's answer is flat; one answer has one form."""
    return bool(symbols) and symbols[0].flat


def completed(symbols: Sequence[DocumentSymbol], syntax: Sequence[DocumentSymbol]) -> list[DocumentSymbol]:
    """The symbols with the ranges that the syntax gives to the definition of the same name at the same place. Those
    that it does not know stay flat."""
    by_name: dict[str, list[DocumentSymbol]] = {}
    for symbol in at_all_levels(syntax):
        by_name.setdefault(_bare(symbol.name), []).append(symbol)
    for named in by_name.values():
        named.sort(key=_starts_at)
    return [_completed(symbol, by_name) for symbol in symbols]


def _completed(symbol: DocumentSymbol, by_name: dict[str, list[DocumentSymbol]]) -> DocumentSymbol:
    children = [_completed(child, by_name) for child in symbol.children]
    named = by_name.get(_bare(symbol.name), [])
    # The first of that name in the range: a class's constructor of the same name lies behind the class's own name.
    place = bisect_left(named, symbol.range.start, key=_starts_at)
    if place == len(named) or not symbol.range.encloses(named[place].selection):
        return msgspec.structs.replace(symbol, children=children)
    found = named[place]
    sigils = len(symbol.name) - len(found.name)
    start = found.selection.start
    selection = Range(Position(start.line0, start.column - sigils), found.selection.end)
    return msgspec.structs.replace(symbol, range=found.range, selection=selection, children=children, flat=False)


def _bare(name: str) -> str:
    """Without the sigil that PHP's server counts to a variable's name, and its grammar does not."""
    return name.removeprefix("$")


def _starts_at(symbol: DocumentSymbol) -> Position:
    return symbol.selection.start


class UnmarkedBuilds:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, root: Path, selection: LanguageSelection, syntax: SyntaxAccess) -> None:
        self._root = root
        self._selection = selection
        self._syntax = syntax
        self.comparisons: dict[str, Comparison] = {}
        """Servers that can not know how many files are built → what a comparison with the syntax has brought."""
        self.changes = 0
        """How often it came to be told how files are built: clangd looks for that again only after half a minute."""
        self._unmarked: dict[tuple[str, str], bool] = {}
        """(server, folder of a file) → whether it can't know how files there are built; until `forget`."""
        self.servers: set[str] = set()
        """Those that can't know how some files are built; likewise."""
        self._marked_folders: dict[tuple[str, str], bool] = {}
        """(server, folder) → whether it, or one above it, has a marker; likewise. Thousands are looked at once each."""

    def marked(self) -> None:
        """A file came that may say how files are built."""
        if any(self._unmarked.values()):
            self.changes += 1

    def forget(self) -> None:
        self._unmarked.clear()
        self.servers.clear()
        self._marked_folders.clear()

    def instead(self, path: str) -> str | None:
        """What reads a file by syntax in place of a server that can't know how it is built; None where one can."""
        spec, grammar = self._selection.spec_for(path), self._syntax.grammar(path)
        if spec is None or grammar is None or not self.is_unmarked_by(spec, path):
            return None
        return source_identity.instead(grammar)

    def is_unmarked_by(self, spec: ServerSpec, path: str) -> bool:
        if spec.roots.unmarked is None:
            return False
        place = spec.name, path.rpartition("/")[0]
        if place not in self._unmarked:
            self._unmarked[place] = not self._is_marked(spec, place[1])
            if self._unmarked[place]:
                self.servers.add(spec.name)
        return self._unmarked[place]

    def _is_marked(self, spec: ServerSpec, folder: str) -> bool:
        known = self._marked_folders.get((spec.name, folder))
        if known is None:
            above = bool(folder) and self._is_marked(spec, folder.rpartition("/")[0])
            known = above or has_marker(f"{self._root}/{folder}", spec.roots.markers[0])
            self._marked_folders[spec.name, folder] = known
        return known

    @property
    def knows_builds(self) -> bool:
        """Whether it was looked at how files are built, so that symbols depend on what marks that."""
        return bool(self._unmarked)

    def reads_by_syntax(self, spec: ServerSpec) -> bool:
        """Whether all such files of a server are read by syntax alone."""
        compared = self.comparisons.get(spec.name)
        return compared is not None and compared.reads_by_syntax

    def read_instead(self) -> dict[str, str]:
        """Servers in whose place files are read by syntax alone → what they lack for these files."""
        read = (name for name, compared in self.comparisons.items() if compared.reads_by_syntax)
        return {name: catalogue().servers[name].roots.unmarked or "" for name in read}

    def read_besides(self) -> dict[str, str]:
        """Servers beside which files are read by syntax, which tells more of some → what they lack for these files."""
        read = self.servers - self.read_instead().keys()
        return {name: catalogue().servers[name].roots.unmarked or "" for name in sorted(read)}

    async def look_at(self, places: Mapping[Place, Sequence[str]]) -> None:
        """Takes all files of the project, to see which servers can't know so many of them that all are read by syntax
        until it is decided who knows them better."""
        unknown: dict[str, list[str]] = defaultdict(list)
        async for paths in paced(list(places.values())):
            spec = self._selection.spec_for(paths[0])
            if spec is None or not self.is_unmarked_by(spec, paths[0]) or self._syntax.grammar(paths[0]) is None:
                continue
            unknown[spec.name] += paths
        for server, files in unknown.items():
            if len(files) >= MANY_FILES and server not in self.comparisons:
                self.comparisons[server] = Comparison(files)

    async def compare(self, ask: DocumentSymbols) -> bool:
        """Decides by samples who knows such files better; whether some are to be read by their server since."""
        moved = False
        for server, compared in self.comparisons.items():
            if compared.decided:
                continue
            try:
                for path in compared.sample:
                    await self._compare(path, compared, ask)
            except LanguageServerError as error:
                logger.info("%s was not compared with the syntax: %s", server, error)
                continue
            compared.close()
            logger.info("%s compared with the syntax: %s", server, compared)
            moved = moved or not compared.prefers_syntax
        return moved

    async def _compare(self, path: str, compared: Comparison, ask: DocumentSymbols) -> None:
        if compared.decided or self.instead(path) is None:
            return
        try:
            by_syntax = await self._syntax.outline(path)
            by_server = await ask(path)
        except PathError:
            return
        compared.add(by_server, by_syntax.symbols)

    async def united_with_syntax(self, path: str, by_server: Outline) -> Outline:
        """What a server and the syntax tell of a file that the server can't know."""
        try:
            return united(by_server, await self._syntax.outline(path))
        except LanguageServerError as error:
            logger.warning("cannot read the symbols of %s by syntax: %s", path, error)
            return by_server
