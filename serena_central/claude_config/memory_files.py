"""CLAUDE.md files: the instructions for an agent that works in a root, in order, with imports.

From the widest to the narrowest: managed, user, folders above the root from the outermost inwards, the root, and
folders in it when files below them are touched. `@path` imports a file, relative to the one that names it; not in code.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from serena_central.claude_config.locations import FOLDER, Locations
from serena_central.claude_config.problems import Place, Problem, Severity
from serena_central.config.document import DocumentError, read_whole
from serena_central.core.owners import is_strangers
from serena_central.core.paths import expanded

NAME, LOCAL_NAME = "CLAUDE.md", "CLAUDE.local.md"

_USER_FOLDERS = {"AGENTS.md": ".codex", "GEMINI.md": ".gemini"}
"""Other clients' memory file → the folder in a user's home that holds it for all projects."""

MOST_HOPS = 4
"""Of imports, from a memory file on."""

WARN_BYTES = 25 * 1024
"""Of all parts together: more leaves less room for the work itself."""

MOST_PARTS = 200

_IMPORT = re.compile(r"(?<!\S)@((?:\\ |[^\s\\])+)")
_PUNCTUATION = ".,;:!?)]}'\"*_"


class Origin(StrEnum):
    MANAGED = "managed"
    USER = "user"
    ABOVE = "above"
    ROOT = "project"
    BELOW = "folder"


class MemoryPart(NamedTuple):
    """One file's text. `imported_by` is the file that names it, None for one that is found by its name."""

    path: Path
    origin: Origin
    text: str
    imported_by: Path | None = None

    @property
    def size(self) -> int:
        """Bytes in UTF-8."""
        return len(self.text.encode("utf-8", "surrogatepass"))


class Memory(NamedTuple):
    """Everything that an agent gets, and what was noted on the way."""

    parts: list[MemoryPart]
    problems: list[Problem]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


Readable = Callable[[Path], str | None]
"""Why a real path may not be read, None where it may."""


def memory_files(
    root: Path,
    touched: Iterable[Path] = (),
    *,
    locations: Locations | None = None,
    names: Sequence[str] = (),
    trusted: bool = False,
    readable: Readable = lambda _path: None,
) -> Memory:
    """The memory of a root (a real path). Blocks for small files; never raises for what stands in them.

    `touched` are files that the agent works on, `names` further file names that count beside CLAUDE.md (AGENTS.md).
    What comes with a repository imports nothing from outside of it unless that is `trusted`.
    """
    collection = _Collection(trusted=trusted, readable=readable)
    for path, origin, within in _places(root, touched, locations or Locations(), names):
        collection.take(path, origin, within)
    memory = Memory(collection.parts, collection.problems)
    if memory.size > WARN_BYTES:
        text = f"memory files have {memory.size / 1024:.1f} KB together, more than the {WARN_BYTES // 1024} KB advised"
        place = Place(str(max(memory.parts, key=lambda part: part.size).path))
        memory.problems.append(
            Problem(Severity.WARNING, place, "", text, "shorten the largest, or move parts into subfolders")
        )
    return memory


def _places(
    root: Path, touched: Iterable[Path], locations: Locations, names: Sequence[str]
) -> Iterator[tuple[Path, Origin, Path | None]]:
    """File, origin, and the folder that it must not lead out of."""
    yield locations.managed_folder / NAME, Origin.MANAGED, None
    yield locations.user_folder / NAME, Origin.USER, None
    for name in names:
        yield locations.home / _USER_FOLDERS.get(name, FOLDER) / name, Origin.USER, None
    for folder in reversed(root.parents[:-1]):
        yield from ((path, Origin.ABOVE, folder) for path in _of(folder, names) if not is_strangers(path, root))
    yield from ((path, Origin.ROOT, root) for path in _of(root, names))
    below: dict[Path, None] = {}
    for file in touched:
        absolute = root / file
        inside = [folder for folder in absolute.parents if folder.is_relative_to(root) and folder != root]
        below.update(dict.fromkeys(reversed(inside)))
    for folder in sorted(below, key=lambda one: (len(one.parts), one)):
        yield from ((path, Origin.BELOW, root) for path in _of(folder, names))


def _of(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    yield folder / NAME
    yield folder / FOLDER / NAME
    for name in names:
        yield folder / name
    yield folder / LOCAL_NAME


class _Collection:
    def __init__(self, *, trusted: bool, readable: Readable) -> None:
        self._trusted = trusted
        self._readable = readable
        self._seen: set[Path] = set()
        self.parts: list[MemoryPart] = []
        self.problems: list[Problem] = []

    def take(self, path: Path, origin: Origin, within: Path | None) -> None:
        real = _real(path)
        if real is not None and real not in self._seen and path.is_file():
            self._add(path, real, origin, within, chain=(), line=0)

    def _add(
        self, path: Path, real: Path, origin: Origin, within: Path | None, *, chain: tuple[Path, ...], line: int
    ) -> None:
        importer = chain[-1] if chain else None
        at = Place(str(importer), line, 1) if importer else Place(str(path))
        if len(self.parts) >= MOST_PARTS:
            return
        denied = self._readable(real)
        if denied is not None:
            self._report(at, f"{path.name} is left out: {denied}", "")
            return
        try:
            text = read_whole(path, within)
        except DocumentError as error:
            self._report(at, f"{path} {error.problem}, and is left out", "it must be readable text of UTF-8")
            return
        if text is None:
            return
        self._seen.add(real)
        self.parts.append(MemoryPart(path, origin, text, importer))
        if "@" in text:
            for named, number in imports_in(text):
                self._import(named, number, path, origin, within, (*chain, path))

    def _import(
        self, named: str, line: int, by: Path, origin: Origin, within: Path | None, chain: tuple[Path, ...]
    ) -> None:
        path = _target(named, by.parent)
        at = Place(str(by), line, 1)
        real = _real(path) if path is not None else None
        if path is None or real is None:
            if "/" in named or "." in named.strip("."):
                self._report(at, f"@{named} refers to no file", "fix the path, or put it into `code`")
            return
        if real in {_real(one) for one in chain}:
            self._report(at, f"@{named} imports a file that it is imported by, and is left out", "remove one of them")
            return
        if real in self._seen:
            return
        if len(chain) > MOST_HOPS:
            self._report(at, f"@{named} is more than {MOST_HOPS} imports away, and is left out", "import it directly")
            return
        outside = within is not None and not real.is_relative_to(within)
        if outside and not self._trusted:
            self._report(
                at, f"@{named} leads out of the repository, and is left out", "trust it: serena-central trust DIR"
            )
            return
        self._add(path, real, origin, None if outside else within, chain=chain, line=line)

    def _report(self, place: Place, text: str, remedy: str) -> None:
        self.problems.append(Problem(Severity.NOTE, place, "", text, remedy))


def _target(named: str, folder: Path) -> Path | None:
    """The file that an import means: as it is written, else without the sentence's punctuation after it."""
    for text in dict.fromkeys((named, named.rstrip(_PUNCTUATION))):
        try:
            path = expanded(text.replace("\\ ", " "))
            found = folder / path
            if text and found.is_file():
                return found
        except (OSError, ValueError, RuntimeError):
            continue
    return None


def _real(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None


def imports_in(text: str) -> list[tuple[str, int]]:
    """What `@` names outside of code, with the 1-based line of its paragraph."""
    from markdown_it import MarkdownIt

    found: list[tuple[str, int]] = []
    for token in MarkdownIt("commonmark", {"maxNesting": 50}).parse(text):
        if token.type != "inline":
            continue
        line = (token.map or [0])[0] + 1
        for child in token.children or ():
            if child.type == "text":
                found += [(one[1], line) for one in _IMPORT.finditer(child.content)]
            elif child.type in ("softbreak", "hardbreak"):
                line += 1
    return found
