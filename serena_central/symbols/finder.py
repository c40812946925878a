"""Finds symbols for a request: candidates while the index is incomplete, and the unique one where one is needed.

A project-wide find is complete although the index is not: the files that are not indexed yet and hold the last name as
text are the only ones that could define it, and they are asked first.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.core.errors import AmbiguousSymbol, SymbolNotFound
from serena_central.core.lru import Lru
from serena_central.core.pacing import paced
from serena_central.core.quoting import escaped, quoted
from serena_central.files.containing import Containing, find_containing
from serena_central.files.tree import Change, FileTree
from serena_central.symbols.go_packages import of_package
from serena_central.symbols.index import Hit, Hits, SymbolIndex, lies_within
from serena_central.symbols.indexing.incompleteness import Incompleteness, not_read_yet
from serena_central.symbols.indexing.indexer import Indexer
from serena_central.symbols.known_finds import KnownFinds
from serena_central.symbols.namepath import Pattern, bare
from serena_central.symbols.similar_names import FEW, nearest

_WORD = re.compile(r"\w+")

WORDS_REMEMBERED = 64
"""Words for which files that stay without symbols (their server is missing) are not read again by every find …"""

FILES_REMEMBERED = 100_000
"""… as long as there are no more such files, of all words together: 4 MB."""

READ_BYTES = 20_000_000
"""Of files that could not be indexed: more are not read by every find, but counted as if they held the word."""

ROUNDS = 40
"""How often a find looks again for files that changed meanwhile: what changed after the call came may be left out."""

MANY_CANDIDATES = 20
"""So many are worth to be read once more, to see which of them name what is to hold a symbol."""

MAPPING_S = 0.5
"""How long names that a cache brought are waited for, where close ones are to be named."""

FILES_WAITED_FOR = 500
"""Of a project whose index is not complete, where close names are to be named; of more it takes too long."""

FILES_SHOWN = 2
"""Of one close name."""


class _Late:
    """Files that a find could not look at in time, of how many that were not indexed when it began."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.of = 0


class Found(NamedTuple):
    """Symbols that fit, and what the search does not cover."""

    hits: Hits
    gaps: list[Incompleteness]


class Finder:
    """Finds symbols of one root. Callers have passed the tree's barrier before."""

    def __init__(
        self,
        root: Path,
        tree: FileTree,
        index: SymbolIndex,
        indexer: Indexer,
        *,
        encoding: str | None = None,
        rebinds: Callable[[str, int], bool] = lambda _path, _kind: False,
    ) -> None:
        """`rebinds`: whether definitions of one name, and of a kind, in one scope of a file are one symbol, not
        overloads to tell apart."""
        self._root = root
        self._tree = tree
        self._index = index
        self._finds = KnownFinds(index)
        self._indexer = indexer
        self._encoding = encoding
        self._rebinds = rebinds
        self._lacking: Lru[tuple[str, bool], set[str]] = Lru(WORDS_REMEMBERED, max_size=FILES_REMEMBERED, size_of=len)
        """Word (as a whole or a part) → files that were read without finding it, and have not changed since."""
        self._batches = 0

    async def find(self, pattern: Pattern, within: str | None, *, patient: bool = False) -> Found:
        """Symbols that fit in the whole root, or `within` a file or folder (root-relative; None: everywhere).

        What is known soon, by the deadlines of the indexing policy; if `patient`, files are read for as long as a
        caller may wait.
        """
        policy, began = self._indexer.policy, anyio.current_time()
        until = began + policy.patient_s
        look_until = until if patient else began + policy.look_s
        looked_at: set[str] = set()
        late = _Late()
        asked = {within} if within is not None and within in self._tree.files else set[str]()
        await self._ensure(asked, began, patient=patient)
        for _ in range(ROUNDS):
            await self._indexer.settle()
            # A file that was indexed may change while another is asked about, and is then pending like any other.
            pending = [path for path in self._pending(within) if path not in looked_at]
            late.of = late.of or len(pending)
            if not pending:
                hits = await self._matches(pattern, within)
                if hits is not None:
                    hits = hits or await self._in_go_package(pattern, within)
                    return self._found(hits, within, asked, late)
                continue
            candidates, unread = await self._candidates(pattern, pending, look_until - anyio.current_time())
            late.paths.update(unread)
            likely = await self._likely(pattern, candidates, look_until - anyio.current_time())
            if len(likely) < len(candidates):
                await self._ensure(likely, began, patient=patient)
                if await self._matches(pattern, within):
                    candidates = likely
            looked_at.update(set(pending).difference(candidates))
            asked.update(candidates)
            await self._ensure(candidates, began, patient=patient)
            if anyio.current_time() >= until:
                break
            looked_at.update(path for path in candidates if self._indexer.gave_up(path))
        else:
            asked.update(path for path in self._pending(within) if path not in looked_at)
        hits = await self._matches(pattern, within)
        return self._found(self._index.find(pattern, within) if hits is None else hits, within, asked, late)

    async def _ensure(self, paths: Collection[str], began: float, *, patient: bool) -> None:
        if not paths:
            return
        if patient:
            await self._indexer.ensure(paths, most_s=began + self._indexer.policy.patient_s - anyio.current_time())
        else:
            await self._indexer.ensure_in_time(paths, began=began)

    async def _matches(self, pattern: Pattern, within: str | None) -> Hits | None:
        """What the index has, with turns for others; None if files changed meanwhile, between which a symbol may have
        moved."""
        before = self._batches
        hits = await self._finds.find(pattern, within)
        return hits if self._batches == before else None

    async def _in_go_package(self, pattern: Pattern, within: str | None) -> Hits:
        """What fits a name that is qualified by a Go package, whose folder is called otherwise."""
        package, unqualified = pattern.packaged
        hits = Hits(self._index) if unqualified is None else self._index.find(unqualified, within)
        if not hits:
            return hits
        files = await anyio.to_thread.run_sync(of_package, self._root, set(hits.per_file), package)
        return hits.in_files(files.__contains__)

    def _found(self, hits: Hits, within: str | None, asked: set[str], late: _Late) -> Found:
        unreached = self._unreached(within)
        reached = hits.in_files(lambda path: path not in unreached) if unreached else hits
        gaps = self._indexer.gaps_within(within, asked)
        # Those that hold the name, and those of which even that is not known: one figure.
        unread = sum(gap.files for gap in gaps if gap.of)
        others = late.paths.difference(asked)
        if others:
            unread += len(others.intersection(self._pending(within)))
        of = max(late.of, len(asked) + len(others))
        return Found(reached, [*(gap for gap in gaps if not gap.of), *not_read_yet(unread, of)])

    def _unreached(self, within: str | None) -> Set[str]:
        """Files that are read on demand alone: they are found when they are named."""
        return self._indexer.on_demand - {within}

    def _pending(self, within: str | None) -> list[str]:
        """Files of the search that are not indexed."""
        if self._indexer.is_complete:
            return []
        unreached = self._unreached(within)
        paths = [path for path in self._indexer.pending_paths() if path not in unreached]
        return paths if within is None else [path for path in paths if lies_within(path, within)]

    async def find_one(self, pattern: Pattern, within: str | None, *, one_definition: bool = False) -> Hit:
        """Resolves one symbol: an exact path wins over suffix matches, and with a `/` before it over what counts as its
        container, such as a Rust type's implementation.

        Of a symbol with several definitions (a property's getter, setter and deleter; typing's overloads) the first
        one; with `one_definition` these are several, because one alone is to be read or changed.

        Raises:
            SymbolNotFound: none matches; lists close matches, and files that could not be searched.
            AmbiguousSymbol: several match; lists them.
        """
        hits, gaps = await self.find(pattern, within, patient=True)  # another one may fit, too
        if len(hits) > 1:
            exact = [hit async for hit in paced(hits) if pattern.is_whole(hit.file.path(hit.place))]
            verbatim = [hit for hit in exact if f"/{hit.name_path}" == pattern.text]
            hits = next((some for some in (exact, verbatim) if len(some) == 1), hits)
        if not hits:
            close = await self.near(pattern, within)
            raise SymbolNotFound(pattern.text, within or "this project", close, [str(gap) for gap in gaps])
        if len(hits) > 1 and (one_definition or not self._is_one(hits)):
            raise AmbiguousSymbol(pattern.text, [f"{hit.path}: {hit.name_path}" async for hit in paced(hits)])
        return hits[0]

    def _is_one(self, hits: Sequence[Hit]) -> bool:
        """Whether these are the definitions of one symbol."""
        first = hits[0]
        others = first.file.others(first.place)
        return all(
            self._rebinds(hit.path, hit.symbol.kind)
            and hit.path == first.path
            and (hit.place == first.place or hit.place in others)
            for hit in hits
        )

    def changed(self, changes: Sequence[Change]) -> None:
        """Takes note of what happened to files; to be called for every batch of the tree's changes."""
        self._batches += 1
        for lacking in self._lacking.values():
            lacking.difference_update(change.path for change in changes)

    async def _candidates(self, pattern: Pattern, pending: list[str], most_s: float) -> Containing:
        """Those pending files that could define what is asked for, as far as they can be read in time."""
        # A name that is no single word (`<lambda>`, `operator ==`) is searched by its longest word.
        word = max(_WORD.findall(pattern.last.name), key=len, default="")
        if not word or len(pending) == 1:
            return Containing(pending, [])
        whole = not pattern.substring and word == pattern.last.name
        lacking = self._lacking.get((word, whole)) or set()
        unread = [path for path in pending if path not in lacking]
        failed = [path for path in unread if self._indexer.has_failed(path)]
        if self._size(failed) > READ_BYTES:
            unread = [path for path in unread if not self._indexer.has_failed(path)]
        else:
            failed = []
        if not unread:
            return Containing(failed, [])
        before = self._batches
        found, late = await find_containing(
            self._root, unread, word, whole=whole, encoding=self._encoding, most_s=max(most_s, 0.0)
        )
        if self._batches == before:  # else a file may have changed after it was read
            self._lacking[word, whole] = lacking.union(unread).difference(found, late)
        return Containing([*found, *failed], late)

    async def _likely(self, pattern: Pattern, candidates: Sequence[str], most_s: float) -> Sequence[str]:
        """Those candidates whose text, or path, names what is to hold the symbol: `Start` stands in 1,000 files of
        Kubernetes, `containerManagerImpl` in five. A server without a grammar beside it may name a container by what
        no text says (`Companion`): its files are all among them."""
        if len(candidates) < MANY_CANDIDATES:
            return candidates
        by_server = {path for path in candidates if not self._indexer.has_grammar(path)}
        until = anyio.current_time() + most_s
        for names in pattern.readings[-1].held:
            word = next(filter(_WORD.fullmatch, names), None)
            if word is None:
                continue
            left_s = max(until - anyio.current_time(), 0.0)
            holding, unread = await find_containing(
                self._root, candidates, word, encoding=self._encoding, most_s=left_s
            )
            kept = by_server.union(holding, unread)
            candidates = [path for path in candidates if path in kept or word in path]
        return candidates

    def _size(self, paths: Iterable[str]) -> int:
        stamps = map(self._tree.files.get, paths)
        return sum(stamp.size for stamp in stamps if stamp)

    async def near(self, pattern: Pattern, within: str | None) -> list[str]:
        """Symbols that may be meant where none fits, as `'name path' (file)`: of the same name in another place, then
        of names spelt alike. Looks at names in a thread (`SymbolIndex.names_like`)."""
        with anyio.move_on_after(MAPPING_S):
            await self._indexer.map_names()
        unread = self._indexer.pending_paths()
        if len(unread) <= FILES_WAITED_FOR:  # a project that was just opened: its names are known in a moment
            await self._indexer.ensure(unread, most_s=MAPPING_S)
        name, holder = pattern.last.name, bare(pattern.container.name) if pattern.container else ""
        hits = self._index.some(name, FILES_SHOWN, within, holder)
        if len(hits) < FEW:
            names = self._index.names_like(name)
            if within is not None and within in self._index:  # where so many names are not all
                names = chain({symbol.name for symbol in self._index.file(within).symbols}, names)
            spelt = await anyio.to_thread.run_sync(nearest, name, names, 2 * FEW)  # some may be gone
            for one in dict.fromkeys(spelt):
                hits += self._index.some(one, FILES_SHOWN, within, holder)
        hits.sort(key=lambda hit: not lies_within(hit.path, within))
        if holder:
            hits.sort(key=lambda hit: all(bare(part.name) != holder for part in hit.file.path(hit.place)[:-1]))
        return [f"{quoted(hit.name_path)} ({escaped(hit.path)})" for hit in hits[:FEW]]
