"""One change of one configuration file: planned and shown first, then made whole or not at all.

It knows forms, files and backups; no client, and nothing of what an entry means.
"""

import contextlib
import difflib
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from serena_central.clients.forms import Entry, Form, Keys, Malformed, Value, found, members_of, with_entry
from serena_central.clients.reverting import reverted
from serena_central.standalone.edited_text import exact_text, split_mark
from serena_central.standalone.lock import locked
from serena_central.standalone.private import as_user, user_umask

LARGEST_BYTES = 64 * 1024 * 1024
"""Some clients keep their history in the same file; more than this is no configuration."""

BACKUPS_KEPT = 10
"""Of one file."""

TRIES = 5
"""How often a change is planned where another program keeps changing the file."""

Result = TypeVar("Result")


class Unusable(Exception):
    """A file that can't be changed safely, and was not. The message says which, why, and what to do."""


class Overtaken(Unusable):
    """Another program has changed the file since the change was planned."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a file holds, and what it is to hold: None for no file."""

    file: Path
    before: bytes | None
    after: bytes | None
    private: bool = False
    """Whether the file is made private."""
    replaced: Value = None
    """What stands in the place of an entry that is set."""

    @property
    def is_none(self) -> bool:
        return self.before == self.after

    def diff(self, hidden: Mapping[str, str]) -> str:
        """As `diff -u` shows it, with secrets replaced by their names (`hidden`: secret → name)."""
        old, new = (_shown(data, hidden) for data in (self.before, self.after))
        names = [str(self.file) if data is not None else os.devnull for data in (self.before, self.after)]
        lines = difflib.unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Backups:
    """Copies of files as they were before each change, in a folder of the user's own: they may hold secrets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def alone(self, file: Path) -> Generator[None]:
        """Lets one of our programs at a time change a file. Its client takes no part, and may write it at any time.

        Raises:
            OSError: another one does not come to an end, or the lock can't be made.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._folder / f"{_digest(_target(file))}.lock"):
            yield

    def keep(self, file: Path, data: bytes) -> Path:
        """Writes a copy, and lets the oldest ones of that file go."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        now_s, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        moment = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now_s))}-{nanoseconds:09d}"
        copy = self._folder / f"{moment}.{_digest(file)}.{file.name}"
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        for old in self._of(file)[:-BACKUPS_KEPT]:
            old.unlink(missing_ok=True)
        return copy

    def of(self, file: Path) -> Iterator[bytes]:
        """What the file held before its last change, before the one before that, and so on."""
        return (copy.read_bytes() for copy in reversed(self._of(file)))

    def _of(self, file: Path) -> list[Path]:
        return sorted(copy for copy in self._folder.glob("*") if copy.name.split(".")[1:2] == [_digest(file)])


def entry_in(file: Path, form: Form, keys: Keys) -> Value:
    """What stands at `keys`; None where there is nothing, or no file.

    Raises:
        Unusable
    """
    data = _read(file)
    return None if data is None else found(_edited(file, lambda: form.read(_text(file, data)[1])), keys)


def putting(file: Path, form: Form, keys: Keys, entry: Entry, *, private: bool) -> Change:
    """Plans to set an entry.

    Raises:
        Unusable
    """
    before = _read(file)
    mark, text = _text(file, before or b"")
    said = _edited(file, lambda: form.read(text))
    old = found(said, keys)
    if old == entry:
        return Change(file, before, before)
    new = _edited(file, lambda: form.put(text, keys, entry))
    if _read_back(form, new) != with_entry(said, keys, entry):
        raise Unusable(_by_hand(file, keys))
    return Change(file, before, _encoded(file, mark + new), private, old)


def replacing(file: Path, data: bytes) -> Change:
    """Plans to give a file of ours, which a person may have edited, new content as a whole.

    Raises:
        Unusable
    """
    return Change(file, _read(file), data)


def taking(file: Path, form: Form, keys: Keys, backups: Backups, ours: Callable[[Value], bool]) -> Change:
    """Plans to take an entry out: where one of `ours` came by a change that is kept, by reverting that, so that the
    file has its bytes back but for what was edited since.

    Raises:
        Unusable
    """
    before = _read(file)
    mark, text = _text(file, before or b"")
    said = _edited(file, lambda: form.read(text))
    entry = found(said, keys)
    if before is None or entry is None:
        return Change(file, before, before)
    wanted = _pruned(with_entry(said, keys, None), keys)
    edited: bytes | None = None
    for kept in backups.of(file):
        old, made = _connected(file, form, keys, entry, kept)
        if ours(old) or made is None:
            continue
        if made == before:
            return Change(file, before, kept)
        edited = edited or reverted(kept, made, before)
    if _connected(file, form, keys, entry, b"")[1] == before:
        return Change(file, before, None)
    if edited is not None and _said_by(form, edited, keys) == wanted:
        return Change(file, before, edited)
    new = _encoded(file, mark + _edited(file, lambda: form.take(text, keys)))
    if _said_by(form, new, keys) != wanted:
        raise Unusable(_by_hand(file, keys))
    return Change(file, before, new)


def planned_and_made(file: Path, plan: Callable[[], Change], backups: Backups) -> tuple[Change, Path | None]:
    """Plans a change of a file and makes it, and does so again where its client was faster; the change, and the path of
    the backup.

    Raises:
        Unusable
    """
    try:
        with backups.alone(file):
            for _ in range(TRIES - 1):
                with contextlib.suppress(Overtaken):
                    return _made(plan(), backups)
            return _made(plan(), backups)
    except OSError as error:
        raise Unusable(f"{file} was not changed: {error.strerror or error}.") from error


def _made(change: Change, backups: Backups) -> tuple[Change, Path | None]:
    return change, None if change.is_none else make(change, backups)


def make(change: Change, backups: Backups) -> Path | None:
    """Makes the change; the backup's path. A symbolic link stays one: what it points to changes.

    Raises:
        Overtaken
        Unusable
    """
    file = _target(change.file)
    try:
        backup = None if change.before is None else backups.keep(change.file, change.before)
        if change.after is None:
            _check_unchanged(change)
            file.unlink()
        else:
            _replace(file, change, change.after)
    except OSError as error:
        raise Unusable(f"{change.file} was not changed: {error.strerror or error}.") from error
    return backup


def _replace(file: Path, change: Change, data: bytes) -> None:
    """Puts a complete file in place in one step, with the mode and owner of the one before; a new one as its user makes
    files."""
    with as_user():
        file.parent.mkdir(parents=True, exist_ok=True)
    old = file.stat() if change.before is not None else None
    mode = stat.S_IMODE(old.st_mode) if old else 0o666 & ~user_umask()
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if old is not None and os.name == "posix" and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(PermissionError):
                os.chown(draft, old.st_uid, old.st_gid)
        draft.chmod(mode & ~0o077 if change.private else mode)
        _check_unchanged(change)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def _check_unchanged(change: Change) -> None:
    """A client that runs may write its own file at any time."""
    if _read(change.file) != change.before:
        raise Overtaken(f"{change.file} was just changed by another program. Try again.")


def _read(file: Path) -> bytes | None:
    try:
        status = _target(file).stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unusable(f"{file} is not a regular file. Move it away, or add the entry manually.")
        if status.st_size > LARGEST_BYTES:
            raise Unusable(f"{file} is too large for a configuration ({status.st_size:,} bytes). It was not changed.")
        if not status.st_mode & 0o222:
            raise Unusable(f"{file} is read-only. Make it writable (chmod u+w) and try again.")
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"{file} can't be read: {error.strerror or error}.") from error


def _target(file: Path) -> Path:
    try:
        target = file.resolve()
    except (OSError, RuntimeError) as error:
        raise _leads_nowhere(file) from error
    if target.is_symlink():  # it leads to itself, which since Python 3.13 is no error
        raise _leads_nowhere(file)
    return target


def _leads_nowhere(file: Path) -> Unusable:
    return Unusable(f"{file} is a dangling symlink. Fix or remove it and try again.")


def _text(file: Path, data: bytes) -> tuple[str, str]:
    """The byte order mark, if there is one, and the text after it."""
    try:
        return split_mark(exact_text(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unusable(f"{file}:{line}: not UTF-8. Save it as UTF-8 and try again.") from error


def _encoded(file: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unusable(f"{file} was not changed: the entry contains text that can't be encoded as UTF-8.") from error


def _edited(file: Path, edit: Callable[[], Result]) -> Result:
    try:
        return edit()
    except Malformed as error:
        raise Unusable(
            f"{file}:{error.line}: {error.problem}. Fix the file and try again; it was not changed."
        ) from error


def _connected(file: Path, form: Form, keys: Keys, entry: Entry, data: bytes) -> tuple[Value, bytes | None]:
    """What stands in `data` in the entry's place, and what a connect makes of it; None where it would refuse."""
    try:
        mark, text = _text(file, data)
        return found(form.read(text), keys), (mark + form.put(text, keys, entry)).encode("utf-8")
    except (Unusable, Malformed):
        return None, None


def _pruned(value: Value, keys: Keys) -> Value:
    """Without mappings on the way to `keys` that hold nothing: in TOML they exist by what is in them alone."""
    if not keys:
        return value
    inner = _pruned(members_of(value).get(keys[0]), keys[1:])
    rest = {key: one for key, one in members_of(value).items() if key != keys[0]}
    return rest if inner in (None, {}) else {**rest, keys[0]: inner}


def _said_by(form: Form, data: bytes, keys: Keys) -> Value:
    """All that a file would say, `_pruned`; None where it could not be read."""
    said = _read_back(form, split_mark(exact_text(data))[1])
    return None if said is None else _pruned(said, keys)


def _read_back(form: Form, text: str) -> dict[str, Value] | None:
    """What we would write, as the client would read it; None where it could not."""
    try:
        return form.read(text)
    except Malformed:
        return None


def _by_hand(file: Path, keys: Keys) -> str:
    return (
        f"{file} has {'.'.join(keys)} in a form that can't be edited without other changes. It was not changed: "
        "edit the entry manually, or remove it and try again."
    )


def _shown(data: bytes | None, hidden: Mapping[str, str]) -> list[str]:
    text = (data or b"").decode("utf-8", "replace")
    for secret, name in hidden.items():
        text = text.replace(secret, name)
    return text.splitlines(keepends=True)


def _digest(file: Path) -> str:
    return hashlib.sha256(os.fsencode(file)).hexdigest()[:12]
