"""Walking a root: which folders and files belong to it, and what differs from what was known before.

A `TreeScan` remembers every folder that belongs to the root and collects findings (path → stamp, None for gone) until
somebody takes them. It is the model of one walker at a time: whoever calls it, from whatever thread, calls alone. It
learns about changes by being told where to look (`examine`, `look`); who tells it is `watch`'s and `tree`'s business.

Not part of a root: symlinks (their targets are listed where they are, or lie outside), what is not a regular file,
names that are not UTF-8 (no answer, no database and no message to a language server could carry them; they are noted),
what edits put beside files, what is ignored, what build tools have marked as theirs, and nested repositories,
submodules and worktrees (folders with a `.git` of their own), which are roots of their own. Some of that is followed
anyway, apart from the root's own files: see `left_out`.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, islice
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
from serena_central.files.left_out import KEPT_MARKS, IsRead, LeftOut, is_kept
from serena_central.files.mounts import leads_apart, mounted_below
from serena_central.files.permissions import may_read
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

    __slots__ = (
        "files",
        "folders",
        "heeds",
        "ignore_stamp",
        "inode",
        "kept",
        "left_out",
        "left_out_files",
        "nested",
        "output",
        "path",
        "rules",
        "watch_id",
    )

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
        self.kept = False
        """Nothing in it is followed: a tool keeps it for itself, or there is too much. Of closed ones only."""
        self.left_out = False
        """Ignored, or below a closed one: followed for language servers alone."""
        self.heeds: Callable[[str], bool] | None = None
        """Of one that is left out: what the names of files are like of which the watch has to tell."""
        self.ignore_stamp: Stamp | None = None
        self.files: set[str] = set()
        self.left_out_files: set[str] = set()
        """Those that are followed although they don't belong to the root."""
        self.folders: set[str] = set()
        """Both such as belong to the root and such as are left out."""

    @property
    def closed(self) -> bool:
        """Nothing below it belongs to the root."""
        return self.nested or self.output or self.left_out


class _Listing(NamedTuple):
    """What lies right in a folder: what belongs to the root, and what is followed besides."""

    files: dict[str, Stamp]
    folders: set[str]
    left_out_files: dict[str, Stamp]
    left_out_folders: set[str]


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
        is_read: IsRead | None = None,
    ) -> None:
        """`hidden` tells of a root-relative path whether it is left out whatever the ignore rules say. With `is_read`
        such files are followed that are left out and that servers may read."""
        self._hidden = hidden
        self.left_out = None
        if is_read is not None:
            self.left_out = LeftOut(is_read, watched=watch is not None, mounted=mounted_below(str(root)))
        self._root = f"{str(root).rstrip('/')}/"
        self.outer = outer
        self._ignore_file = IGNORE_FILE if use_git else None
        self._watch = watch
        self._findings: Findings = {}
        self.folders: dict[str, Folder] = {}
        self._new_folders: list[str] = []
        self._names: FileNames | None = None
        """Of the rules that were asked for last: most folders have those of the one before."""
        self._not_utf8: dict[str, set[str]] = {}
        self._unreadable: dict[str, set[str]] = {}
        """Folder → names in it of what this user may not read; those of folders end with `/`."""
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

    def take_new_folders(self) -> list[str]:
        """Folders that were met since the last time, without those in others of them."""
        found, self._new_folders = set(self._new_folders), []
        return sorted(path for path in found if path in self.folders and _parent(path) not in found)

    def take_left_out(self) -> Findings:
        """The same of files that are left out and followed."""
        if self.left_out is None:
            return {}
        if self.left_out.links_moved:  # one may lead through another
            for path in list(self.left_out.links):
                try:
                    self._resolve(self.left_out, path)
                except OSError:  # no link any more: it will be heard of
                    self.left_out.drop_link(path)
            self.left_out.links_moved = False
        findings, self.left_out.findings = self.left_out.findings, {}
        return findings

    def not_utf8(self) -> list[str]:
        """Files and folders that are left out because their names are not UTF-8, root-relative."""
        return sorted(folder + name for folder, names in self._not_utf8.items() for name in names)

    def unreadable(self) -> list[str]:
        """Files and folders that belong to the root and that this user may not read, root-relative."""
        return sorted(folder + name for folder, names in self._unreadable.items() for name in names)

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
        kept = sum(not folder.left_out for path in root.folders if (folder := self.folders.get(path)))
        return CatchAll(line, len(left_out), kept) if left_out else None

    def stop_watching(self) -> None:
        """Goes on without the watch. Every folder has to be listed again to know what changed."""
        self._watch = None

    def end_left_out(self) -> bool:
        """Ends following folders that are left out, so that their watches are free; whether it did before."""
        if self.left_out is None or self.left_out.has_ended:
            return False
        self.left_out.has_ended = True
        findings, self.left_out.findings = self.left_out.findings, {}
        for path in [folder.path for folder in self.folders.values() if folder.left_out]:
            self.forget(path)
        self.left_out.findings = findings  # of what is no longer followed nothing is known
        return True

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

    def look(self, path: str, *, left_out: bool = False) -> None:
        """Lists a folder and everything below it, again if it is known. What is left out comes later, level by level:
        one deep folder does not use up what all may have."""
        pending, later = ([], deque([path])) if left_out else ([path], deque[str]())
        while pending or later:
            folder = (
                self._enter(pending.pop(), left_out=False) if pending else self._enter(later.popleft(), left_out=True)
            )
            found = self._list(folder) if folder is not None else None
            if folder is None or found is None:
                continue
            files, folders, left_out_files, left_out_folders = found
            for gone in folder.folders - folders - left_out_folders:
                self.forget(gone)
            if self.left_out is not None and (left_out_files or folder.left_out_files):
                folder.left_out_files = self.left_out.take_in(folder.path, folder.left_out_files, left_out_files)
            self._findings.update(dict.fromkeys(folder.files.difference(files)))
            self._findings.update(files)
            folder.files = set(files)
            folder.folders = folders | left_out_folders
            pending.extend(folders)
            later.extend(left_out_folders)

    def examine(self, folder: Folder, name: str) -> None:
        """Examines one entry of a known folder, after an event."""
        if self._rules_differ(folder, name):
            self.look(folder.path, left_out=folder.left_out)
            return
        path = folder.path + name
        self._links.get(folder.path, set()).discard(path)
        try:
            status = status_of(self._root + path)
        except OSError:
            self._drop(folder, path)
            self._note_name(folder, name, there=False)
            self._note_access(folder.path, name, may_read=True)
            self._note_access(folder.path, name + "/", may_read=True)
            return
        is_folder = stat.S_ISDIR(status.st_mode)
        left_out = folder.closed or self._leaves_out(folder, path, name, is_folder)
        self._note_name(folder, name, there=not left_out)
        is_link = stat.S_ISLNK(status.st_mode)
        followed = is_link or (not folder.kept and self._follows(path, name, is_folder))
        if not is_utf8(name) or (left_out and not followed):
            self._drop(folder, path)
        elif is_folder:
            self._meet_folder(folder, path, status, left_out)
        elif stat.S_ISREG(status.st_mode):
            if self.is_link(path):
                self._drop(folder, path)
            self._note_access(folder.path, name, may_read=left_out or may_read(self._root + path, status))
            self._meet_file(folder, path, Stamp.of(status), left_out)
        else:
            self._drop(folder, path)
            if is_link and not left_out and (self._leads_apart(path) or not os.path.isdir(self._root + path)):  # noqa: PTH112
                self._links.setdefault(folder.path, set()).add(path)
            if is_link and not folder.kept and (stamp := self._link(folder, path, name)) is not None:
                self._meet_file(folder, path, stamp, left_out=True)

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
            self._unreadable.pop(folder.path, None)
            self._closed.discard(folder.path)
            self._with_rules.discard(folder.path)
            self._links.pop(folder.path, None)
            if self._watch is not None:
                self._watch.remove(folder)
            self._findings.update(dict.fromkeys(folder.files))
            if self.left_out is not None:
                self.left_out.take_in(folder.path, folder.left_out_files, {})
                self.left_out.missing.pop(folder.path, None)
                self.left_out.folders -= folder.left_out
            pending.extend(folder.folders)

    def _drop(self, folder: Folder, path: str) -> None:
        self.forget(path + "/")
        if path in folder.files:
            folder.files.discard(path)
            self._findings[path] = None
        if self.left_out is not None and path in folder.left_out_files:
            folder.left_out_files.discard(path)
            self.left_out.take_in(folder.path, {path}, {})

    def _meet_file(self, folder: Folder, path: str, stamp: Stamp, left_out: bool) -> None:
        self.forget(path + "/")
        if not left_out:
            if path in folder.left_out_files:
                self._drop(folder, path)
            folder.files.add(path)
            self._findings[path] = stamp
        elif self.left_out is not None:
            if path in folder.files:
                self._drop(folder, path)
            known = {path} & folder.left_out_files
            folder.left_out_files |= self.left_out.take_in(folder.path, known, {path: stamp})

    def _meet_folder(self, parent: Folder, path: str, status: os.stat_result, left_out: bool) -> None:
        known = self.folders.get(path + "/")
        is_known = known is not None and known.inode == status.st_ino and known.left_out == left_out
        # Its mode may be what has changed, and what it lets see with it.
        if is_known and not self._unreadable.get(path + "/") and may_read(self._root + path, status):
            return
        self._drop(parent, path)
        parent.folders.add(path + "/")
        self.look(path + "/", left_out=left_out)

    def _enter(self, path: str, *, left_out: bool) -> Folder | None:
        """The folder at `path`, watched; None, and forgotten, when it can't be entered."""
        if path and _parent(path) not in self.folders:
            return None
        folder = self.folders.get(path)
        if folder is None:
            folder = Folder(path)
            self._new_folders.append(path)
        if self.left_out is not None:
            if left_out and not folder.left_out and not self.left_out.has_room(path, _parent(path)):
                self.forget(path)
                return None
            self.left_out.folders += left_out - folder.left_out
        folder.left_out = left_out
        folder.heeds = self.left_out.heeds if left_out and self.left_out is not None else None
        self.folders[path] = folder
        try:
            while self._watch is not None and (moved := self._watch.add(folder, self._root + path)) is not None:
                self.forget(moved)
        except OSError as error:  # gone, not to be entered, or deeper than a path may be long
            self._close(folder, error)
            return None
        return folder

    def _list(self, folder: Folder) -> _Listing | None:
        """What lies right in a folder; None, and forgotten, when it can't be read."""
        found = _Listing({}, set(), {}, set())
        if self.left_out is not None:
            self.left_out.missing.pop(folder.path, None)
        bounds = self.left_out if folder.left_out else None
        try:
            with OpenFolder.at(self._root + folder.path) as opened, os.scandir(opened.descriptor) as entries:
                folder.inode = os.fstat(opened.descriptor).st_ino
                listed = list(entries if bounds is None else islice(entries, bounds.most_entries + 1))
                self._links.pop(folder.path, None)
                self._not_utf8.pop(folder.path, None)
                self._unreadable.pop(folder.path, None)
                names = {entry.name for entry in listed}
                belongs = bool(folder.path) and not folder.left_out
                folder.nested = belongs and ".git" in names
                folder.output = belongs and not folder.nested and self._is_output(folder, names.__contains__)
                (self._closed.add if folder.nested or folder.output else self._closed.discard)(folder.path)
                folder.kept = folder.closed and (self.left_out is None or is_kept(names))
                if bounds is not None and not folder.kept and len(listed) > bounds.most_entries:
                    folder.kept, bounds.missing[folder.path] = True, folder.path
                if folder.kept:
                    return found
                if self._is_deep(folder):
                    listed = [entry for entry in listed if self._has_path(folder.path + entry.name)]
                if folder.closed:
                    for entry in listed:
                        self._sort_left_out(folder, entry, found)
                    return found
                folder.rules = self._rules(folder, has_own=self._ignore_file in names)
                deciding = self._deciding_names(folder)
                for entry in listed:
                    self._sort_in(folder, entry, found, deciding)
        except OSError as error:
            self._close(folder, error)
            return None
        self._note_access(*_named(folder.path), may_read=True)
        return found

    def _close(self, folder: Folder, error: OSError) -> None:
        """Forgets a folder that can't be read, but not that it is there."""
        self.forget(folder.path)
        # A descriptor for passing through (`OpenFolder.at`) lists nothing.
        may_not = isinstance(error, PermissionError) or error.errno == errno.EBADF
        if may_not and folder.path and not folder.left_out:
            self._note_access(*_named(folder.path), may_read=False)

    def _note_access(self, folder: str, name: str, *, may_read: bool) -> None:
        """Takes note of an entry of a folder that this user may not read, or may read now."""
        if not may_read:
            self._unreadable.setdefault(folder, set()).add(name)
        elif names := self._unreadable.get(folder):
            names.discard(name)

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
        found: _Listing,
        deciding: FileNames | None,
    ) -> None:
        name = entry.name
        path = folder.path + name
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_certain = deciding is not None and not is_folder and not deciding.may_be_ignored(name)
            if not is_certain and self._leaves_out(folder, path, name, is_folder):
                self._sort_left_out(folder, entry, found)
                return
            if not (name.isascii() or is_utf8(name)):
                self._note_name(folder, name, there=True)
            elif is_folder:
                found.folders.add(path + "/")
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.files[path] = Stamp.of(status)
                if not may_read(self._root + path, status):
                    self._note_access(folder.path, name, may_read=False)
            elif entry.is_symlink():
                if self._leads_apart(path) or not entry.is_dir():
                    self._links.setdefault(folder.path, set()).add(path)
                self._sort_left_out(folder, entry, found)
        except PermissionError:
            self._note_access(folder.path, name, may_read=False)
        except OSError:  # gone since it was listed
            return

    def _sort_left_out(self, folder: Folder, entry: os.DirEntry[str], found: _Listing) -> None:
        path = folder.path + entry.name
        most = self.left_out.room + len(folder.left_out_files) if self.left_out is not None else 0
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_utf8(entry.name):
                return
            if entry.is_symlink():
                if (stamp := self._link(folder, path, entry.name)) is not None:
                    found.left_out_files[path] = stamp
                return
            if not self._follows(path, entry.name, is_folder):
                return
            if is_folder:
                found.left_out_folders.add(path + "/")
            elif path not in folder.left_out_files and len(found.left_out_files) > most:
                return  # as many as tell that there are more
            elif entry.is_file(follow_symlinks=False):
                if self.left_out is not None:
                    self.left_out.drop_link(path)
                found.left_out_files[path] = Stamp.of(entry.stat(follow_symlinks=False))
        except OSError:  # gone since it was listed
            return

    def _link(self, folder: Folder, path: str, name: str) -> Stamp | None:
        """What to know a symlink by, if it is followed: a file elsewhere that it leads to, else itself. Of a folder
        elsewhere nobody hears what becomes of its files."""
        if self.left_out is None or not self._follows(path, name, is_folder=True):
            return None
        is_heeded = self.left_out.heeds(name)
        if (folder.left_out and not is_heeded) or not self.left_out.has_room_for_link(path, folder.path):
            return None
        full = self._root + path
        if self._leads_apart(path):
            self.left_out.missing[folder.path] = path
            self.left_out.drop_link(path)
            return None
        to_folder = os.path.isdir(full)  # noqa: PTH112 - strings
        if not to_folder and not is_heeded:
            self.left_out.drop_link(path)
            return None
        try:
            elsewhere = self._resolve(self.left_out, path)
            # By name: of a folder of data it takes seconds to list what is in it.
            if elsewhere and to_folder and any(os.path.lexists(f"{full}/{mark}") for mark in KEPT_MARKS):
                self.left_out.drop_link(path)
                return None
            if elsewhere and to_folder:
                self.left_out.missing[folder.path] = path
            follow = elsewhere and not to_folder and os.path.exists(full)  # noqa: PTH110 - strings
            return Stamp.of(os.stat(full, follow_symlinks=follow))  # noqa: PTH116 - strings
        except OSError:  # gone meanwhile, or closed to us
            self.left_out.drop_link(path)
            return None

    def _resolve(self, left_out: LeftOut, path: str) -> bool:
        """Takes note of where a symlink leads; whether that lies outside of the root.

        Raises:
            OSError: it is none any more, or leads to a remote file system now.
        """
        if self._leads_apart(path):
            raise OSError(errno.EREMOTE, os.strerror(errno.EREMOTE), path)
        target = os.path.realpath(self._root + path)
        elsewhere = not f"{target}/".startswith(self._root)
        left_out.add_link(path, target, elsewhere=elsewhere)
        return elsewhere

    def _leads_apart(self, path: str) -> bool:
        """Whether a symlink is not to be followed: to a file system whose server may be away."""
        return leads_apart(self._root + path, self._root)

    def other_names(self, path: str) -> list[str]:
        """Root-relative names by which a root-relative path is reached through symlinks."""
        return self.left_out.names(self._root + path) if self.left_out is not None and self.left_out.links else []

    def is_link(self, path: str) -> bool:
        return self.left_out is not None and path in self.left_out.links

    def linked_elsewhere(self) -> dict[str, str]:
        """Symlinks that lead outside of the root, root-relative → where each leads, absolute."""
        return self.left_out.elsewhere if self.left_out is not None else {}

    def _follows(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether an entry that is left out is followed."""
        return (
            self.left_out is not None
            and not name.startswith(TEMPORARY)
            and self.left_out.fits(path, name, is_folder=is_folder)
        )

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
        """Whether what was heard of is an ignore file with new content, or makes or ends a nested repository; or shows
        whether a tool keeps a folder that is left out."""
        if folder.closed and name in KEPT_MARKS:
            return True
        if folder.left_out:
            return False
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


def _named(path: str) -> tuple[str, str]:
    """`a/b/` → `a/` and `b/`."""
    parent = _parent(path)
    return parent, path[len(parent) :]


def _parent(path: str) -> str:
    """`a/b/` → `a/`, `a/` → ``."""
    return path[: path.rfind("/", 0, -1) + 1]


def is_utf8(name: str) -> bool:
    """Whether a name, as Python decodes it, is text; bytes that are not UTF-8 are lone surrogates in it (PEP 383)."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)
