"""Where clients and this server keep their transcripts on this machine, and which files there are transcripts."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from serena_central.transcripts import own_form
from serena_central.transcripts.native import claude_code, codex, gemini
from serena_central.transcripts.source import Form

CLIENTS: tuple[Form, ...] = (claude_code.FORM, codex.FORM, gemini.FORM)

FORMS: tuple[Form, ...] = (*CLIENTS, own_form.FORM)


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
    for form in CLIENTS:
        for folder in form.roots(home, environment):
            if folder.is_dir():
                found.setdefault(folder.resolve(), Root(folder.resolve(), form))
    return list(found.values())


def all_roots(own: Path) -> list[Root]:
    """Where this user's clients keep their transcripts, and `own`, the folder of those that this server writes."""
    found = roots_of(Path.home(), os.environ)
    return [*found, Root(own.resolve(), own_form.FORM)] if own.is_dir() else found


def transcripts_in(roots: Iterable[Root], left: Callable[[str], None] = lambda why: None) -> Iterator[FoundFile]:
    """All transcripts, in the order of their paths. Links are not followed. `left` is called with each folder and file
    that is left out, and why."""
    for root in roots:
        yield from sorted(_walk(str(root.folder), root, left), key=lambda one: one.path)


def _walk(top: str, root: Root, left: Callable[[str], None]) -> Iterator[FoundFile]:
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            left(f"{folder}: {error.strerror or error}")
            continue
        for entry in entries:
            if not _is_text(entry.name):  # no client names them so, and neither JSON nor the store can hold it
                left(f"{os.fsencode(entry.path).decode(errors='replace')}: its name is not UTF-8")
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif root.form.is_transcript(entry.name) and entry.is_file(follow_symlinks=False):
                try:
                    stat = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # it is gone
                yield FoundFile(entry.path, stat.st_size, stat.st_mtime_ns, stat.st_ino, root)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
