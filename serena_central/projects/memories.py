"""Memories: what agents wrote down about a project, as Markdown files that Serena's users share.

They lie in the project's `.serena/memories`; names that begin with `global/` lie in the user's own folder and are seen
by all projects. Nothing is overwritten that its author has not seen: that is given as the digest of what was last seen.
Which session saw what is not known here.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import regex

from serena_central.config.settings import ProjectSettings
from serena_central.core.errors import (
    InvalidArguments,
    MemoryChanged,
    MemoryNotFound,
    PathNotFound,
    PathRefused,
    ToolRefused,
)
from serena_central.editing.replacing import Mode, replaced, replacements
from serena_central.files.atomic import make_folders, write_whole
from serena_central.files.boundary import resolve_inside
from serena_central.files.text import read_text

GLOBAL = "global/"

MAX_BYTES = 1024 * 1024
"""Of one memory: it is read into an agent's context."""

MAX_LISTED = 10_000

_PART = regex.compile(r'[^./\\:*?"<>|\x00-\x1f\x7f][^/\\:*?"<>|\x00-\x1f\x7f]{0,99}')
_PATTERN_S = 0.5


class Memory(msgspec.Struct, frozen=True):
    """One memory as it is on disk. `digest` is of its content."""

    name: str
    content: str
    digest: str


class Memories:
    """The memories of one project. Safe from any task: each change is checked and made in one go."""

    def __init__(self, root: Path, home: Path, settings: ProjectSettings) -> None:
        """`home` is the user's SERENA_HOME."""
        claudes = not (root / ".serena").is_dir() and (root / ".claude/.serena").is_dir()
        self._root = root
        self._own = ".claude/.serena/memories/" if claudes else ".serena/memories/"
        self._home = home
        self._read_only = settings.read_only
        self._kept = [_compiled(pattern) for pattern in settings.read_only_memory_patterns]
        self._ignored = [_compiled(pattern) for pattern in settings.ignored_memory_patterns]
        self._changing = anyio.Lock()

    async def names(self, topic: str = "") -> list[str]:
        """Names of all memories, or of those of a topic and below; the project's own first."""
        prefix = checked_name(topic) + "/" if topic.strip("/") else ""
        return [name for name in await anyio.to_thread.run_sync(self._listed) if name.startswith(prefix)]

    def changeable(self, name: str) -> bool:
        return not self._read_only and not _fits(self._kept, name)

    async def read(self, name: str) -> Memory:
        """Raises: MemoryNotFound, PathError, InvalidArguments (the name can't be one)."""
        return await anyio.to_thread.run_sync(self._read, checked_name(name))

    async def write(self, name: str, content: str, *, seen: str | None) -> Memory:
        """Makes a memory, or replaces it if it is still what its author has `seen` (the digest; None: nothing).

        Raises:
            MemoryChanged: it is something else; tells what.
            ToolRefused: it can't be changed here.
        """
        name = self._checked_for_change(name)
        async with self._changing:
            return await anyio.to_thread.run_sync(self._replace, name, content, seen)

    async def edit(self, name: str, needle: str, repl: str, mode: Mode, *, several: bool, seen: str | None) -> Memory:
        """Replaces text inside a memory. What it does is said by the needle, so that it need not have been seen before.

        Raises: InvalidArguments (see editing/replacing.py), MemoryChanged, MemoryNotFound, ToolRefused.
        """
        name = self._checked_for_change(name)

        def change() -> Memory:
            now = self._read(name)
            _check_seen(now, seen or now.digest)
            new = replaced(now.content, replacements(now.content, needle, repl, mode, several=several))
            return self._replace(name, new, now.digest)

        async with self._changing:
            return await anyio.to_thread.run_sync(change)

    async def delete(self, name: str, *, seen: str | None) -> None:
        """Raises: MemoryNotFound, MemoryChanged (it changed since it was seen), ToolRefused."""
        name = self._checked_for_change(name)

        def change() -> None:
            now = self._read(name)
            _check_seen(now, seen or now.digest)
            self._path(name).unlink()

        async with self._changing:
            await anyio.to_thread.run_sync(change)

    async def rename(self, name: str, new_name: str) -> None:
        """Raises: MemoryNotFound, InvalidArguments (the new name is taken), ToolRefused."""
        name, new_name = self._checked_for_change(name), self._checked_for_change(new_name)

        def change() -> None:
            self._read(name)
            target = self._path(new_name)
            make_folders(target.parent)
            try:
                os.link(self._path(name), target)  # unlike a rename, it never replaces what is there
            except FileExistsError as error:
                raise InvalidArguments(f"A memory named {new_name!r} exists already.") from error
            self._path(name).unlink()

        async with self._changing:
            await anyio.to_thread.run_sync(change)

    def _path(self, name: str) -> Path:
        if name.startswith(GLOBAL):
            make_folders(self._home)
            return resolve_inside(self._home, f"memories/{name}.md", must_exist=False)
        return resolve_inside(self._root, f"{self._own}{name}.md", must_exist=False)

    def _read(self, name: str) -> Memory:
        if _fits(self._ignored, name):
            raise MemoryNotFound(name, self._listed())
        try:
            content = read_text(self._path(name), max_bytes=MAX_BYTES).text.content
        except PathNotFound as error:
            raise MemoryNotFound(name, self._listed()) from error
        return Memory(name, content, _digest(content))

    def _replace(self, name: str, content: str, seen: str | None) -> Memory:
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise InvalidArguments(f"The content of memory {name!r} is no valid text: {error}.") from error
        if len(data) > MAX_BYTES:
            raise InvalidArguments(f"Memory {name!r} would have {len(data)} bytes; {MAX_BYTES} are the most.")
        with suppress(MemoryNotFound):
            _check_seen(self._read(name), seen)
        try:
            write_whole(self._path(name), data, shared=True)
        except OSError as error:
            raise PathRefused(f"Memory {name!r} can't be written: {error.strerror}.") from error
        return Memory(name, content, _digest(content))

    def _checked_for_change(self, name: str) -> str:
        name = checked_name(name)
        if self._read_only:
            raise ToolRefused(f"Memory {name!r} can't be changed: the setting read_only forbids it.")
        if not self.changeable(name):
            raise ToolRefused(f"Memory {name!r} can't be changed: the setting read_only_memory_patterns keeps it.")
        if _fits(self._ignored, name):
            raise ToolRefused(f"Memory {name!r} can't be used: the setting ignored_memory_patterns leaves it out.")
        return name

    def _listed(self) -> list[str]:
        own = _names_in(self._root / self._own)
        of_all = [f"{GLOBAL}{name}" for name in _names_in(self._home / "memories" / "global")]
        names = [name for name in own if not name.startswith(GLOBAL)] + of_all
        return [name for name in names if not _fits(self._ignored, name)]


def checked_name(name: str) -> str:
    """The name without `.md`. Raises InvalidArguments for what can't be a memory's name."""
    plain = name.strip().removesuffix(".md")
    if not plain or len(plain) > 200 or not all(_PART.fullmatch(part) for part in plain.split("/")):
        raise InvalidArguments(
            f"{name[:200]!r} can't be a memory's name. Use words like `commands` or `backend/conventions`: "
            'no empty parts, no leading dots or slashes, none of \\ : * ? " < > |.'
        )
    return plain


def _check_seen(now: Memory, seen: str | None) -> None:
    if now.digest != seen:
        raise MemoryChanged(now.name, now.content, now.digest)


def _names_in(folder: Path) -> list[str]:
    """Names below a folder, in order; links are not followed."""
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = Path(parent).relative_to(folder).as_posix() + "/" if parent != str(folder) else ""
        found += [prefix + file.removesuffix(".md") for file in files if file.endswith(".md") and file[0] != "."]
        if len(found) >= MAX_LISTED:
            break
    return sorted(found)[:MAX_LISTED]


def _compiled(pattern: str) -> "regex.Pattern[str]":
    """A pattern of the settings; one that can't be compiled fits its own text alone."""
    try:
        return regex.compile(pattern)
    except regex.error:
        return regex.compile(regex.escape(pattern))


def _fits(patterns: "list[regex.Pattern[str]]", name: str) -> bool:
    end = time.monotonic() + _PATTERN_S
    try:
        return any(pattern.fullmatch(name, timeout=max(end - time.monotonic(), 0.001)) for pattern in patterns)
    except TimeoutError:
        return True  # a pattern that can't be decided keeps what it may be meant to keep


def _digest(content: str) -> str:
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
