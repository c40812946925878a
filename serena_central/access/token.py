"""The access token: where it is stored, how it is created, how a presented one is compared.

The secret itself stays in this module and in the file; everything else sees the credential, a digest that names the
token's holder in sessions, logs and events without giving anything away.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from serena_central.core.errors import ConfigError
from serena_central.standalone.proof import proof_of

SECRET_BYTES = 32
"""Random bytes in a minted token: 43 characters in the file."""

MAX_FILE_BYTES = 4096
"""A token file is one line; more is not a token."""

_USABLE = re.compile(rb"[\x21-\x7e]{32,512}")


class Token:
    """One secret. `credential` identifies it (128 bits of its SHA-256, hex) and may be stored and shown."""

    __slots__ = ("_secret", "credential")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.credential = hashlib.sha256(secret).hexdigest()[:32]

    def matches(self, presented: bytes) -> bool:
        """Compares in constant time."""
        return hmac.compare_digest(presented, self._secret)

    def proof(self, nonce: str, endpoint: str) -> str:
        """What shows a client that its server has this token, too."""
        return proof_of(self._secret.decode("ascii"), nonce, endpoint)

    def header(self) -> str:
        """The value of an `Authorization` header for a client of this user."""
        return f"Bearer {self._secret.decode('ascii')}"

    def derived(self, purpose: str) -> bytes:
        """A key of 32 bytes for something else, the same after a restart; it says nothing about the token."""
        return hmac.digest(self._secret, purpose.encode(), "sha256")

    def __repr__(self) -> str:
        return f"Token(credential={self.credential!r})"


def read_token(file: Path) -> Token:
    """Reads the token of this user's server.

    Raises:
        FileNotFoundError: no server of this user has run yet.
        ConfigError: the file is not ours alone, or holds no token.
    """
    # Checks and reading share one descriptor, so that nobody can swap the file in between.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _check_private(file, os.fstat(descriptor))  # a stream can't be made of a folder
        content = os.read(descriptor, MAX_FILE_BYTES).strip()
    finally:
        os.close(descriptor)
    if not _USABLE.fullmatch(content):
        raise ConfigError(
            "token",
            "does not contain a valid token (32 to 512 visible ASCII characters); delete it to get a new one",
            file=str(file),
        )
    return Token(content)


def obtain_token(file: Path) -> Token:
    """Reads the token, or creates one if there is none. Safe against another process that does the same.

    Raises:
        ConfigError: as `read_token`.
    """
    try:
        return read_token(file)
    except FileNotFoundError:
        _mint(file)
        return read_token(file)


def _mint(file: Path) -> None:
    """Puts a complete 0600 file in place in one step, and never replaces one that is there."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_urlsafe(SECRET_BYTES).encode("ascii") + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, file)
        except FileExistsError:
            return  # another process was first: its token counts
    finally:
        draft.unlink()


def _check_private(file: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError("token", "is not a regular file; delete it to get a new one", file=str(file))
    if os.name != "posix":
        return
    if status.st_uid != os.geteuid():
        raise ConfigError("token", "belongs to another user", file=str(file))
    # A token that others could read is a token that others may have: tightening the mode would only hide that.
    if status.st_mode & 0o077:
        raise ConfigError(
            "token",
            f"is readable by other users (mode {stat.S_IMODE(status.st_mode):04o}), who may know the token. "
            "Delete it to get a new one, or run chmod 600 on it if nobody else uses this machine",
            file=str(file),
        )
