"""Where clients keep their transcripts on this machine, and which files there are transcripts."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from serena_central.transcripts.native import claude_code, codex, gemini
from serena_central.transcripts.source import Form

FORMS: tuple[Form, ...] = (claude_code.FORM, codex.FORM, gemini.FORM)


class Root(msgspec.Struct, frozen=True):
    """A folder of transcripts, and how they are read."""

    folder: Path
    form: Form


class FoundFile(msgspec.Struct, frozen=True):
    path: str
    size: int
    mtime_ns: int
    inode: int
    root: Root


def roots_of(home: Path, environment: Mapping[str, str]) -> list[Root]:
    """Where the clients of a user keep their transcripts; folders that exist, each once."""
    found: dict[Path, Root] = {}
    for form in FORMS:
        for folder in form.roots(home, environment):
            if folder.is_dir():
                found.setdefault(folder.resolve(), Root(folder.resolve(), form))
    return list(found.values())


def transcripts_in(roots: Iterable[Root]) -> Iterator[FoundFile]:
    """All transcripts, in the order of their paths. Links are not followed."""
    for root in roots:
        yield from sorted(_walk(str(root.folder), root), key=lambda one: one.path)


def _walk(folder: str, root: Root) -> Iterator[FoundFile]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, root)
        elif root.form.is_transcript(entry.name) and entry.is_file(follow_symlinks=False):
            try:
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield FoundFile(entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ino, root)
