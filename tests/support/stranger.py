"""A program of somebody else that listens where the server should, and keeps all that it is sent."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio.abc import SocketStream

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)

PLAUSIBLE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 92\r\n\r\n"
    b'{"status":"ok","version":"0.1.0","uptime_s":1.0,"proof":"' + b"0" * 33 + b'"}'
)


@dataclass
class Stranger:
    """`relays_to` is the port of a real server that it asks in the client's place."""

    port: int
    relays_to: int | None
    received: bytes = b""
    answered: int = 0

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            with suppress(*GONE):
                while True:
                    request = await stream.receive()
                    self.received += request
                    if self.relays_to is None:
                        await stream.send(PLAUSIBLE)
                    else:
                        await stream.send(await self._relayed(request, self.relays_to))
                    self.answered += 1

    async def _relayed(self, request: bytes, port: int) -> bytes:
        """What the real server says to the same question, asked by its own name."""
        own = re.sub(rb"(?i)(host: *[^:\r]*):\d+", rb"\1:%d" % port, request)
        async with await anyio.connect_tcp("127.0.0.1", port) as server:
            await server.send(own)
            answer = await server.receive()
            while not _is_whole(answer):  # head and body may come one after the other
                answer += await server.receive()
            return answer


def _is_whole(answer: bytes) -> bool:
    head, ended, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return bool(ended) and len(body) >= (int(length[1]) if length else 0)


@asynccontextmanager
async def a_stranger(*, relays_to: int | None = None) -> AsyncGenerator[Stranger]:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        own_port = listener.extra(anyio.abc.SocketAttribute.local_port)
        stranger = Stranger(own_port, relays_to)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, stranger.serve)
            yield stranger
            tasks.cancel_scope.cancel()
