"""Frames on a connection between a front and a project host, and how each proves to the other that it may use it.

A frame is a head and a body. The head is, in network byte order, the length of the body (4 bytes), its kind (1) and the
number of the call that it is about (4; 0 for none). The host's address carries a secret, which travels through Ray, so
that Ray's token guards this connection, too: the host sends the frames' version and a nonce, the front a MAC over that
and a nonce of its own, and the host a MAC over both. Nothing is encrypted, as in Ray.

Each RUN has one REPLY, also when it is cancelled, and each REPLY that the front has taken one TAKEN: what a host was
not told of it tells again.
"""

import asyncio
import hashlib
import hmac
import os
import socket
import struct
from enum import IntEnum
from typing import Any, cast

import msgspec

from serena_central.core.errors import ClusterError

HEAD = struct.Struct(">IBI")

VERSION = 2

NONCE_BYTES = 32
PROOF_BYTES = 32

CHALLENGE_BYTES = 1 + NONCE_BYTES
"""The version, and the nonce."""

PROVING_BYTES = CHALLENGE_BYTES + PROOF_BYTES
"""The limit of a body before the peer is proven."""

MOST_BYTES = 256 * 1024 * 1024
"""The limit of a body afterwards; the largest answer that a caller may ask for is smaller."""

PROVING_S = 5.0
"""How long the proof may take: a machine may be busy."""

KEPT_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Options of sockets that systems may lack. A side that vanishes without a word, with its machine, is noticed after a
minute where nobody asks it."""

_LABEL = b"serena-central project host"


class Kind(IntEnum):
    """What a frame is. Host to front: CHALLENGE, PROVEN, REPLY, PROGRESS, PONG; the others are the front's."""

    CHALLENGE = 1
    PROOF = 2
    PROVEN = 3
    RUN = 4
    REPLY = 5
    PROGRESS = 6
    CANCEL = 7
    PING = 8
    PONG = 9
    TAKEN = 10


class HostAddress(msgspec.Struct, frozen=True):
    """Where a project host takes runs, and what proves that one may send them."""

    host: str
    port: int
    secret: bytes

    def __repr__(self) -> str:
        return f"HostAddress({self.host}:{self.port})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("host", self.host), ("port", self.port)]


def nonce() -> bytes:
    return os.urandom(NONCE_BYTES)


def proof(secret: bytes, side: bytes, *nonces: bytes) -> bytes:
    """The MAC by which one side (`front` or `host`) proves that it has the secret."""
    return hmac.digest(secret, b"\0".join((_LABEL, side)) + b"".join(nonces), hashlib.sha256)


def proves(given: bytes, secret: bytes, side: bytes, *nonces: bytes) -> bool:
    return hmac.compare_digest(given, proof(secret, side, *nonces))


class FramedConnection(asyncio.Protocol):
    """Sends frames, and hands those that arrive to `take`. Belongs to the event loop's thread; never blocks."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._came = bytearray()
        self._proven = False
        """Whether the peer has shown that it has the secret."""

    def take(self, kind: int, number: int, body: bytes) -> None:
        """A frame arrived. What it raises as ClusterError closes the connection."""
        raise NotImplementedError

    def lost(self, why: str) -> None:
        """The connection is closed, by whichever side."""
        raise NotImplementedError

    def send(self, kind: Kind, number: int = 0, body: bytes = b"") -> None:
        """Sends a frame; to no effect once the connection is closed."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines((HEAD.pack(len(body), kind, number), body))

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def close(self, why: str = "it was closed") -> None:
        """Closes it at once: what is not sent yet is dropped."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self.lost(why)

    # --- asyncio's side --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of no class of asyncio
        connected: socket.socket = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEPT_ALIVE.items():
            option: int | None = getattr(socket, name, None)
            if option is not None:
                connected.setsockopt(socket.IPPROTO_TCP, option, value)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(str(exc) if exc is not None else "the other side closed it")

    def data_received(self, data: bytes) -> None:
        self._came += data
        try:
            self._take_frames()
        except ClusterError as error:
            self.close(str(error))

    def _take_frames(self) -> None:
        came, start = self._came, 0
        while self._transport is not None and len(came) - start >= HEAD.size:
            length, kind, number = HEAD.unpack_from(came, start)
            if length > (MOST_BYTES if self._proven else PROVING_BYTES):
                raise ClusterError(f"A frame of {length} bytes is longer than allowed.")
            body = start + HEAD.size
            if len(came) < body + length:
                break
            start = body + length
            self.take(kind, number, bytes(came[body:start]))
        del came[:start]
