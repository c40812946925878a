"""Finds the places where a symbol's name stands in the files of its language server, whatever it means there.

It reads files and asks no server: which places refer to the symbol is `possible_references`' business.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio.to_thread
import msgspec

from serena_central.core.errors import PathError
from serena_central.core.lru import Lru
from serena_central.core.nofollow import open_following
from serena_central.core.pacing import paced
from serena_central.core.paths import expanded
from serena_central.core.text import Position, Range, whole_word
from serena_central.files.containing import files_lacking, find_containing
from serena_central.files.stamp import Stamp
from serena_central.files.text import FEW_FILES, FileText, read_bytes
from serena_central.files.tree import FileTree
from serena_central.files.vocabulary import Vocabulary
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.index import Hit
from serena_central.symbols.mangling import mangled_names
from serena_central.symbols.name_case import ignores_case
from serena_central.symbols.symbol import TYPES
from serena_central.symbols.syntax.lexical import Tokens, kinds, tokens
from serena_central.symbols.syntax.messages import Kind

MOST_TOKENS = 400_000
"""Comments and strings of all texts together whose places are remembered: 3 MB, twice as many as Django has."""

MOST_PLACES = 10_000
"""Places of names that are remembered, of all texts together: 4 MB."""

MOST_WRONG = 0.02
"""Part of all files that may seem to hold a name (`files/vocabulary`)."""

NAMES_KEPT = 64
"""Names of which the files are remembered that may hold them."""


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A place of a name, and what it stands in, if that can be told without a parser. Nothing that the garbage
    collector would look at: names stand in ten thousand places."""

    range: Range
    kind: Kind | None


Places = Mapping[str, Sequence[Range]]
"""Root-relative path → where a name stands, files near to the symbol's definition first."""

Candidates = Mapping[str, Sequence[Candidate]]
"""The same, with what each place stands in."""


class _Holders(NamedTuple):
    """The files that may hold a name; once they `are_read`, hardly one that doesn't."""

    paths: Sequence[str]
    may_be_respelled: bool
    """Others may hold it in a spelling that no search for it finds."""
    are_read: bool = False


class _Served(NamedTuple):
    """The files that one server reads, and the others."""

    same: list[str]
    others: list[str]
    names: str
    """Those of the others, in one text."""
    readers: dict[str, list[str]]
    """Server → those of the others that use symbols of these, as it knows."""
    reads_ignored: bool
    """Whether that server may read what git ignores."""
    holders: Lru[str, _Holders]
    """Name → those of the same: without those that were read and don't."""


class _Settings(NamedTuple):
    """Files that were read, with the texts that they were searched for and their stamps; whether one holds its text."""

    asked: Sequence[tuple[str, Path, Stamp]] = ()
    is_one_telling: bool = False


class _Read(NamedTuple):
    places: Places
    lacking: Collection[str]
    """Files that were read, and don't hold the name as a word."""


class CandidateSearch:
    """Finds candidates in one project. Belongs to the event loop's thread; callers passed the barrier."""

    def __init__(self, root: Path, tree: FileTree, languages: ProjectLanguages) -> None:
        self._root = root
        self._tree = tree
        self._languages = languages
        self._vocabulary = Vocabulary(
            root, languages.encoding, composes=lambda path: languages.language_of(path) is not None
        )
        self._served: dict[str | None, _Served] = {}
        self._served_after = languages.changes
        """That is as of so many changes."""
        self._settings = _Settings()
        self._places = RecentPlaces()
        self._tokens = RecentTokens()

    async def stands_in_few(self, hit: Hit, most: int) -> bool:
        """Whether as few files as `most` may hold the name of `hit`, in no other spelling, and no other file that its
        server reads. Of files that were not read for it yet, some may hold it that don't."""
        served = await self._files_by_server(hit.path)
        if self._ignores_case(hit) or served.reads_ignored:
            return False
        holders = [await self._holders(served, name) for name in self._names(hit)]
        if any(some.may_be_respelled for some in holders):
            return False
        wrong = 0 if all(some.are_read for some in holders) else len(served.same) * MOST_WRONG
        return sum(len(some.paths) for some in holders) <= most + wrong

    async def places_of(self, hit: Hit) -> Places:
        """Every place of the name of `hit` as a whole word, its definition included; none for an operator's."""
        names = self._names(hit)
        if not re.search(r"\w", hit.symbol.name):
            return {}
        ignore_case = self._ignores_case(hit)
        served = await self._files_by_server(hit.path)
        by_name = {name: await self._holders(served, name) for name in names if not ignore_case}
        holders = list(served.same if ignore_case else {path for some in by_name.values() for path in some.paths})
        folder = hit.path.rpartition("/")[0]
        holders.sort(key=lambda path: (path != hit.path, path.rpartition("/")[0] != folder, path))
        if self._languages.are_at_hand([self._root / path for path in holders[: FEW_FILES + 1]]):
            return self._read(holders, names, ignore_case).places
        read = await anyio.to_thread.run_sync(self._read, holders, names, ignore_case, abandon_on_cancel=True)
        lacking = self._certain(read.lacking)
        for name, some in by_name.items():
            held = [path for path in some.paths if path not in lacking]
            served.holders[name] = some._replace(paths=held, are_read=True)
        return read.places

    def _certain(self, lacking: Iterable[str]) -> Collection[str]:
        """Those of which nothing but a change that is heard of makes another text."""
        stamps = ((path, self._tree.files.get(path)) for path in lacking)
        return {path for path, stamp in stamps if stamp is not None and self._vocabulary.knows(path, stamp)}

    async def told(self, hit: Hit, paths: Collection[str]) -> Candidates:
        """The same of some of the files, with what each place stands in: to tell that of all takes longer than to find
        them, and hardly any file has a place that a server does not list."""
        word = whole_word(*self._names(hit), ignore_case=self._ignores_case(hit))
        if self._languages.are_at_hand([self._root / path for path in paths]):
            readings = dict(self._readings(paths))
            if all(self._tokens.are_known(self._identifier(path), read) for path, read in readings.items()):
                return self._tell(readings.items(), word)
        return await anyio.to_thread.run_sync(lambda: self._tell(self._readings(paths), word), abandon_on_cancel=True)

    def _readings(self, paths: Iterable[str]) -> Iterator[tuple[str, FileText]]:
        """Those of the files that can be read."""
        for path in paths:
            with suppress(PathError):
                yield path, self._languages.read(self._root / path)

    def _identifier(self, path: str) -> str:
        return self._languages.selection.identifier(path)

    def _names(self, hit: Hit) -> list[str]:
        return [hit.symbol.name, *mangled_names(hit, self._languages.language_of(hit.path))]

    def _ignores_case(self, hit: Hit) -> bool:
        return ignores_case(self._languages.language_of(hit.path), hit.symbol.kind)

    async def files_elsewhere(self, hit: Hit) -> list[str]:
        """Files that another language server, or none, reads, and that hold the name of `hit` as a word, or are called
        by it if it is a type's (`META-INF/services/shop.Plugin`)."""
        served, name = await self._files_by_server(hit.path), hit.symbol.name
        others = served.others
        maybe = await self._vocabulary.holding(self._tree.files, others, name)
        holding = (await find_containing(self._root, maybe, name, encoding=self._languages.encoding)).files
        called: list[str] = []
        if hit.symbol.kind in TYPES and name in served.names:
            word = whole_word(name)
            called = [path async for path in paced(others) if name in path and word.search(path)]
        return sorted({*holding, *called})

    async def holding_beside(self, hit: Hit) -> list[list[str]]:
        """By server, files of those that know uses of symbols of the language of `hit`, which hold its name as a
        word."""
        readers, name = (await self._files_by_server(hit.path)).readers, hit.symbol.name
        found: list[list[str]] = []
        for paths in readers.values():
            maybe = await self._vocabulary.holding(self._tree.files, paths, name)
            found.append((await find_containing(self._root, maybe, name, encoding=self._languages.encoding)).files)
        return list(filter(None, found))

    def in_other_projects(self, path: str, others: Iterable[str], names: Collection[str]) -> list[str]:
        """Those of some files whose project, by the nearest file of one of the names, is not that of `path`."""

        def project(file: str) -> str | None:
            folders = (parent.as_posix() for parent in PurePosixPath(file).parents)
            below = ("" if folder == "." else f"{folder}/" for folder in folders)
            return next((one for one in below if any(f"{one}{name}" in self._tree.files for name in names)), None)

        own = project(path)
        return [other for other in others if project(other) != own]

    async def words(self, paths: Collection[str], name: str, prefix: str = "") -> list[PlaceInCode]:
        """Where a name stands as a word in some files, also behind a prefix."""
        names = [name, prefix + name] if prefix else [name]
        read = await anyio.to_thread.run_sync(self._read, paths, names, False, abandon_on_cancel=True)
        return [
            PlaceInCode(path, Range(Position(span.end.line0, span.end.column - len(name)), span.end))
            for path, spans in read.places.items()
            for span in spans
        ]

    async def _holders(self, served: "_Served", name: str) -> _Holders:
        """Those of the files that a server reads that may hold a name."""
        holders = served.holders.get(name)
        if holders is None:
            paths = await self._vocabulary.holding(self._tree.files, served.same, name)
            may_be_respelled = await self._vocabulary.may_be_respelled(self._tree.files, served.same, name)
            holders = served.holders[name] = _Holders(paths, may_be_respelled)
        return holders

    async def holding(self, paths: Collection[str], name: str) -> list[str]:
        """Those of some files that may hold a name as a word."""
        return await self._vocabulary.holding(self._tree.files, paths, name)

    async def certainly_holding(self, paths: Sequence[str], name: str) -> list[str]:
        """Those of some files that do: each is read."""
        return (
            (await find_containing(self._root, paths, name, encoding=self._languages.encoding)).files if paths else []
        )

    async def joining(self, name: str) -> list[str]:
        """Files of Python that may hold a name as one of several that `__` joins."""
        return await self._vocabulary.joining(self._tree.files, list(self._tree.files), name)

    async def composing(
        self, paths: Collection[str], *, beginnings: Collection[str], ends: Collection[str]
    ) -> list[str]:
        """Those of some files that may put a word together from one of the beginnings or ends and something else."""
        return await self._vocabulary.composing(self._tree.files, paths, beginnings=beginnings, ends=ends)

    async def naming(self, hits: Collection[Hit], names: Collection[str], paths: Collection[str]) -> Collection[str]:
        """Those of some files that may hold one of the names, or of the names of the hits, as a word."""
        there = [path for path in paths if path in self._tree.files]
        if any(map(self._ignores_case, hits)):
            return there
        words = {*names, *(name for hit in hits for name in self._names(hit))} if there else ()
        return {path for word in words for path in await self.holding(there, word)}

    async def _is_one_telling(self, settings: Sequence[tuple[str, Path, Stamp]]) -> bool:
        """Whether one of some files holds the text that comes with it; they are read again when they have changed."""
        if settings and settings != self._settings.asked:
            is_one = await anyio.to_thread.run_sync(lambda: any(_holds(file, text) for text, file, _ in settings))
            self._settings = _Settings(settings, is_one)
        return bool(settings) and self._settings.is_one_telling

    def _unlisted(self, tells: Mapping[str, str]) -> Iterator[tuple[str, Path, Stamp]]:
        """Files that are called so and that the tree lacks, with what comes with the name: above the root, and right in
        it as links or where git ignores them; and the user's own."""
        for name, text in tells.items():
            is_users = name.startswith("~/")
            for file in (
                [expanded(name)] if is_users else [self._root / name, *(up / name for up in self._root.parents)]
            ):
                if name in self._tree.files and file.parent == self._root:
                    continue
                with suppress(OSError):
                    yield text, file, Stamp.of(file.stat())

    async def _files_by_server(self, path: str) -> "_Served":
        """Of the server for `path`."""
        if self._served_after != self._languages.changes:
            self._served, self._served_after = {}, self._languages.changes
        spec = self._languages.spec_for(path)
        key = None if spec is None else spec.name
        known = self._served.get(key)
        if known is None:
            served, same, others = self._served, list[str](), list[str]()
            readers: defaultdict[str, list[str]] = defaultdict(list)
            languages = spec.languages if spec is not None else ()
            tells = spec.documents.reads_ignored if spec is not None else {}
            settings = list(self._unlisted(tells))
            async for other in paced(list(self._tree.files)):
                its = self._languages.spec_for(other)
                if not self._languages.selection.is_configuration(other):
                    (same if its is spec else others).append(other)
                if its is not None and its.knows_uses_of(languages):
                    readers[its.name].append(other)
                if tells and (name := other.rpartition("/")[2]) in tells and (stamp := self._tree.files.get(other)):
                    settings.append((tells[name], self._root / other, stamp))
            known = _Served(
                same, others, "\n".join(others), readers, await self._is_one_telling(settings), Lru(NAMES_KEPT)
            )
            served[key] = known  # nobody's any more, if files have changed meanwhile
        return known

    def _read(self, holders: Iterable[str], names: Sequence[str], ignore_case: bool) -> _Read:
        """Runs in a thread, unless all texts are at hand. Files that may hold the names and don't are not worth finding
        their lines; those whose text is at hand are searched as they are."""
        found: dict[str, Sequence[Range]] = {}
        word, encoding = whole_word(*names, ignore_case=ignore_case), self._languages.encoding
        files = {path: self._root / path for path in holders}
        lacking = {path for path, file in files.items() if not self._languages.holds_text(file)}
        for name in names:
            lacking &= {*files_lacking(self._root, lacking, name, encoding=encoding, ignore_case=ignore_case)}
        for path, read in self._readings(path for path in files if path not in lacking):
            if places := self._places.of(read, word):
                found[path] = places
            else:
                lacking.add(path)
        return _Read(found, lacking)

    def _tell(self, readings: Iterable[tuple[str, FileText]], word: re.Pattern[str]) -> Candidates:
        """Runs in a thread, unless all tokens are known. All places of a file are of one reading, which may be newer
        than the one before."""
        found: dict[str, Sequence[Candidate]] = {}
        for path, read in readings:
            places = self._places.of(read, word)
            found_tokens = self._tokens.of(self._identifier(path), read)
            told = kinds(read.text.content, found_tokens, [read.text.offset(span.start) for span in places])
            found[path] = list(map(Candidate, places, told))
        return found


def _holds(file: Path, text: str) -> bool:
    """Whether a file holds a text; links are followed, as servers follow them."""
    try:
        return text.encode() in read_bytes(file, opener=open_following)[0]
    except PathError:
        return False


class RecentPlaces:
    """Of names in texts by their content: finding them takes longer than seeing that the files are the same, and who
    asks about a symbol asks again. May be used in any thread."""

    def __init__(self, most: int = MOST_PLACES) -> None:
        self._known: Lru[tuple[str, re.Pattern[str]], Sequence[Range]] = Lru(
            max_size=most, size_of=lambda places: 1 + len(places)
        )
        self._lock = threading.Lock()

    def of(self, read: FileText, word: re.Pattern[str]) -> Sequence[Range]:
        """Where a word stands in a text."""
        key = read.digest, word
        with self._lock:
            if key in self._known:
                return self._known[key]
        text = read.text
        spans = (match.span() for match in word.finditer(text.content))
        found = [Range(text.position(start), text.position(end)) for start, end in spans]
        with self._lock:
            self._known[key] = found
        return found


class RecentTokens:
    """Of texts by their content: finding them takes half the time of an answer about a name that many files hold. May
    be used in any thread."""

    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._known: Lru[tuple[str, str], Tokens | None] = Lru(max_size=most, size_of=_size)
        self._lock = threading.Lock()

    def are_known(self, identifier: str, read: FileText) -> bool:
        """Whether they need not be found first."""
        with self._lock:
            return (identifier, read.digest) in self._known

    def of(self, identifier: str, read: FileText) -> Tokens | None:
        """The tokens of a text in the language of an LSP identifier."""
        key = identifier, read.digest
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = tokens(identifier, read.text.content)
        with self._lock:
            self._known[key] = found
        return found


def _size(found: Tokens | None) -> int:
    return 1 + len(found.starts) if found is not None else 1
