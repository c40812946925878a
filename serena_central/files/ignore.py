"""Which files are ignored: git's rules, the project's `ignored_paths`, and a short list of what tools leave.

A path is decided part by part from the root down: below an ignored folder everything is ignored, and nothing in there
can be re-included, as in git. At each part the first of these that matches decides:

1. the project's `ignored_paths` (gitignore patterns; `!` re-includes what git would ignore)
2. `.gitignore` in the same folder, then in the folders above, up to the repository's top, also above the root
3. `.git/info/exclude`, then the user's own excludes file
4. `OF_TOOLS`, also in repositories that forgot to ignore it, where a `!` re-includes it; outside of any, `USUAL`

What a build tool has marked as its own (`output_by`) is ignored, too, unless one of these re-includes it.

Files that git tracks although a pattern matches them count as ignored: the index is not read. A root that its own
repository ignores (a package inside a virtual environment) is treated as outside of it: whoever makes it a project
wants its files.

The patterns are matched by this module: `pathspec` takes 33 µs per path for a `.gitignore` of 70 lines, this 1 µs.
"""

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import PathError
from serena_central.core.nofollow import Opener, open_file
from serena_central.files.glob import BadGlob, translate_part, translate_path
from serena_central.files.text import read_bytes

ALWAYS = frozenset({".git", ".hg", ".svn"})
"""Names that are never part of a project, whatever the patterns say."""

OF_TOOLS = (
    "node_modules/",
    "bower_components/",
    "__pycache__/",
    ".venv/",
    ".tox/",
    ".nox/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "**/.cache/clangd/",
    ".clangd/index/",
    ".ccls-cache/",
    ".zig-cache/",
    "zig-cache/",
    ".gradle/",
    ".metals/",
    ".bloop/",
    ".dart_tool/",
    ".elixir_ls/",
    ".gopls/",
)
"""What package managers and language servers fill, by names that nobody gives to sources. Not `target`, `build`,
`dist`, in which sources lie, too: `output_by` tells those of tools. bazel's are links, which are not followed; `.cargo`
holds a project's own settings."""

USUAL = (*OF_TOOLS, "venv/")
"""What is ignored where git says nothing; in a repository `venv` may be a package, as in Python's own."""

MAX_IGNORE_FILE_BYTES = 1_000_000
"""A larger ignore file is a mistake, and would make every scan slow."""


class Patterns:
    """The patterns of one ignore file, asked with root-relative paths.

    `skip` characters are cut from such a path for a file below the root (`src/.gitignore` skips 4); `above` is put
    before it for a file above the root.
    """

    __slots__ = (
        "_above",
        "_folder_names",
        "_folder_paths",
        "_ignored",
        "_lines",
        "_skip",
        "_where",
        "file_names",
        "file_paths",
        "for_files",
    )

    def __init__(self, lines: Iterable[str], *, skip: int = 0, above: str = "", where: str = "") -> None:
        """`where` tells people what file or setting the patterns stand in."""
        self._skip = skip
        self._above = above
        self._where = where
        read = [(pattern, number, line) for number, line in enumerate(lines, 1) if (pattern := _parse(line))]
        parsed = [pattern for pattern, _, _ in read]
        self._lines = [(number, line.rstrip()) for _, number, line in read]
        self._ignored = [not pattern.negated for pattern in parsed]
        numbered = list(enumerate(parsed))
        for_files = [(number, pattern) for number, pattern in numbered if not pattern.folders_only]
        self._folder_names = _LastMatch((n, p) for n, p in numbered if not p.anchored)
        self._folder_paths = _LastMatch((n, p) for n, p in numbered if p.anchored)
        self.file_names = _LastMatch((n, p) for n, p in for_files if not p.anchored)
        self.file_paths = _LastMatch((n, p) for n, p in for_files if p.anchored)
        self.for_files = bool(for_files)
        """Whether any pattern is about files; else it is not asked of 78,000 of them."""

    def verdict(self, path: str, name: str, is_folder: bool) -> bool | None:
        """True: ignored, False: re-included by a `!`, None: no pattern matches. `name` is the last part of `path`."""
        number = self._deciding(path, name, is_folder)
        return self._ignored[number] if number >= 0 else None

    def line(self, path: str, name: str, is_folder: bool) -> str | None:
        """The line that decides about an entry, in words for people; None if there is none."""
        number = self._deciding(path, name, is_folder)
        return f"line {self._lines[number][0]} of {self._where}, {self._lines[number][1]!r}" if number >= 0 else None

    def _deciding(self, path: str, name: str, is_folder: bool) -> int:
        number = (self._folder_names if is_folder else self.file_names).find(name)
        paths = self._folder_paths if is_folder else self.file_paths
        if paths.matches_any:
            below = self._above + path[self._skip :]
            if below.count("/") <= paths.most_slashes:
                number = max(number, paths.find(below))
        return number

    def asks_for_paths(self, path: str) -> bool:
        """Whether a pattern may match the path of a file in this folder of it, not its name alone."""
        below = self._above + path[self._skip :]
        return self.file_paths.matches_any and below.count("/") <= self.file_paths.most_slashes


Rules = tuple[Patterns, ...]
"""What applies in one folder, strongest first. Folders without an ignore file share their parent's tuple."""


def ignores(rules: Rules, path: str, name: str, is_folder: bool) -> bool:
    """Whether one entry of a folder that is not ignored itself is ignored; `path` is relative to the root."""
    return name in ALWAYS or verdict(rules, path, name, is_folder) is True


def verdict(rules: Rules, path: str, name: str, is_folder: bool) -> bool | None:
    """The verdict of the first rule that matches: True: ignored, False: re-included by a `!`."""
    for patterns in rules:
        if patterns.for_files or is_folder:
            said = patterns.verdict(path, name, is_folder)
            if said is not None:
                return said
    return None


class FileNames:
    """Tells by their names alone that files are not ignored: in a folder with 78,000 files below it, of nearly all."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        asked = [patterns for patterns in rules if patterns.for_files]
        self._anchored = [patterns for patterns in asked if patterns.file_paths.matches_any]
        names = [patterns.file_names for patterns in asked]
        self._plain = frozenset(name for one in names for name in one.plain)
        self._endings = tuple({ending for one in names for ending in one.endings})
        others = [one.expression for one in names if one.expression]
        self._others = re.compile("|".join(others), re.DOTALL).match if others else None

    def decide(self, folder: str) -> bool:
        """Whether names are enough to tell in a folder (root-relative, ends in `/`)."""
        return not any(patterns.asks_for_paths(f"{folder}file") for patterns in self._anchored)

    def may_be_ignored(self, name: str) -> bool:
        """Whether `ignores` is to be asked; of a name that begins with a dot always."""
        return (
            name.startswith(".")
            or name in self._plain
            or name.endswith(self._endings)
            or (self._others is not None and self._others(name) is not None)
        )


CACHE_TAG = "CACHEDIR.TAG"
RUSTC_INFO = ".rustc_info.json"
"""Cargo keeps it in every folder that it builds into."""


def output_by(has: Callable[[str], bool]) -> bool:
    """Whether the names in a folder show that a tool fills it with what can be made again.

    Cargo, uv and many others tag their folders as caches (bford.info/cachedir); CMake leaves its settings where it
    builds, which may be in the midst of the sources. Cargo tags a folder only when it makes it: rust-analyzer may have
    made `target` before, and tagged what it keeps in there alone.
    """
    return has(CACHE_TAG) or has(RUSTC_INFO) or (has("CMakeCache.txt") and not has("CMakeLists.txt"))


OUTPUT_MARKS = frozenset({CACHE_TAG, RUSTC_INFO, "CMakeCache.txt", "CMakeLists.txt"})
"""Names that `output_by` asks for."""


def ignored_by(rules: Rules, path: str, name: str, is_folder: bool) -> str | None:
    """What ignores an entry, in words for people; None if it is not ignored, or never part of a project."""
    if name in ALWAYS:
        return None
    for patterns in rules:
        said = patterns.verdict(path, name, is_folder)
        if said is not None:
            return patterns.line(path, name, is_folder) if said else None
    return None


def read_patterns(file: Path, *, skip: int = 0, above: str = "", opener: Opener = open_file) -> Patterns | None:
    """The patterns of an ignore file, None where there is none that can be read."""
    try:
        data, _ = read_bytes(file, max_bytes=MAX_IGNORE_FILE_BYTES, opener=opener)
    except PathError:
        return None
    lines = data.decode("utf-8-sig", "surrogateescape").split("\n")
    return Patterns(lines, skip=skip, above=above, where=str(file))


class _Pattern(NamedTuple):
    glob: str
    """Without what the fields below say."""
    regex: str
    negated: bool
    folders_only: bool
    anchored: bool
    """Matched against the whole path below its ignore file; else against the name alone."""


_SPECIAL = frozenset("*?[\\")
"""What makes a glob more than a name."""


class _LastMatch:
    """Finds the last of several globs that matches a name or path.

    Most are a plain name, or `*` and an ending, which are looked up: 78,000 files are asked about at once. The others
    are one match of an alternation of their expressions, in reverse order. Each alternative ends in an empty group, so
    that `lastindex` tells which one it was. (A group around each would keep `re` from skipping alternatives by their
    first character.)
    """

    __slots__ = ("_match", "_numbers", "endings", "expression", "matches_any", "most_slashes", "plain")

    def __init__(self, numbered: Iterable[tuple[int, _Pattern]]) -> None:
        self.plain: dict[str, int] = {}
        self.endings: dict[str, int] = {}
        """Each begins with a dot; of names alone, in which a `*` matches anything."""
        others: list[tuple[int, str]] = []
        self.matches_any = False
        self.most_slashes: float = 0
        """In a path that may match: most globs are about the folder that their file lies in."""
        for number, pattern in numbered:
            self.matches_any = True
            slashes = math.inf if "**" in pattern.glob else pattern.glob.count("/")
            self.most_slashes = max(self.most_slashes, slashes)
            if _SPECIAL.isdisjoint(pattern.glob):
                self.plain[pattern.glob] = number
            elif not pattern.anchored and pattern.glob.startswith("*.") and _SPECIAL.isdisjoint(pattern.glob[1:]):
                self.endings[pattern.glob[1:]] = number
            else:
                others.append((number, pattern.regex))
        others.reverse()
        self._numbers = [number for number, _ in others]
        self.expression = "|".join(f"{regex}\\Z()" for _, regex in others)
        self._match = re.compile(self.expression, re.DOTALL).match if others else None

    def find(self, text: str) -> int:
        """The number of the last glob that matches, -1 for none."""
        if not self.matches_any:
            return -1
        last = self.plain.get(text, -1)
        if self.endings:
            dot = text.find(".")
            while dot >= 0:
                if (number := self.endings.get(text[dot:], -1)) > last:
                    last = number
                dot = text.find(".", dot + 1)
        if self._match is not None and self._numbers[0] > last and (found := self._match(text)) and found.lastindex:
            return max(last, self._numbers[found.lastindex - 1])
        return last


def _parse(line: str) -> _Pattern | None:
    """One line as git's dir.c reads it; None for comments, blank lines and patterns that can match nothing."""
    glob = _without_trailing_spaces(line.removesuffix("\r"))
    if glob.startswith("#"):
        return None
    negated = glob.startswith("!")
    glob = glob[negated:]
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob:
        return None
    anchored = "/" in glob
    glob = glob.removeprefix("/")
    try:
        regex = translate_path(glob) if anchored else translate_part(glob)
    except BadGlob:
        return None
    return _Pattern(glob, regex, negated, folders_only, anchored)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and stripped != line else stripped
