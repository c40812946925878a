"""Signs in browsers: by a one-time link, then by the cookie that it sets.

The browser holds a secret; the server and its file hold only digests of it, so that sign-ins survive a restart and a
copy of the file is useless. A new token signs all browsers out. It knows no pages.
"""

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from serena_central.core.decoding import from_json
from serena_central.files.atomic import write_whole

logger = logging.getLogger(__name__)

LINK_LIFE_S = 600.0
"""How long a link can be used, once, in seconds: enough to change to a browser, too short for a link found in a log."""

LOGIN_LIFE_S = 7 * 24 * 3600.0

MOST_LINKS = 16
MOST_LOGINS = 64
"""Bounds on what is remembered; the oldest go first."""

MOST_COOKIES = 200
"""Browsers keep at most 180 for a host."""


class Login(NamedTuple):
    """A browser that signed in. `id` identifies it but is no credential; `csrf` is the token in its forms."""

    id: str
    csrf: str
    expires_at: float
    user: str = ""
    """The `login` of a team's user; "" for the holder of the server's own token."""
    here_alone: bool = False
    """It belongs to a browser of this machine and this user: another user's program is none of it."""


class _Kept(msgspec.Struct):
    """The file: logins (digest of the cookie's secret → Unix time of its end) of one token's holder."""

    credential: str
    logins: dict[str, float] = {}
    users: dict[str, str] = {}
    """Of the logins of a team's users: whose they are."""
    here_alone: list[str] = []
    """Of the logins: see `Login.here_alone`."""


class _Link(NamedTuple):
    """A link that is open: until when, for whose login, and whether for `Login.here_alone`."""

    good_until: float
    user: str
    here_alone: bool


class Browsers:
    """Links that are open and browsers that are in. Belongs to the event loop's thread; only `save` does I/O."""

    def __init__(self, file: Path, credential: str, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._links: dict[str, _Link] = {}
        """By the digests of their keys."""
        self._kept = _read(file, credential)
        self._saving = threading.Lock()
        # Cookies don't tell ports apart: two servers on one host would sign each other's browsers out.
        self.cookie_name = f"serena_central_{credential[:8]}"

    @property
    def credential(self) -> str:
        """Of whom all these browsers are."""
        return self._kept.credential

    def invite(self, user: str = "", *, here_alone: bool = False) -> str:
        """A new link's key, good for one browser within `LINK_LIFE_S`. `user`: the `login` of a team's user.
        `here_alone`: for a browser of this machine that the server's own user runs."""
        key = secrets.token_urlsafe(32)
        self._links[_digest(key)] = _Link(self._clock() + LINK_LIFE_S, user, here_alone)
        while len(self._links) > MOST_LINKS:
            del self._links[next(iter(self._links))]
        return key

    def enter(self, key: str) -> str | None:
        """Uses a link up: the secret for the browser's cookie, or None if the link is used, too old or invented."""
        link = self._links.pop(_digest(key), None)
        if link is None or self._clock() >= link.good_until:
            return None
        return self.admit(link.user, here_alone=link.here_alone)

    def is_for_here_alone(self, key: str) -> bool:
        """Whether a link is open that no other user's program may use. It stays open."""
        link = self._links.get(_digest(key))
        return link is not None and link.here_alone

    def admit(self, user: str = "", *, here_alone: bool = False) -> str:
        """The secret for the cookie of a browser that may come in."""
        now = self._clock()
        secret = secrets.token_urlsafe(32)
        logins = {digest: end for digest, end in self._kept.logins.items() if end > now}
        logins[_digest(secret)] = now + LOGIN_LIFE_S
        self._kept.logins = dict(list(logins.items())[-MOST_LOGINS:])
        owners = {**self._kept.users, **({_digest(secret): user} if user else {})}
        self._kept.users = {digest: owner for digest, owner in owners.items() if digest in self._kept.logins}
        of_here = [*self._kept.here_alone, *([_digest(secret)] if here_alone else [])]
        self._kept.here_alone = [digest for digest in of_here if digest in self._kept.logins]
        return secret

    def login(self, cookies: bytes) -> Login | None:
        """The login of the browser that sends this `Cookie` header; None if it is not signed in."""
        for secret in _values(cookies, self.cookie_name):
            digest = _digest(secret)
            expires_at = self._kept.logins.get(digest, 0.0)
            if self._clock() < expires_at:
                csrf = hmac.new(secret.encode("latin-1"), b"csrf", hashlib.sha256).hexdigest()
                here_alone = digest in self._kept.here_alone
                return Login(digest[:16], csrf, expires_at, self._kept.users.get(digest, ""), here_alone)
        return None

    def leave(self, login: Login) -> None:
        """Signs a browser out: its cookie is no longer accepted."""
        self._kept.logins = {
            digest: end for digest, end in self._kept.logins.items() if not digest.startswith(login.id)
        }

    def sign_out_user(self, user: str) -> list[str]:
        """Signs out all browsers that came in by a user's `login`; the ids of theirs."""
        gone = [digest for digest, owner in self._kept.users.items() if owner == user]
        self._links = {key: link for key, link in self._links.items() if link.user != user}
        for digest in gone:
            self._kept.logins.pop(digest, None)
            del self._kept.users[digest]
        return [digest[:16] for digest in gone]

    def save(self) -> None:
        """Writes who is in, for the next run. Blocks; where it fails, a restart signs out. Safe from all threads: what
        is written last is what was so last."""
        try:
            with self._saving:
                write_whole(self._file, msgspec.json.encode(self._kept))
        except OSError as error:
            logger.warning("dashboard sessions could not be saved: %s", error)


def _read(file: Path, credential: str) -> _Kept:
    try:
        kept = from_json(file.read_bytes(), _Kept)
    except (OSError, msgspec.DecodeError):
        return _Kept(credential)
    return kept if kept.credential == credential else _Kept(credential)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _values(header: bytes, name: str) -> list[str]:
    """What is presented under a cookie's name. Any page of this host can add to it, whatever its port and path: what
    is not ours lets nobody in, and keeps nobody out."""
    found = (pair.partition("=") for pair in header.decode("latin-1").split(";"))
    return [value.strip() for key, _, value in found if key.strip() == name][:MOST_COOKIES]
