"""Walking a root: which folders and files belong to it, and what differs from what was known before.

A `TreeScan` remembers every folder that belongs to the root and collects findings (path → stamp, None for gone) until
somebody takes them. It is the model of one walker at a time: whoever calls it, from whatever thread, calls alone. It
learns about changes by being told where to look (`examine`, `look`); who tells it is `watch`'s and `tree`'s business.

Not part of a root: symlinks (their targets are listed where they are, or lie outside), what is not a regular file,
names that are not UTF-8 (no answer, no database and no message to a language server could carry them; they are noted),
what edits put beside files, what is ignored, what build tools have marked as theirs, and nested repositories,
submodules and worktrees (folders with a `.git` of their own), which are roots of their own.
"""

import os
import stat
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

from serena_central.core.errors import PathError
from serena_central.core.nofollow import OpenFolder, status_of
from serena_central.files.ignore import (
    ALWAYS,
    CACHE_TAG,
    OUTPUT_MARKS,
    FileNames,
    Rules,
    ignored_by,
    ignores,
    output_by,
    read_patterns,
    verdict,
)
from serena_central.files.repository import IGNORE_FILE, OuterRules
from serena_central.files.stamp import Stamp
from serena_central.files.text import read_bytes

TEMPORARY = ".serena-central-"
"""What the names of files begin with that stand beside others while those are edited."""

MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255
"""What Linux takes for a path (with its end), and file systems for a name."""

MAX_TAG_BYTES = 10_000

CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How a cache's tag begins (bford.info/cachedir)."""

ANY_NAME = "a-folder-of-no-special-name"
"""Ignored only where everything is."""


class CatchAll(NamedTuple):
    """A line that ignores every folder in a root which no other line re-includes, and how many folders it leaves out;
    `kept` are those that belong to the root."""

    line: str
    left_out: int
    kept: int


Findings = dict[str, Stamp | None]
"""Root-relative POSIX path → stamp of the file that is there, None when it is gone or ignored now."""


class Folder:
    """One folder of a root. `path` is "" for the root itself, else it ends in `/`."""

    __slots__ = ("files", "folders", "ignore_stamp", "inode", "nested", "output", "path", "rules", "watch_id")

    def __init__(self, path: str) -> None:
        self.path = path
        self.rules: Rules = ()
        self.inode = -1
        self.watch_id = -1
        """Belongs to the watch; -1 while there is none."""
        self.nested = False
        """A repository of its own: empty, and known only because it may cease to be one."""
        self.output = False
        """Filled by a build tool: likewise."""
        self.ignore_stamp: Stamp | None = None
        self.files: set[str] = set()
        self.folders: set[str] = set()

    @property
    def closed(self) -> bool:
        """Nothing below it belongs to the root."""
        return self.nested or self.output


class FolderWatch(Protocol):
    """Hears of every folder before it is listed, so that nothing that happens later is missed."""

    def add(self, folder: Folder, path: str) -> str | None:
        """Watches the folder at the absolute `path`; again, if need be. Nothing is watched when it returns a path:
        that of a known folder which is the same one on disk, was moved, and has to be forgotten first."""
        ...

    def remove(self, folder: Folder) -> None: ...


class TreeScan:
    """The folders of one root, and the findings since they were last taken."""

    def __init__(
        self,
        root: Path,
        outer: OuterRules,
        *,
        use_git: bool,
        watch: FolderWatch | None = None,
        hidden: Callable[[str], bool] | None = None,
    ) -> None:
        """`hidden` tells of a root-relative path whether it is left out whatever the ignore rules say."""
        self._hidden = hidden
        self._root = f"{str(root).rstrip('/')}/"
        self.outer = outer
        self._ignore_file = IGNORE_FILE if use_git else None
        self._watch = watch
        self._findings: Findings = {}
        self.folders: dict[str, Folder] = {}
        self._names: FileNames | None = None
        """Of the rules that were asked for last: most folders have those of the one before."""
        self._not_utf8: dict[str, set[str]] = {}
        self.hidden: set[str] = set()
        """Files and folders that `hidden` told of, root-relative; some may be gone since."""
        self._links: dict[str, set[str]] = {}
        """Folder → symlinks in it that lead to no folder and that no rule ignores, root-relative."""
        self._closed: set[str] = set()
        self._with_rules: set[str] = set()
        """Folders with an ignore file of their own."""

    def take(self) -> Findings:
        """What was found since the last time."""
        findings, self._findings = self._findings, {}
        return findings

    def not_utf8(self) -> list[str]:
        """Files and folders that are left out because their names are not UTF-8, root-relative."""
        return sorted(folder + name for folder, names in self._not_utf8.items() for name in names)

    def links(self) -> Iterable[str]:
        """Symlinks that lead to no folder and that no rule ignores, root-relative."""
        return chain.from_iterable(self._links.values())

    def leaves_out_more_than_git(self) -> bool:
        """Whether something may be left out that git does not ignore: by settings or permission rules, as a repository
        or a tool's output, for its name, or by an ignore file outside of any repository."""
        settings, git = self.outer.stronger or self.outer.leaves_out, self.outer.repository
        return bool(settings or self.hidden or self._closed or self._not_utf8 or (git is None and self._with_rules))

    def outputs(self) -> list[str]:
        """Folders that are left out because a tool marked them as its output, root-relative."""
        return sorted(folder.path for folder in self.folders.values() if folder.output)

    def ignores_everything(self) -> "CatchAll | None":
        """What ignores any folder in the root that is not re-included, if there is such a line and one that it hits."""
        root = self.folders.get("")
        line = ignored_by(root.rules, ANY_NAME, ANY_NAME, is_folder=True) if root is not None else None
        if root is None or line is None:
            return None
        try:
            with os.scandir(self._root) as entries:
                there = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)} - ALWAYS
        except OSError:
            return None
        left_out = [name for name in there if ignored_by(root.rules, name, name, is_folder=True) == line]
        return CatchAll(line, len(left_out), len(root.folders)) if left_out else None

    def stop_watching(self) -> None:
        """Goes on without the watch. Every folder has to be listed again to know what changed."""
        self._watch = None

    def look_everywhere(self, outer: OuterRules) -> None:
        """Lists the whole root, again if need be, by these outer rules."""
        self.outer = outer
        self.look("")

    def root_is_another(self) -> bool:
        """Whether the root was deleted, moved or replaced since it was listed; no watch tells that reliably."""
        known = self.folders.get("")
        try:
            return known is None or os.stat(self._root).st_ino != known.inode  # noqa: PTH116  (half of Path's time)
        except OSError:
            return True

    def look(self, path: str) -> None:
        """Lists a folder that is not ignored, and everything below it, again if it is known."""
        pending = [path]
        while pending:
            folder = self._enter(pending.pop())
            found = self._list(folder) if folder is not None else None
            if folder is None or found is None:
                continue
            files, folders = found
            for gone in folder.folders - folders:
                self.forget(gone)
            self._findings.update(dict.fromkeys(folder.files.difference(files)))
            self._findings.update(files)
            folder.files = set(files)
            folder.folders = folders
            pending.extend(folders)

    def examine(self, folder: Folder, name: str) -> None:
        """Examines one entry of a known folder, after an event."""
        if self._rules_differ(folder, name):
            self.look(folder.path)
            return
        path = folder.path + name
        self._links.get(folder.path, set()).discard(path)
        try:
            status = status_of(self._root + path)
        except OSError:
            self._drop(folder, path)
            self._note_name(folder, name, there=False)
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        left_out = folder.closed or self._leaves_out(folder, path, name, is_folder)
        self._note_name(folder, name, there=not left_out)
        if left_out or not is_utf8(name):
            self._drop(folder, path)
        elif is_folder:
            self._meet_folder(folder, path, status.st_ino)
        elif stat.S_ISREG(status.st_mode):
            self.forget(path + "/")
            folder.files.add(path)
            self._findings[path] = Stamp.of(status)
        else:
            self._drop(folder, path)
            if stat.S_ISLNK(status.st_mode) and not os.path.isdir(self._root + path):  # noqa: PTH112 - strings
                self._links.setdefault(folder.path, set()).add(path)

    def forget(self, path: str) -> None:
        """Drops a folder and all below it, as far as they are known."""
        if path not in self.folders:
            return
        parent = self.folders.get(_parent(path)) if path else None
        if parent is not None:
            parent.folders.discard(path)
        pending = [path]
        while pending:
            folder = self.folders.pop(pending.pop(), None)
            if folder is None:
                continue
            self._not_utf8.pop(folder.path, None)
            self._closed.discard(folder.path)
            self._with_rules.discard(folder.path)
            self._links.pop(folder.path, None)
            if self._watch is not None:
                self._watch.remove(folder)
            self._findings.update(dict.fromkeys(folder.files))
            pending.extend(folder.folders)

    def _drop(self, folder: Folder, path: str) -> None:
        self.forget(path + "/")
        if path in folder.files:
            folder.files.discard(path)
            self._findings[path] = None

    def _meet_folder(self, parent: Folder, path: str, inode: int) -> None:
        known = self.folders.get(path + "/")
        if known is not None and known.inode == inode:
            return
        self._drop(parent, path)
        parent.folders.add(path + "/")
        self.look(path + "/")

    def _enter(self, path: str) -> Folder | None:
        """The folder at `path`, watched; None, and forgotten, when it can't be entered."""
        if path and _parent(path) not in self.folders:
            return None
        folder = self.folders.setdefault(path, Folder(path))
        try:
            while self._watch is not None and (moved := self._watch.add(folder, self._root + path)) is not None:
                self.forget(moved)
        except OSError:  # gone, not to be entered, or deeper than a path may be long
            self.forget(path)
            return None
        return folder

    def _list(self, folder: Folder) -> tuple[dict[str, Stamp], set[str]] | None:
        """Files (path → stamp) and folders right in a folder; None, and forgotten, when it can't be read."""
        files: dict[str, Stamp] = {}
        folders: set[str] = set()
        try:
            with OpenFolder.at(self._root + folder.path) as opened, os.scandir(opened.descriptor) as entries:
                folder.inode = os.fstat(opened.descriptor).st_ino
                listed = list(entries)
                self._links.pop(folder.path, None)
                self._not_utf8.pop(folder.path, None)
                names = {entry.name for entry in listed}
                folder.nested = bool(folder.path) and ".git" in names
                folder.output = not folder.nested and self._is_output(folder, names.__contains__)
                (self._closed.add if folder.closed else self._closed.discard)(folder.path)
                if folder.closed:
                    return {}, set()
                if self._is_deep(folder):
                    listed = [entry for entry in listed if self._has_path(folder.path + entry.name)]
                folder.rules = self._rules(folder, has_own=self._ignore_file in names)
                deciding = self._deciding_names(folder)
                for entry in listed:
                    self._sort_in(folder, entry, files, folders, deciding)
        except OSError:
            self.forget(folder.path)
            return None
        return files, folders

    def _is_deep(self, folder: Folder) -> bool:
        """Whether some names in a folder may make paths that are too long to be opened."""
        return len(os.fsencode(self._root + folder.path)) + MAX_NAME_BYTES >= MAX_PATH_BYTES

    def _has_path(self, path: str) -> bool:
        return len(os.fsencode(self._root + path)) < MAX_PATH_BYTES

    def _deciding_names(self, folder: Folder) -> FileNames | None:
        """What tells of a folder's files by their names that they are not left out; None where names don't decide."""
        if self._hidden is not None:
            return None
        if self._names is None or self._names.rules is not folder.rules:
            self._names = FileNames(folder.rules)
        return self._names if self._names.decide(folder.path) else None

    def _sort_in(
        self,
        folder: Folder,
        entry: os.DirEntry[str],
        files: dict[str, Stamp],
        folders: set[str],
        deciding: FileNames | None,
    ) -> None:
        name = entry.name
        path = folder.path + name
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_certain = deciding is not None and not is_folder and not deciding.may_be_ignored(name)
            if not is_certain and self._leaves_out(folder, path, name, is_folder):
                return
            if not (name.isascii() or is_utf8(name)):
                self._note_name(folder, name, there=True)
            elif is_folder:
                folders.add(path + "/")
            elif entry.is_file(follow_symlinks=False):
                files[path] = Stamp.of(entry.stat(follow_symlinks=False))
            elif entry.is_symlink() and not entry.is_dir():
                self._links.setdefault(folder.path, set()).add(path)
        except OSError:  # gone since it was listed
            return

    def _leaves_out(self, folder: Folder, path: str, name: str, is_folder: bool) -> bool:
        if name.startswith(TEMPORARY):
            return True
        if self._hidden is not None and self._hidden(path):
            self.hidden.add(path)
            return True
        return ignores(folder.rules, path, name, is_folder)

    def _note_name(self, folder: Folder, name: str, *, there: bool) -> None:
        """Takes note of an entry whose name is not UTF-8."""
        if is_utf8(name):
            return
        names = self._not_utf8.setdefault(folder.path, set())
        (names.add if there else names.discard)(name)

    def _rules(self, folder: Folder, *, has_own: bool) -> Rules:
        """What applies in a folder; remembers the stamp of its ignore file from before it is read."""
        strongest = self.outer.stronger
        inherited = self.folders[_parent(folder.path)].rules if folder.path else strongest + self.outer.weaker
        folder.ignore_stamp = None
        if not has_own:
            self._with_rules.discard(folder.path)
            return inherited
        file = f"{self._root}{folder.path}{IGNORE_FILE}"
        folder.ignore_stamp = _stamp(file)
        own = read_patterns(Path(file), skip=len(folder.path)) if folder.ignore_stamp else None
        (self._with_rules.discard if own is None else self._with_rules.add)(folder.path)
        return inherited if own is None else (*strongest, own, *inherited[len(strongest) :])

    def _is_output(self, folder: Folder, has: Callable[[str], bool]) -> bool:
        """Whether a folder below the root is a build tool's output, and no rule re-includes it."""

        def marked(mark: str) -> bool:
            return has(mark) and (mark != CACHE_TAG or _is_cache_tag(f"{self._root}{folder.path}{mark}"))

        if not folder.path or not output_by(marked):
            return False
        path = folder.path.rstrip("/")
        return verdict(self.folders[_parent(folder.path)].rules, path, path.rpartition("/")[2], True) is not False

    def _rules_differ(self, folder: Folder, name: str) -> bool:
        """Whether what was heard of is an ignore file with new content, or makes or ends a nested repository."""
        path = f"{self._root}{folder.path}{name}"
        if name == ".git" and folder.path:
            return os.path.lexists(path) != folder.nested
        if name in OUTPUT_MARKS and not folder.nested:
            there = f"{self._root}{folder.path}"
            return self._is_output(folder, lambda mark: os.path.lexists(there + mark)) != folder.output
        return name == self._ignore_file and not folder.closed and _stamp(path) != folder.ignore_stamp


def _is_cache_tag(path: str) -> bool:
    """Whether a file says what the convention wants it to, and not only is called like it."""
    try:
        return read_bytes(Path(path), max_bytes=MAX_TAG_BYTES)[0].startswith(CACHE_SIGNATURE)
    except PathError:
        return False


def _stamp(path: str) -> Stamp | None:
    """The stamp of a regular file; git follows no symlink to an ignore file either."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return Stamp.of(status) if stat.S_ISREG(status.st_mode) else None


def _parent(path: str) -> str:
    """`a/b/` → `a/`, `a/` → ``."""
    return path[: path.rfind("/", 0, -1) + 1]


def is_utf8(name: str) -> bool:
    """Whether a name, as Python decodes it, is text; bytes that are not UTF-8 are lone surrogates in it (PEP 383)."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)
