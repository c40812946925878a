"""An index of the words of a project's files: which of them can use a symbol, and what an answer about it depends on.

A language server is asked only about symbols whose names stand in further files: reading all of them once takes less
than a hundred questions. An answer holds while the files that hold the name are as they were, those that hand names on
without naming them (`import *`, `export default`), and those that say how the project is built.
"""

import hashlib
import re
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

import anyio
import anyio.to_thread

from serena_central.analysis.python_imports import Importers, import_statements
from serena_central.core.pacing import paced
from serena_central.files.stamp import RACY_NS
from serena_central.files.words import FileWords, words_of, words_of_each
from serena_central.lsp.go_platforms import BUILD_LINES, other_platform
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.name_case import may_ignore_case

_UNNAMED = re.compile(rb"import\s*\*|export\s*\*|export\s+default|export\s*=|module\.exports|::\*|import\s+\.\s")
"""What hands on names without naming them."""

_PACKAGE_FILES = frozenset({"index", "__init__", "mod", "lib", "main"})
"""Files that are imported by their folder's name."""


class _Words:
    """Which words stand in which files, and how often: arrays of numbers, since a dictionary for each of 50,000 files
    took 200 MB, and every full garbage collection looked at them for 0.3 s."""

    def __init__(self, each: Iterable[tuple[str, FileWords]]) -> None:
        self.paths: list[str] = []
        self.digests: list[bytes] = []
        self.marked = bytearray()
        """Whether the marker occurs."""
        self._lines: dict[str, list[bytes]] = {}
        """Of files that have such lines: imports of Python, build constraints of Go."""
        self._holders: dict[str, array[int]] = {}
        """Word → the numbers of the files that hold it, in ascending order …"""
        self._counts: dict[str, array[int]] = {}
        """… and how often it stands in each."""
        for number, (path, found) in enumerate(each):
            self.paths.append(path)
            self.digests.append(found.digest)
            self.marked.append(found.marked)
            if found.lines:
                self._lines[path] = found.lines
            for word, count in found.counts.items():
                if word not in self._holders:
                    self._holders[word], self._counts[word] = array("I"), array("I")
                self._holders[word].append(number)
                self._counts[word].append(count)
        self.numbers = {path: number for number, path in enumerate(self.paths)}

    def taken_lines(self) -> dict[str, list[bytes]]:
        """The lines by path, once: nobody needs them for long."""
        lines, self._lines = self._lines, {}
        return lines

    def holders(self, word: str) -> Sequence[int]:
        """The numbers of the files that hold a word, in ascending order."""
        return self._holders.get(word, ())

    def count(self, path: str, word: str) -> int:
        """How often a word stands in a file."""
        number, held = self.numbers.get(path), self._holders.get(word)
        if number is None or held is None:
            return 0
        place = bisect_left(held, number)
        return self._counts[word][place] if place < len(held) and held[place] == number else 0


class Surroundings:
    """What the files of one project hold, at one moment."""

    def __init__(self, project: Project, words: _Words, building: dict[str, FileWords]) -> None:
        self._project = project
        self._words = words
        self._held: dict[tuple[str, str], list[str]] = {}
        """Name of a language server and word → files, of words that were asked for."""
        self._of_name: dict[tuple[str, str], bytes] = {}
        self._any_case = {path for path in words.paths if _has_names_in_any_case(project, path)}
        self._specs = [self._spec(path) for path in words.paths]
        lines = words.taken_lines()
        self.other_platforms = {
            path: platform
            for path in words.paths
            if is_go(project, path) and (platform := other_platform(path, lines.get(path, ()))) is not None
        }
        """Files of Go that are not built on this platform, as far as that is plain → for what they are."""
        self._importers = Importers({path: lines.get(path, []) for path in words.paths if _is_python(project, path)})
        built = [(path, one.digest, one.marked) for path, one in sorted(building.items())]
        own = sorted(zip(words.paths, words.digests, words.marked, strict=True))
        everywhere = [(path.encode() + digest, marked) for path, digest, marked in (*built, *own)]
        self._common = _digest(part for part, marked in everywhere if marked)
        """Of the files that any answer depends on."""
        self._built = _digest(path.encode() + digest for path, digest, _ in built)
        self.fingerprint = _digest(part for part, _ in everywhere)
        """Of all files."""

    @classmethod
    async def of(cls, project: Project, names: Iterable[str], *, with_modules: bool = False) -> "Surroundings":
        """Reads all code of the project for these words, in a thread; ends soon when cancelled. `with_modules`: for
        those by which its files are imported, too."""
        files, languages = sorted(project.tree.files), project.languages
        paths = [path async for path in paced(files) if languages.is_code(path)]
        building = [path async for path in paced(files) if languages.is_marker(path)]  # of the languages found above
        wanted = set(names)
        if with_modules:
            wanted.update(map(imported_as, paths))
        stop = threading.Event()

        def read() -> Surroundings:
            each = words_of_each(
                project.root,
                paths,
                wanted,
                marker=_UNNAMED,
                lines=lambda path: _lines_wanted(project, path),
                any_case=lambda path: _has_names_in_any_case(project, path),
                stopped=stop.is_set,
            )
            return cls(project, _Words(each), words_of(project.root, building, ()))

        try:
            return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
        finally:
            stop.set()

    def holders(self, hit: Hit) -> Sequence[str]:
        """Files that a server could find uses of a symbol in, its own among them. The word by which others import its
        file must have been asked for."""
        spec = self._spec(hit.path)
        found = self._holding(spec, self._word(hit.path, hit.symbol.name))
        if not self.hands_on(hit.path):
            return found
        return sorted({*found, *self._holding(spec, self._word(hit.path, imported_as(hit.path)))})

    def may_be_used_elsewhere(self, hit: Hit) -> bool:
        """Whether any other file could use a symbol: one that holds its name, and in Python can get at it."""
        if all(path == hit.path for path in self.holders(hit)):
            return False
        if hit.symbol.container >= 0 or not _is_python(self._project, hit.path):
            return True
        return self._importers.reach(
            hit.path,
            uses=lambda path: self.count_in(path, hit.symbol.name) > 0,
            hands_on=lambda path: self.hands_on(path) or self.names_file(path, hit.path),
        )

    def names_file(self, path: str, other: str) -> bool:
        """Whether a file holds the word by which another is imported, which must have been asked for."""
        return self.count_in(path, imported_as(other)) > 0

    def holding(self, names: Iterable[str]) -> set[str]:
        """The files that hold one of these words."""
        found: set[str] = set()
        for name in names:
            for word in {name, name.lower()} if self._any_case else {name}:
                held = map(self._words.paths.__getitem__, self._words.holders(word))
                found.update(path for path in held if word == self._word(path, name))
        return found

    def hands_on(self, path: str) -> bool:
        """Whether a file may hand on what it imports without naming it."""
        number = self._words.numbers.get(path)
        return number is not None and bool(self._words.marked[number])

    def counts(self, hit: Hit) -> dict[str, int]:
        """The files that hold a symbol's name → how many places in each do, its own among them."""
        return {path: self.count_in(path, hit.symbol.name) for path in self.holders(hit)}

    def count_in(self, path: str, name: str) -> int:
        """How often a word stands in a file."""
        return self._words.count(path, self._word(path, name))

    def digest(self, hit: Hit) -> bytes:
        """Of all that an answer about a symbol depends on."""
        key = self._spec(hit.path), self._word(hit.path, hit.symbol.name)
        if key not in self._of_name:
            self._of_name[key] = _digest(path.encode() + self._digest_of(path) for path in self._holding(*key))
        meaning = self._project.languages.meaning(hit.path) or ""
        place = f"{hit.path}\0{hit.symbol.name_line}:{hit.symbol.name_column}"
        own = self._digest_of(hit.path)
        return _digest([meaning.encode(), place.encode(), own, self._common, self._built, self._of_name[key]])

    def _digest_of(self, path: str) -> bytes:
        number = self._words.numbers.get(path)
        return b"" if number is None else self._words.digests[number]

    def _holding(self, spec: str, word: str) -> list[str]:
        """The files of a language server that hold a word, as it is counted there."""
        known = self._held.get((spec, word))
        if known is None:
            words, specs = self._words, self._specs
            known = [words.paths[number] for number in words.holders(word) if specs[number] == spec]
            self._held[spec, word] = known
        return known

    def _word(self, path: str, name: str) -> str:
        """As what a file's words are counted."""
        return name.lower() if path in self._any_case else name

    def _spec(self, path: str) -> str:
        spec = self._project.languages.spec_for(path)
        return spec.name if spec else ""


async def state_of(project: Project) -> bytes | None:
    """A digest of all that is asked and answered depends on, without reading a file; None if a change could be missed.

    Each file of code with its stamp, and who said when what it holds; the files that say how the project is built; the
    language servers, and the environment that imports are resolved in.
    """
    found = hashlib.blake2b(digest_size=16)
    files = project.tree.files
    async for path in paced(project.tree.below("")):
        stamp = files.get(path)
        if stamp is None:
            return None  # it went meanwhile
        if project.languages.is_code(path):
            entry = project.index.entry(path)
            # A file that changes under the same stamp is indexed again (its event, or RACY_NS after a restart).
            known = (entry.stamp, entry.indexed_at_ns, entry.source) if entry else None
            _add(found, repr((path, stamp, project.languages.meaning(path), known)).encode("utf-8", "replace"))
        elif project.languages.is_marker(path):
            if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) < RACY_NS:
                return None
            _add(found, repr((path, stamp)).encode("utf-8", "replace"))
    return found.digest()


def _lines_wanted(project: Project, path: str) -> Callable[[bytes], list[bytes]] | None:
    if _is_python(project, path):
        return import_statements
    return BUILD_LINES.findall if is_go(project, path) else None


def is_go(project: Project, path: str) -> bool:
    return project.languages.language_of(path) == "go"


def _is_python(project: Project, path: str) -> bool:
    return project.languages.language_of(path) == "python"


def _has_names_in_any_case(project: Project, path: str) -> bool:
    return may_ignore_case(project.languages.language_of(path) or "")


def imported_as(path: str) -> str:
    """The word by which other files import a file."""
    file = PurePosixPath(path)
    return file.parent.name if file.stem in _PACKAGE_FILES else file.stem


def _digest(parts: Iterable[bytes]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        _add(found, part)
    return found.digest()


def _add(found: hashlib.blake2b, part: bytes) -> None:
    found.update(len(part).to_bytes(4, "big") + part)
