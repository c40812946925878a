"""A person's approvals of repositories: one small file in the server's own home, outside any repository.

Each approval is of one root and pins the text of its parts by a hash; a readable copy stands beside it. The command
line and the server write the same file, one after the other. `trust_decisions` says what the parts are and what
follows from an approval.
"""

import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.errors import TrustRefused
from serena_central.files.atomic import write_whole
from serena_central.standalone.lock import locked

logger = logging.getLogger(__name__)

MAX_BYTES = 32 * 1024 * 1024

Stamp = tuple[int, int, int] | None


class ExecutablePart(msgspec.Struct, frozen=True):
    """Something of a repository that can execute. `place` is a file in it, or another place that `source` knows."""

    source: str
    place: str
    text: str


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A person trusts `root` (a real path) with exactly these parts. `at` is Unix time; `by` says who and how."""

    root: str
    digest: str
    parts: tuple[ExecutablePart, ...]
    at: float
    by: str


class _Content(msgspec.Struct):
    approvals: list[Approval] = []
    version: int = 1


def digest_of(parts: Iterable[ExecutablePart]) -> str:
    """SHA-256 over the parts in their order."""
    return hashlib.sha256(msgspec.json.encode([msgspec.structs.astuple(part) for part in parts])).hexdigest()


class Approvals:
    """All approvals of this user. Safe against other processes; every method blocks for the time of a small file."""

    def __init__(self, file: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._known: tuple[Stamp, dict[str, Approval]] = None, {}

    def stamp(self) -> Stamp:
        """Differs when anything in the file was changed. Costs a microsecond or two."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def all(self) -> list[Approval]:
        """Every approval, by root."""
        known = self._current()
        return [known[root] for root in sorted(known)]

    def of(self, root: Path) -> Approval | None:
        return self._current().get(str(root))

    def _current(self) -> dict[str, Approval]:
        """By root. A file that is not ours alone, or can't be read, approves nothing."""
        stamp = self.stamp()
        if stamp != self._known[0]:
            try:
                self._known = stamp, self._read()
            except TrustRefused as error:
                logger.error("trust approvals cannot be read, so no repository is trusted: %s", error)
                self._known = stamp, {}
        return self._known[1]

    def put(self, root: Path, parts: Iterable[ExecutablePart], by: str) -> Approval:
        """Approves a root with these parts, in place of what was approved of it.

        Raises:
            TrustRefused
        """
        kept = tuple(parts)
        approval = Approval(root=str(root), digest=digest_of(kept), parts=kept, at=self._clock(), by=by)
        with self._changing() as approvals:
            approvals[approval.root] = approval
        return approval

    def remove(self, root: Path) -> bool:
        """Whether there was an approval of this root.

        Raises:
            TrustRefused
        """
        with self._changing() as approvals:
            return approvals.pop(str(root), None) is not None

    @contextmanager
    def _changing(self) -> Generator[dict[str, Approval]]:
        """The approvals as they are in the file; what the block leaves in them is written back."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self._file.with_suffix(".lock")):
                approvals = self._read()
                yield approvals
                os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600))  # the mode that stays
                content = msgspec.json.encode(_Content([approvals[root] for root in sorted(approvals)]))
                write_whole(self._file, msgspec.json.format(content, indent=1) + b"\n")
        except OSError as error:
            raise TrustRefused(f"{self._file} can't be written: {error.strerror}. Nothing was changed.") from error

    def _read(self) -> dict[str, Approval]:
        """Raises TrustRefused for a file that is there and must not be believed."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TrustRefused(f"{self._file} can't be read: {error.strerror}.") from error
        try:
            self._check(os.fstat(descriptor))
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES)
        finally:
            os.close(descriptor)
        try:
            found = from_json(content or b"{}", _Content).approvals
        except (msgspec.DecodeError, RecursionError) as error:
            raise TrustRefused(
                f"{self._file} can't be parsed ({error}). Move it away to start with a new one."
            ) from error
        return {one.root: one for one in found if one.digest == digest_of(one.parts)}

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise TrustRefused(f"{self._file} is not a regular file. Move it away to start with a new one.")
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise TrustRefused(
                f"{self._file} is writable by other users. Delete it, or run chmod 600 on it if you trust its content."
            )
