"""An index of the words of a project's files: which of them can use a symbol, and what an answer about it depends on.

A language server is asked only about symbols whose names stand in further files: reading all of them once takes less
than a hundred questions. An answer holds while the files that hold the name are as they were, those that hand names on
without naming them (`import *`, `export default`), and those that say how the project is built.
"""

import hashlib
import re
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import PurePosixPath

import anyio
import anyio.to_thread

from serena_central.analysis.python_imports import IMPORTS, Importers
from serena_central.core.pacing import paced
from serena_central.files.stamp import RACY_NS
from serena_central.files.words import FileWords, words_of
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.name_case import may_ignore_case

_UNNAMED = re.compile(rb"import\s*\*|export\s*\*|export\s+default|export\s*=|module\.exports|::\*|import\s+\.\s")
"""What hands on names without naming them."""

_PACKAGE_FILES = frozenset({"index", "__init__", "mod", "lib", "main"})
"""Files that are imported by their folder's name."""


class Surroundings:
    """What the files of one project hold, at one moment."""

    def __init__(self, project: Project, words: dict[str, FileWords], building: dict[str, FileWords]) -> None:
        self._project = project
        self._words = words
        self._holders: dict[tuple[str, str], list[str]] = {}
        self._of_name: dict[tuple[str, str], bytes] = {}
        self._any_case = {path for path in words if _has_names_in_any_case(project, path)}
        specs: dict[str, str] = {path: self._spec(path) for path in words}
        for path, found in words.items():
            for name in found.counts:
                self._holders.setdefault((specs[path], name), []).append(path)
        self._importers = Importers({path: found.lines for path, found in words.items() if _is_python(project, path)})
        everywhere = [*sorted(building.items()), *sorted(words.items())]
        self._common = _digest([path.encode() + words.digest for path, words in everywhere if words.marked])
        """Of the files that any answer depends on."""
        self._built = _digest([path.encode() + words.digest for path, words in sorted(building.items())])
        self.fingerprint = _digest([path.encode() + words.digest for path, words in everywhere])
        """Of all files."""

    @classmethod
    async def of(cls, project: Project, names: Iterable[str]) -> "Surroundings":
        """Reads all code of the project, in a thread; ends soon when cancelled."""
        files, languages = sorted(project.tree.files), project.languages
        paths = [path async for path in paced(files) if languages.is_code(path)]
        building = [path async for path in paced(files) if languages.is_marker(path)]  # of the languages found above
        wanted = set(names)
        stop = threading.Event()

        def read() -> Surroundings:
            words = words_of(
                project.root,
                paths,
                wanted.union(map(imported_as, paths)),
                marker=_UNNAMED,
                lines=lambda path: IMPORTS if _is_python(project, path) else None,
                any_case=lambda path: _has_names_in_any_case(project, path),
                stopped=stop.is_set,
            )
            return cls(project, words, words_of(project.root, building, ()))

        try:
            return await anyio.to_thread.run_sync(partial(read), abandon_on_cancel=True)
        finally:
            stop.set()

    def holders(self, hit: Hit) -> Sequence[str]:
        """Files that a server could find uses of a symbol in, its own among them."""
        spec = self._spec(hit.path)
        found = self._holders.get((spec, self._word(hit.path, hit.symbol.name)), [])
        own = self._words.get(hit.path)
        if own is None or not own.marked:
            return found
        return sorted({*found, *self._holders.get((spec, self._word(hit.path, imported_as(hit.path))), [])})

    def may_be_used_elsewhere(self, hit: Hit) -> bool:
        """Whether any other file could use a symbol: one that holds its name, and in Python can get at it."""
        if all(path == hit.path for path in self.holders(hit)):
            return False
        if hit.symbol.container >= 0 or not _is_python(self._project, hit.path):
            return True
        return self._importers.reach(
            hit.path,
            uses=lambda path: self.count_in(path, hit.symbol.name) > 0,
            hands_on=lambda path: self._words[path].marked or self.names_file(path, hit.path),
        )

    def names_file(self, path: str, other: str) -> bool:
        """Whether a file holds the word by which another is imported."""
        return self.count_in(path, imported_as(other)) > 0

    def holds(self, path: str, names: Collection[str]) -> bool:
        """Whether a file holds one of these words."""
        found = self._words.get(path)
        if path in self._any_case:
            names = {name.lower() for name in names}
        return found is not None and any(name in names for name in found.counts)

    def hands_on(self, path: str) -> bool:
        """Whether a file may hand on what it imports without naming it."""
        found = self._words.get(path)
        return found is not None and found.marked

    def counts(self, hit: Hit) -> dict[str, int]:
        """The files that hold a symbol's name → how many places in each do, its own among them."""
        return {path: self.count_in(path, hit.symbol.name) for path in self.holders(hit)}

    def count_in(self, path: str, name: str) -> int:
        """How often a word stands in a file."""
        found = self._words.get(path)
        return found.counts[self._word(path, name)] if found else 0

    def digest(self, hit: Hit) -> bytes:
        """Of all that an answer about a symbol depends on."""
        key = self._spec(hit.path), self._word(hit.path, hit.symbol.name)
        if key not in self._of_name:
            held = self._holders.get(key, ())
            self._of_name[key] = _digest([path.encode() + self._words[path].digest for path in held])
        meaning = self._project.languages.meaning(hit.path) or ""
        place = f"{hit.path}\0{hit.symbol.name_line}:{hit.symbol.name_column}"
        own = self._words[hit.path].digest if hit.path in self._words else b""
        return _digest([meaning.encode(), place.encode(), own, self._common, self._built, self._of_name[key]])

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
