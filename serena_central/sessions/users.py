"""Users of a team: who holds which token, what they may open, whether they administer the server.

The store keeps digests of tokens, never tokens. Where nobody was ever added, the holder of the server's own token is
the only one there is, and nothing of this is asked.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from serena_central.core.errors import InvalidArguments, UserNotFound
from serena_central.store.rows import AccountRow

TOKEN_PREFIX = "sct_"  # noqa: S105 - what scanners of secrets know a token by
TOKEN_BYTES = 32

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_CREDENTIAL = re.compile(r"user:([^:]+):[0-9a-f]{16}")
_PATTERN = re.compile(r"[*?\[]")

MOST_ROOTS = 100

REFUSED_TOOLS = {
    "execute_shell_command": "a command runs with all rights of the server's own account",
    "task": "a task's program runs with all rights of the server's own account",
    "task_result": "tasks belong to administrators",
    "remove_project": "projects are shared by all users",
    "restart_language_server": "language servers are shared by all users",
}
"""What only administrators may call → why."""


class User(msgspec.Struct, frozen=True):
    """`credential` is what sessions belong to: of this very account, the same after its token was rotated. `login` is
    what browsers that signed in belong to: another one with each token. `roots` are absolute folders or patterns of
    folders; empty: all that the server's own settings allow."""

    name: str
    credential: str
    admin: bool = False
    roots: tuple[str, ...] = ()
    revoked: bool = False
    login: str = ""

    @property
    def opens_everything(self) -> bool:
        """Whether no project is closed to this user that the server's settings allow."""
        return not self.revoked and (self.admin or not self.roots)

    def may_open(self, root: Path) -> bool:
        """Whether a real path is one of the user's folders, or lies in one."""
        return self.opens_everything or (not self.revoked and any(_covers(pattern, root) for pattern in self.roots))


class Users:
    """Those who may come in now. Belongs to the event loop's thread; no lookup waits."""

    def __init__(self) -> None:
        self._by_digest: dict[str, User] = {}
        self._by_credential: dict[str, User] = {}
        self._by_login: dict[str, User] = {}
        self.present = False
        """Whether there is, or was since the start, anybody to tell from the holder of the server's own token. Asked by
        every call: where nobody ever was, no more of this module runs."""

    def take(self, accounts: Iterable[AccountRow]) -> list[User]:
        """Knows these accounts from now on, and no others. Returns, as they were, the users whose token is refused now:
        they were revoked, or have another one."""
        before = self._by_digest
        valid = {row.token_digest: user_of(row) for row in accounts if row.revoked_at is None}
        self._by_digest = valid
        self.present = self.present or bool(valid)
        self._by_credential = {user.credential: user for user in valid.values()}
        self._by_login = {user.login: user for user in valid.values()}
        return [user for digest, user in before.items() if digest not in valid]

    def of_token(self, presented: bytes) -> User | None:
        """The user who holds this token. The table is asked for a digest, so that its time says nothing of tokens."""
        digest = digest_of(presented)
        user = self._by_digest.get(digest)
        return user if user is not None and hmac.compare_digest(digest, digest_of(presented)) else None

    def of(self, credential: str) -> User | None:
        """The user with this credential; None: the server's own token, or one that was revoked."""
        return self._by_credential.get(credential)

    def of_login(self, login: str) -> User | None:
        """The user whose token is still the one that a browser signed in by."""
        return self._by_login.get(login)

    def restricted(self, credential: str) -> User | None:
        """The user with this credential, unless that is an administrator.

        A credential of a user who was revoked stays restricted, to nothing.
        """
        user = self._by_credential.get(credential)
        if user is None:
            return User(user_name(credential), credential, revoked=True) if user_name(credential) else None
        return None if user.admin else user

    def is_restricted(self, credential: str) -> bool:
        """Whether this is a team's user who sees own things alone."""
        return self.present and self.restricted(credential) is not None

    def may_work_in(self, credential: str, folder: str) -> bool:
        """Whether the settings in a folder, a path of the client's machine, may count for somebody's calls."""
        user = self.restricted(credential) if self.present else None
        return user is None or user.opens_everything or user.may_open(Path(os.path.realpath(folder)))

    def refusal(self, tool: str, credential: str) -> str | None:
        """Why somebody may not call a tool; None if they may."""
        if tool in REFUSED_TOOLS and self.restricted(credential) is not None:
            return f"{tool} is for administrators of this server: {REFUSED_TOOLS[tool]}."
        return None


def user_name(credential: str) -> str:
    """Whose credential it is; "" for the server's own token."""
    found = _CREDENTIAL.fullmatch(credential)
    return found[1] if found else ""


def user_of(row: AccountRow) -> User:
    login = f"{row.credential}:{row.token_digest[:16]}"
    return User(row.name, row.credential, row.admin, tuple(row.roots), login=login)


def digest_of(token: bytes) -> str:
    """What is kept of a token: it has 256 random bits, which no slow hash would make harder to guess."""
    return hashlib.sha256(token).hexdigest()


def new_account(name: str, roots: Iterable[str], now: float, *, admin: bool) -> tuple[AccountRow, str]:
    """A new account, and its token, which nobody can show again.

    Raises:
        InvalidArguments
    """
    if not _NAME.fullmatch(name):
        raise InvalidArguments(
            "The name of a user has at most 32 lower-case letters, digits and . _ -, and begins with a letter or digit."
        )
    token = _new_token()
    row = AccountRow(
        name=name,
        credential=f"user:{name}:{secrets.token_hex(8)}",
        token_digest=digest_of(token.encode()),
        admin=admin,
        roots=[_checked(root) for root in roots],
        created_at=now,
    )
    if len(row.roots) > MOST_ROOTS:
        raise InvalidArguments(f"The limit is {MOST_ROOTS} roots per user.")
    return row, token


AccountChange = Callable[[AccountRow | None], AccountRow]
"""Makes an account of the one that has a name now, None if there is none, or raises why it can't: InvalidArguments or
UserNotFound. May be called more than once, before one result is kept."""


def addition(row: AccountRow) -> AccountChange:
    """Makes a new account; what is returned raises InvalidArguments where a user has that name."""

    def added(before: AccountRow | None) -> AccountRow:
        if before is not None and before.revoked_at is None:
            raise InvalidArguments(
                f"There is a user {row.name!r} already. `serena-central users rotate` gives a new token."
            )
        return row

    return added


def rotation(name: str, now: float) -> tuple[AccountChange, str]:
    """Gives an account another token, which is returned, too."""
    token = _new_token()
    changes = {"token_digest": digest_of(token.encode()), "rotated_at": now}
    return lambda before: msgspec.structs.replace(_valid(name, before), **changes), token


def revocation(name: str, now: float) -> AccountChange:
    """Refuses an account's token from now on."""
    return lambda before: msgspec.structs.replace(_valid(name, before), revoked_at=now)


def _valid(name: str, row: AccountRow | None) -> AccountRow:
    if row is None or row.revoked_at is not None:
        raise UserNotFound(name)
    return row


def _new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def _checked(pattern: str) -> str:
    """A folder or a pattern of folders, with links followed as far as it names folders.

    Raises:
        InvalidArguments
    """
    path = Path(pattern)
    if not path.is_absolute() or ".." in path.parts or "\0" in pattern:
        raise InvalidArguments(f"A root must be an absolute path or a pattern of one: {pattern!r} is not.")
    if "**" in pattern:
        raise InvalidArguments(f"{pattern!r}: a root allows all folders below it; ** is not needed.")
    first = next((n for n, part in enumerate(path.parts) if _PATTERN.search(part)), len(path.parts))
    return str(Path(*path.parts[:first]).resolve().joinpath(*path.parts[first:]))


def _covers(pattern: str, root: Path) -> bool:
    wanted = Path(pattern).parts
    return len(root.parts) >= len(wanted) and all(map(fnmatchcase, root.parts, wanted))
