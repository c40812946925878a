"""Reads git's metadata about a root: the repository around it, its excludes, the ignore files above.

These files lie where the tree does not watch: whoever asks whether they have changed notices it by a watch of their
paths, or compares them by stat (a few µs each). No git program is run; of git's configuration only `core.excludesFile`
of the user is read. Symlinks are followed: these files are git's and the user's own (dotfiles), and nothing but
patterns and places is taken from them.
"""

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from serena_central.core.errors import PathError
from serena_central.core.nofollow import open_following
from serena_central.core.paths import expanded
from serena_central.files.ignore import OF_TOOLS, USUAL, Patterns, Rules, ignores, read_patterns
from serena_central.files.stamp import Stamp
from serena_central.files.text import read_bytes

IGNORE_FILE = ".gitignore"

_MAX_CONFIG_BYTES = 1_000_000
"""Bound for git's small files: configuration, and the pointers of worktrees and submodules."""

_patterns_of = partial(read_patterns, opener=open_following)

_SECTION = re.compile(r'^\s*\[\s*(\w+)\s*("[^"]*")?\s*\]')
_EXCLUDES_FILE = re.compile(r'^\s*excludesfile\s*=\s*"?([^"#;]*?)"?\s*$', re.IGNORECASE)


OuterState = tuple[str | None, list[Stamp | None]]


class OuterRules:
    """The rules that apply at a root before any ignore file in it. When `state()` is not `seen` any more, make new ones
    and scan again. `paths` are the files that the state is of, there or not: those that were read, or were missing, and
    what marks a repository.

    `stronger` rules come before the `.gitignore` files in the root, `weaker` ones behind them. `repository` is the top
    folder of the one around the root; `leaves_out`: it ignores the root.
    """

    def __init__(self, root: Path, *, ignored_paths: Sequence[str] = (), use_git: bool = True) -> None:
        self._root = root
        self._markers = [str(folder / ".git") for folder in (root, *root.parents)] if use_git else []
        self._marker = self._nearest_marker()
        self.repository = Path(self._marker).parent if self._marker is not None else None
        self.leaves_out = False
        self._files: list[str] = []
        self.stronger: Rules = (Patterns(ignored_paths, where="the setting ignored_paths"),) if ignored_paths else ()
        self.weaker: Rules = (Patterns(USUAL, where="the usual ignore rules"),)
        if self.repository is not None:
            self._read_git(self.repository)
        self.paths = (*self._markers, *self._files)
        self.seen = self.state()

    def state(self) -> OuterState:
        """What the files are now, and the repository's marker."""
        return self._nearest_marker(), [_stamp(file) for file in self._files]

    def _nearest_marker(self) -> str | None:
        """The `.git` of the repository around the root."""
        return next((marker for marker in self._markers if os.path.lexists(marker)), None)

    def _read_git(self, top: Path) -> None:
        parts = self._root.relative_to(top).parts
        exclude = _common_folder(top / ".git") / "info" / "exclude"
        configurations = _user_configurations()
        users = _user_excludes(configurations)
        above = [top.joinpath(*parts[:depth]) / IGNORE_FILE for depth in range(len(parts))]
        self._files = [str(file) for file in (*above, exclude, users, *configurations)]
        self.leaves_out = _ignored_folder(top, parts, [exclude, users]) is not None  # it, or what it lies in
        if self.leaves_out:
            return
        levels = [
            _patterns_of(file, above="".join(f"{part}/" for part in parts[depth:]))
            for depth, file in reversed(list(enumerate(above)))
        ]
        whole = "".join(f"{part}/" for part in parts)
        levels += [_patterns_of(exclude, above=whole), _patterns_of(users, above=whole)]
        of_tools = Patterns(OF_TOOLS, where="the usual ignore rules")
        self.weaker = (*(level for level in levels if level is not None), of_tools)


def is_ignored_below(folder: Path, root: Path) -> bool:
    """Whether git ignores `root`, or a folder between it and `folder`, which lies above it.

    Each repository around the root decides as far as the next one in it.
    """
    inner = root
    for top in (above for above in root.parents if os.path.lexists(above / ".git")):
        weakest = [_common_folder(top / ".git") / "info" / "exclude", _user_excludes(_user_configurations())]
        ignored = _ignored_folder(top, inner.relative_to(top).parts, weakest)
        if ignored is not None and folder in ignored.parents:
            return True
        if folder.is_relative_to(top):
            return False
        inner = top
    return False


def _ignored_folder(top: Path, parts: Sequence[str], weakest: Sequence[Path]) -> Path | None:
    """The outermost folder on the way from `top` down to `parts`, that one included, which the repository ignores."""
    rules = tuple(level for file in weakest if (level := _patterns_of(file)) is not None)
    path = ""
    for depth, part in enumerate(parts):
        level = _patterns_of(top.joinpath(*parts[:depth]) / IGNORE_FILE, skip=len(path))
        rules = (level, *rules) if level is not None else rules
        if ignores(rules, path + part, part, is_folder=True):
            return top / path / part
        path += part + "/"
    return None


def _common_folder(dot_git: Path) -> Path:
    """The folder of the repository proper: `.git` itself, or what the `.git` file of a worktree or submodule names."""
    pointer = _small_file(dot_git) if dot_git.is_file() else ""
    folder = dot_git.parent / pointer.removeprefix("gitdir:").strip() if pointer.startswith("gitdir:") else dot_git
    common = _small_file(folder / "commondir").strip()
    return folder / common if common else folder


def _user_configurations() -> list[Path]:
    """Git's configuration files of this user, the strongest first."""
    return [Path.home() / ".gitconfig", _user_folder() / "config"]


def _user_folder() -> Path:
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "git"


def _user_excludes(configurations: Sequence[Path]) -> Path:
    for file in configurations:
        section = ""
        for line in _small_file(file).splitlines():
            if opened := _SECTION.match(line):
                section = opened[1].lower() if not opened[2] else ""
            elif section == "core" and (found := _EXCLUDES_FILE.match(line)):
                return expanded(found[1].strip())
    return _user_folder() / "ignore"


def _small_file(file: Path) -> str:
    """The text of one of git's own files, empty where there is none that can be read."""
    try:
        return read_bytes(file, max_bytes=_MAX_CONFIG_BYTES, opener=open_following)[0].decode(
            "utf-8", "surrogateescape"
        )
    except PathError:
        return ""


def _stamp(file: str) -> Stamp | None:
    try:
        return Stamp.of(os.stat(file))  # noqa: PTH116  (Path.stat takes twice the time, on the way of every call)
    except OSError:
        return None
