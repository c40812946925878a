"""Memories: notes that agents keep about a project, as Markdown files shared with Serena.

They lie in the project's `.serena/memories`; names that begin with `global/` lie in the user's own folder and are seen
by all projects. Nothing is overwritten that its author has not seen: that is given as the digest of what was last seen.
Which session saw what is not known here. What is written goes the way of edits: by the journal, so that a crash leaves
no half of it and a repetition of the call is known; and into history.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import anyio
import msgspec

from serena_central.config.settings import ProjectSettings
from serena_central.core.errors import (
    ConfigError,
    FileChanged,
    InvalidArguments,
    MemoryChanged,
    MemoryNotFound,
    PathError,
    PathNotFound,
    PathRefused,
    ToolRefused,
)
from serena_central.core.nofollow import OpenFolder, is_link
from serena_central.core.patterns import BoundedMatcher
from serena_central.core.quoting import NAME_CHARS, is_visible, quoted
from serena_central.editing.change import Author, FileChange
from serena_central.editing.replacing import Mode, replaced, replacements
from serena_central.editing.transaction import Applier
from serena_central.files.atomic import make_folders
from serena_central.files.boundary import Access, resolve_inside
from serena_central.files.text import FileText, read_text
from serena_central.projects.editing.edit_records import AppliedEdit, Recorded, differs, new_edit_id
from serena_central.projects.editing.joint_edits import write_edit

GLOBAL = "global/"

MAX_BYTES = 1024 * 1024
"""Of one memory: it is read into an agent's context."""

MAX_LISTED = 10_000

ATTEMPTS = 4
"""How often a change is planned because something else changed the memory meanwhile."""

MAX_PATTERN_CHARS = 20_000
"""Of all patterns of a setting: compiling takes 10 µs for each. More of them fit everything."""

MAX_LITERAL = 1000
"""Characters of a text that may have been meant as a name."""

_PART = re.compile(r'[^./\\:*?"<>|\x00-\x1f\x7f][^/\\:*?"<>|\x00-\x1f\x7f]{0,99}')


class Memory(msgspec.Struct, frozen=True):
    """One memory as it is on disk. `digest` is of its content."""

    name: str
    content: str
    digest: str


class MemoryNames(NamedTuple):
    """Names of memories. `left_out` counts what lies in their folders and is not served: links, which may lead
    anywhere, and files whose names can't be names of memories."""

    names: list[str]
    left_out: int


class Memories:
    """The memories of one project. Safe from any task: each change is checked and made in one go."""

    def __init__(
        self,
        root: Path,
        home: Path,
        settings: ProjectSettings,
        applier: Applier,
        applied: Callable[[AppliedEdit], None],
        access: Access,
    ) -> None:
        """`home` is the user's SERENA_HOME; `applied` is called for every change, and must neither wait nor raise."""
        self._applier = applier
        self._applied = applied
        claudes = not (root / ".serena").is_dir() and (root / ".claude/.serena").is_dir()
        self._root = root
        self._own = ".claude/.serena/memories/" if claudes else ".serena/memories/"
        self._home = Path(os.path.realpath(home))
        self._read_only = settings.read_only
        self._kept = _compiled("read_only_memory_patterns", settings.read_only_memory_patterns)
        self._ignored = _compiled("ignored_memory_patterns", settings.ignored_memory_patterns)
        self._access = access
        self._changing = anyio.Lock()

    async def names(self, topic: str = "") -> "MemoryNames":
        """Names of all memories, or of those of a topic and below; the project's own first."""
        prefix = checked_name(topic) + "/" if topic.strip("/") else ""
        listed = await anyio.to_thread.run_sync(self._listed)
        return listed._replace(names=[name for name in listed.names if name.startswith(prefix)])

    def changeable(self, name: str) -> bool:
        return not self._read_only and not _fits(self._kept, name)

    def file_of(self, name: str) -> str:
        """How the history of edits names a memory's file: root-relative, a global one's absolute."""
        name = checked_name(name)
        return str(self._home / "memories" / f"{name}.md") if name.startswith(GLOBAL) else f"{self._own}{name}.md"

    def troubles(self) -> list[str]:
        """Patterns of the settings that are given up, and why: they fit every name since then."""
        return [pattern.trouble for pattern in (*self._kept, *self._ignored) if pattern.trouble]

    async def read(self, name: str) -> Memory:
        """Raises: MemoryNotFound, PathError, InvalidArguments (the name can't be one)."""
        return await anyio.to_thread.run_sync(self._read, checked_name(name))

    async def write(self, name: str, content: str, author: Author, *, seen: str | None) -> Memory:
        """Makes a memory, or replaces it if it is still what its author has `seen` (the digest; None: nothing).

        Raises:
            MemoryChanged: it is something else; tells what.
            ToolRefused: it can't be changed here.
        """
        name = self._checked_for_change(name)

        def plan() -> FileChange:
            now = self._text(name)
            if now is not None:
                _check_seen(_memory(name, now), seen)
            return self._with(name, now, content)

        await self._change(plan, author)
        return Memory(name, content, _digest(content))

    async def edit(
        self, name: str, needle: str, repl: str, mode: Mode, author: Author, *, several: bool, seen: str | None
    ) -> Memory:
        """Replaces text inside a memory. What it does is said by the needle, so that it need not have been seen before.

        Raises:
            InvalidArguments: see editing/replacing.py.
            MemoryChanged, MemoryNotFound, ToolRefused
        """
        name = self._checked_for_change(name)

        def plan() -> FileChange:
            now = self._there(name)
            _check_seen(_memory(name, now), seen or _digest(now.text.content))
            content = now.text.content
            return self._with(name, now, replaced(content, replacements(content, needle, repl, mode, several=several)))

        content = (await self._change(plan, author)).after or ""
        return Memory(name, content, _digest(content))

    async def delete(self, name: str, author: Author, *, seen: str | None) -> None:
        """Raises: MemoryNotFound, MemoryChanged (it changed since it was seen), ToolRefused."""
        name = self._checked_for_change(name)

        def plan() -> FileChange:
            now = self._there(name)
            _check_seen(_memory(name, now), seen or _digest(now.text.content))
            return FileChange(self._path(name), now, None)

        await self._change(plan, author)

    async def rename(self, name: str, new_name: str, author: Author) -> None:
        """Raises: MemoryNotFound, InvalidArguments (the new name is taken), ToolRefused."""
        name, new_name = self._checked_for_change(name), self._checked_for_change(new_name)

        def plan() -> FileChange:
            now = self._there(name)
            if os.path.lexists(self._path(new_name)):
                raise InvalidArguments(f"A memory named {quoted(new_name)} already exists. Choose another name.")
            return FileChange(self._path(name), now, now.text.content, moved_to=self._path(new_name))

        await self._change(plan, author)

    async def _change(self, plan: Callable[[], FileChange], author: Author) -> FileChange:
        """Makes the change that is planned, in a thread, on what is there; planned again if that changes meanwhile."""
        async with self._changing:
            for _ in range(ATTEMPTS):
                change = await anyio.to_thread.run_sync(plan)
                if not differs(change):
                    return change
                with suppress(FileChanged):
                    await write_edit(self._applier, self._applied, [change], self._edit(change, author))
                    return change
        raise PathRefused("This memory keeps changing, or its folder is not accessible. Nothing was changed.")

    def _edit(self, change: FileChange, author: Author) -> AppliedEdit:
        """What history keeps: of a memory of all projects only that it was changed, by its absolute path, since no
        project can take that back."""
        own = change.path.is_relative_to(self._root) and (change.moved_to or self._root).is_relative_to(self._root)
        recorded = Recorded.of(self._root if own else Path("/"), [change])
        files = recorded.files()
        if not own:
            files = [
                msgspec.structs.replace(
                    file, path=f"/{file.path}", moved_to=f"/{file.moved_to}" if file.moved_to else None
                )
                for file in files
            ]
        return AppliedEdit(
            id=new_edit_id(),
            at=time.time(),
            author=author,
            root=str(self._root),
            files=files,
            patches=recorded.patches() if own else [],
        )

    def _path(self, name: str) -> Path:
        """Where a memory lies.

        Raises:
            PathRefused: where something on the way is a link: it may lead anywhere.
        """
        base, relative = self._root, f"{self._own}{name}.md"
        if name.startswith(GLOBAL):
            make_folders(self._home)
            base, relative = self._home, f"memories/{name}.md"
        else:
            self._access.check_reading(relative)
        if has_link(base, relative):
            raise PathRefused(f"Memory {quoted(name)} is a symlink or is below one; memories must be regular files.")
        return resolve_inside(base, relative, must_exist=False)

    def _read(self, name: str) -> Memory:
        return _memory(name, self._there(name))

    def _there(self, name: str) -> FileText:
        """The text of a memory.

        Raises:
            MemoryNotFound
        """
        found = None if _fits(self._ignored, name) else self._text(name)
        if found is None:
            raise MemoryNotFound(name, self._listed().names)
        return found

    def _text(self, name: str) -> FileText | None:
        try:
            return read_text(self._path(name), max_bytes=MAX_BYTES)
        except PathNotFound:
            return None

    def _with(self, name: str, now: FileText | None, content: str) -> FileChange:
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise InvalidArguments(f"The content of memory {quoted(name)} is not valid text: {error}.") from error
        if len(data) > MAX_BYTES:
            raise InvalidArguments(f"Memory {quoted(name)} would have {len(data)} bytes; the limit is {MAX_BYTES}.")
        return FileChange(self._path(name), now, content)

    def _checked_for_change(self, name: str) -> str:
        name = checked_name(name)
        shown = quoted(name)
        if self._read_only:
            raise ToolRefused(f"Memory {shown} can't be changed: the setting read_only forbids it.")
        if not self.changeable(name):
            raise ToolRefused(f"Memory {shown} can't be changed: the setting read_only_memory_patterns protects it.")
        if not name.startswith(GLOBAL):
            self._access.check_editing(f"{self._own}{name}.md")
        if _fits(self._ignored, name):
            raise ToolRefused(f"Memory {shown} can't be used: the setting ignored_memory_patterns excludes it.")
        return name

    def _listed(self) -> MemoryNames:
        own = _names_in(self._root, self._own)
        of_all = _names_in(self._home, f"memories/{GLOBAL}")
        mine = [name for name in own.names if not name.startswith(GLOBAL)]
        shown = [name for name in mine if not self._access.hides(f"{self._own}{name}.md")]
        names = shown + [GLOBAL + name for name in of_all.names]
        return MemoryNames([name for name in names if not _fits(self._ignored, name)], own.left_out + of_all.left_out)


def checked_name(name: str) -> str:
    """The name without `.md`.

    Raises:
        InvalidArguments: for what can't be a memory's name.
    """
    plain = name.strip().removesuffix(".md")
    if not _is_memory(plain):
        raise InvalidArguments(
            f"{quoted(name, NAME_CHARS)} is not a valid memory name. Use names like `commands` or "
            "`backend/conventions`: "
            'no empty parts, no leading dots or slashes, no invisible characters, none of \\ : * ? " < > |.'
        )
    return plain


def _memory(name: str, read: FileText) -> Memory:
    return Memory(name, read.text.content, _digest(read.text.content))


def _check_seen(now: Memory, seen: str | None) -> None:
    if now.digest != seen:
        raise MemoryChanged(now.name, now.content, now.digest)


def has_link(base: Path, relative: str) -> bool:
    """Whether something on the way from a folder to a path in it is a link."""
    path = base
    for part in PurePosixPath(relative).parts:
        path /= part
        if path.is_symlink():
            return True
    return False


def _names_in(base: Path, relative: str) -> MemoryNames:
    """Names of the memories in a folder below `base`, in order; links in it are neither followed nor listed."""
    if has_link(base, relative):
        return MemoryNames([], 1)
    found: list[str] = []
    left_out = 0
    try:
        with OpenFolder.at(str(resolve_inside(base, relative))) as folder:
            for parent, folders, files, descriptor in os.fwalk(".", dir_fd=folder.descriptor):
                visible = [name for name in folders if not name.startswith(".")]
                folders[:] = [name for name in visible if not is_link(descriptor, name)]
                prefix = parent[2:] + "/" if parent != "." else ""
                texts = [file for file in files if file.endswith(".md") and file[0] != "."]
                good = [name for file in texts if (name := _memory_of(prefix, file, descriptor)) is not None]
                found += good
                left_out += len(visible) - len(folders) + len(texts) - len(good)
                if len(found) >= MAX_LISTED:
                    break
    except (OSError, PathError):
        pass
    return MemoryNames(sorted(found)[:MAX_LISTED], left_out)


def _is_memory(name: str) -> bool:
    return len(name) <= NAME_CHARS and is_visible(name) and all(_PART.fullmatch(part) for part in name.split("/"))


def _memory_of(prefix: str, file: str, folder: int) -> str | None:
    """The name of the memory that a file holds; None for what is no plain file, or has an impossible name."""
    name = prefix + file.removesuffix(".md")
    if not _is_memory(name):
        return None
    try:
        return name if stat.S_ISREG(os.stat(file, dir_fd=folder, follow_symlinks=False).st_mode) else None
    except OSError:
        return None


def _compiled(key: str, patterns: Iterable[str]) -> list[BoundedMatcher]:
    """Patterns of the settings; one that can't be compiled fits its own text alone, or everything if it is long."""
    patterns, compiled = list(patterns), list[BoundedMatcher]()
    if sum(map(len, patterns)) > MAX_PATTERN_CHARS:
        return [BoundedMatcher(key, ".*")]
    for pattern in patterns:
        try:
            compiled.append(BoundedMatcher(key, pattern))
        except ConfigError:
            compiled.append(BoundedMatcher(key, re.escape(pattern) if len(pattern) < MAX_LITERAL else ".*"))
    return compiled


def _fits(patterns: Iterable[BoundedMatcher], name: str) -> bool:
    """A pattern that can't be decided keeps what it may be meant to keep."""
    return any(pattern.fullmatch(name) or pattern.trouble for pattern in patterns)


def _digest(content: str) -> str:
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
