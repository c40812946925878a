"""Reads a project's files by syntax, for languages that have a grammar. No server is asked."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.text import Text
from serena_central.files.stamp import Stamp
from serena_central.files.text import MAX_BYTES, decode, read_bytes
from serena_central.symbols.indexing.symbol_source import Outline, Read
from serena_central.symbols.symbol import Symbol
from serena_central.symbols.syntax import headers
from serena_central.symbols.syntax.grammars import Grammar, grammar_of
from serena_central.symbols.syntax.messages import Claimed, Declared, Occurrence, Packed, SyntaxEdit
from serena_central.symbols.syntax.reader import SyntaxReader, check_length, encoded
from serena_central.symbols.syntax.skimming import longest

logger = logging.getLogger(__name__)


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
        texts = await anyio.to_thread.run_sync(self._contents, paths)
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
