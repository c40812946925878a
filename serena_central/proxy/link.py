"""The connection to the server: its address, credentials, and kept connections.

It waits for a server that is away, and lets one be started; what is sent over its connections it doesn't know.
"""

import os
import socket
import sys
import time
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from serena_central.proxy.event_loop import Loop
from serena_central.proxy.http1 import AWAY, Broken, Connection, connect
from serena_central.proxy.starting import Starter
from serena_central.standalone.backoff import Backoff
from serena_central.standalone.home import Home, Unusable, read_token
from serena_central.standalone.lock import is_locked

CONNECT_S = 5.0
PROOF_S = 30.0
PATIENCE_S = 30.0
"""How long a message waits for a server that can't be started from here."""

PAUSES_S = (0.05, 1.0)
"""Between two attempts, first and longest; each is twice the one before."""

IDLE_KEPT = 8
"""Connections kept open for later exchanges."""


class Unreachable(Exception):
    """No server answers; the text says what was tried and what to do."""


class OtherToken(Unreachable):
    """A server answers, and has another token."""


class Silent(Unreachable):
    """A server takes connections, and answers nothing. Another one can't be started beside it."""


class Target(NamedTuple):
    """Where the server listens. `path` is that of its MCP endpoint."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target_of(url: str) -> Target:
    """Raises ValueError for what is no http(s) URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise ValueError(f"{url!r} is not a server URL, such as http://127.0.0.1:24280/mcp")
    secure = parts.scheme == "https"
    return Target(secure, parts.hostname, parts.port or (443 if secure else 80), parts.path.rstrip("/") or "/mcp")


class Link:
    """Connections to one server: the announced one, or the one at `url`."""

    def __init__(
        self, loop: Loop, home: Home, *, url: str | None, token_file: str | None, starter: Starter | None
    ) -> None:
        self._loop = loop
        self._home = home
        self._fixed = target_of(url) if url else None
        self._token_file = token_file
        self._token: str | None = None
        self._starter = starter
        self._idle: list[Connection] = []

    def target(self) -> Target | None:
        """Where the server is now; None when none runs."""
        if self._fixed is not None:
            return self._fixed
        said = self._home.announcement()
        # Without its process the port may be anybody's by now, and the token is not for them. One that runs in another
        # container has no id here, and holds the home.
        if said is None or not (process_runs(said.pid) or is_locked(self._home.lock_file)):
            return None
        try:
            return target_of(said.url)
        except ValueError:
            return None

    def token(self) -> str | None:
        """Raises Unusable."""
        if self._token is None and self._token_file is not None:
            self._token = read_token(self._token_file)
        return self._token

    def forget_token(self) -> None:
        """Reads the file again next time: the server said that this is not its token."""
        self._token = None

    async def connection(self) -> tuple[Connection, Target]:
        """A connection that can be used, to a server that may have to come back, or be started, first.

        Raises:
            Unreachable: none answered in time, or none could be started; or one at an address of the user's choice has
                another token, also after the token's file was read again. That does not pass by waiting.
            Silent: one hangs, and has been waited for.
        """
        refused = 0
        deadline, backoff = time.monotonic() + PATIENCE_S, Backoff(*PAUSES_S)
        while True:
            try:
                return await self.connection_now()
            except Silent:
                raise
            except Unreachable as error:
                refused += isinstance(error, OtherToken)
                if self._fixed is not None and refused > 1:
                    raise
                if self._starter is not None:
                    await self._start(self._starter)
                elif time.monotonic() > deadline:
                    raise
            await self._loop.sleep(backoff.next_s())

    async def connection_now(self) -> tuple[Connection, Target]:
        """As `connection`, without waiting for a server that is away."""
        target = self.target()
        if target is None:
            raise Unreachable("No server is running for this user. Start one with `serena-central serve`.")
        while self._idle:
            kept = self._idle.pop()
            if kept.opened_for == target.authority and kept.is_fresh():
                return kept, target
            kept.close()
        try:
            return await self._open(target), target
        except OSError as error:
            why = error.strerror or str(error) or "no answer"
            raise Unreachable(
                f"No server answers at {target.authority} ({why}). Start it with `serena-central serve`; "
                "`serena-central doctor` shows details."
            ) from error

    def give_back(self, connection: Connection) -> None:
        """Keeps a connection whose exchange is over, if it can be used again."""
        if connection.reusable and connection.kept and len(self._idle) < IDLE_KEPT:
            connection.deadline = connection.in_silence = None
            self._idle.append(connection)
        else:
            connection.close()

    async def check_alive(self) -> None:
        """Returns unless the server hangs: what else is wrong is seen on the connection that waits for it.

        Raises:
            Silent
        """
        target = self.target()
        if target is None:
            return
        try:
            connection = await self._open(target)
        except Silent:
            raise
        except (Unreachable, Unusable, OSError):
            return
        connection.kept = True
        self.give_back(connection)

    async def _open(self, target: Target) -> Connection:
        sock = await connect(self._loop, target.host, target.port, CONNECT_S)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a machine that vanished is noticed
        if not target.secure:
            connection = Connection(self._loop, sock, target.authority)
            try:
                await self._prove(connection, sock.getpeername(), target)
            except BaseException:
                connection.close()
                raise
            return connection
        from serena_central.proxy.tls import secure  # costs more than all the rest

        secured = await secure(self._loop, sock, target.host, CONNECT_S)
        return Connection(self._loop, secured, target.authority)

    async def _prove(self, connection: Connection, peer: tuple[Any, ...], target: Target) -> None:
        """Over TLS the certificate is the proof; else the server has to show that it knows the token.

        Raises:
            Unreachable: it did not.
            OSError: the connection failed.
        """
        token = self.token()
        if token is None:
            return  # there is nothing to give away
        from serena_central.standalone.proof import BODY_BYTES, Question, Unproven  # brings OpenSSL

        question = Question(target.path.removesuffix("/mcp"))
        connection.deadline = time.monotonic() + PROOF_S
        try:
            await connection.send(question.request(target.authority))
            head = await connection.head()
            body = await connection.body(BODY_BYTES)
            if head.status in AWAY:
                raise Broken(f"status {head.status}")
            question.check(head.status, body, token, peer=peer, authority=target.authority)
        except Broken as error:
            raise Unreachable(f"The server at {target.authority} is not available ({error}).") from error
        except TimeoutError:
            if self._fixed is None and not is_locked(self._home.lock_file):
                raise Unreachable(
                    f"No server is running for this user: another program takes connections at {target.authority}, "
                    "where the last one listened."
                ) from None
            raise Silent(
                f"The server at {target.authority} takes connections, but has answered nothing for {PROOF_S:g} s: it "
                f"hangs, or was stopped by a signal. {self._way_out()}"
            ) from None
        except Unproven as error:
            self.forget_token()  # it may be another one by now
            raise (OtherToken if error.by_another else Unreachable)(str(error)) from None
        connection.deadline = None

    def _way_out(self) -> str:
        said = self._home.announcement() if self._fixed is None else None
        if said is None:
            return "Restart it where it runs."
        return f"Resume it (`kill -CONT {said.pid}`), or end it (`kill -9 {said.pid}`): the next call starts another."

    async def _start(self, starter: Starter) -> None:
        failure = await starter.ensure(self._answers)
        if failure is not None:
            raise Unreachable(failure)

    async def _answers(self) -> bool:
        """Whether a server takes connections now."""
        try:
            connection, _ = await self.connection_now()
        except Unreachable:
            return False
        connection.kept = True
        self.give_back(connection)
        return True


def process_runs(pid: int) -> bool:
    """Whether a process of ours has this id."""
    if sys.platform == "win32" or pid <= 0:
        return pid > 0  # os.kill would end it there
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
