"""The proof by which a server shows that it has its user's token before a client sends it.

The client asks `/health` with a nonce; the server answers with a MAC over the nonce and the endpoint that it was asked
at. An endpoint is the address of the server's own socket, or a name that its settings give it: whoever hands the
question on to the real server gets a proof for that one's endpoint, which is of no use at its own.
"""

import hashlib
import hmac
import json
import os
import re
import socket
import time
from typing import Any

PATH = "/health"
NONCE = re.compile(r"[0-9a-f]{64}")

HEAD_BYTES = 8 * 1024
BODY_BYTES = 8 * 1024

_LABEL = b"serena-central proof of the server, version 1"


class Unproven(Exception):
    """What listens there did not prove that it is this user's server. `by_another`: it answered as a server does that
    has another token."""

    def __init__(self, message: str, *, by_another: bool = False) -> None:
        super().__init__(message)
        self.by_another = by_another


def proof_of(token: str, nonce: str, endpoint: str) -> str:
    """The MAC of an endpoint, in hex."""
    message = b"\0".join((_LABEL, nonce.encode("ascii"), endpoint.encode("utf-8")))
    return hmac.new(token.encode("ascii"), message, hashlib.sha256).hexdigest()


def authority_of(host: str, port: int) -> str:
    """`host:port`, as a Host header has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address_endpoint(address: tuple[Any, ...]) -> str:
    """The endpoint of a socket, as getsockname has it at the server and getpeername at the client."""
    host = str(address[0]).partition("%")[0].removeprefix("::ffff:")
    return f"address {host} {address[1]}"


def name_endpoint(authority: str) -> str:
    """The endpoint of a `name:port` by which a server is called."""
    return f"name {authority.lower()}"


class Question:
    """One nonce, and what answers it."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix` is the path in front of the server's own, if it has one."""
        self._nonce = os.urandom(32).hex()
        self.target = f"{prefix}{PATH}?nonce={self._nonce}"

    def request(self, authority: str) -> bytes:
        """The whole of it; the connection stays open."""
        host = authority.encode("ascii" if authority.isascii() else "idna")
        return b"GET %s HTTP/1.1\r\nhost: %s\r\nuser-agent: serena\r\n\r\n" % (self.target.encode("ascii"), host)

    def check(self, status: int, body: bytes, token: str, *, peer: tuple[Any, ...], authority: str) -> None:
        """Raises Unproven."""
        try:
            said: Any = json.loads(body) if status == 200 else None
            given = str(said["proof"]).encode("utf-8", "replace")
        except (ValueError, KeyError, TypeError, RecursionError):
            given = b""
        good = [
            hmac.compare_digest(given, proof_of(token, self._nonce, endpoint).encode("ascii"))
            for endpoint in (address_endpoint(peer), name_endpoint(authority))
        ]
        if not any(good):
            raise Unproven(
                f"The program at {authority} could not prove that it is this user's server, so the token was not sent. "
                "It may be another program (`serena-central serve` starts yours), a server with another token (with a "
                "user's token of a team's server, the URL has to begin with https://), or one "
                f"behind a tunnel whose setting central_server_names lacks {authority}.",
                by_another=bool(given),
            )


def prove(connection: socket.socket, token: str, authority: str, *, deadline: float, prefix: str = "") -> None:
    """One blocking exchange on a fresh connection, which can then be used. `deadline` is monotonic.

    Raises:
        Unproven: the token must not be sent.
        OSError: the connection failed, or time is up.
    """
    question = Question(prefix)
    _limit(connection, deadline)
    connection.sendall(question.request(authority))
    status, body = _answer(connection, deadline)
    question.check(status, body, token, peer=connection.getpeername(), authority=authority)


def _answer(connection: socket.socket, deadline: float) -> tuple[int, bytes]:
    """Status and body; of what is no such answer, 0 and nothing."""
    came = b""
    while (end := came.find(b"\r\n\r\n")) < 0:
        if len(came) > HEAD_BYTES or not (piece := _received(connection, deadline)):
            return 0, b""
        came += piece
    status, length = re.match(rb"HTTP/1\.1 (\d{3}) ", came), re.search(rb"(?i)\r\ncontent-length: *(\d{1,4})\r\n", came)
    if status is None or length is None or (size := int(length[1])) > BODY_BYTES:
        return 0, b""
    while len(came) < end + 4 + size:
        if not (piece := _received(connection, deadline)):
            return 0, b""
        came += piece
    return int(status[1]), came[end + 4 :]


def _received(connection: socket.socket, deadline: float) -> bytes:
    _limit(connection, deadline)
    return connection.recv(BODY_BYTES)


def _limit(connection: socket.socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the proof did not arrive in time")
    connection.settimeout(left)
