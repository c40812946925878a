"""What may stand between a proxy and a server: it answers in the server's place, loses answers, drops connections."""

import json
import re
import ssl
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSListener

TOLD_BYTES = 4096

GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Trouble(NamedTuple):
    """What one request meets instead of its answer."""

    status: int | None
    """What it is answered with; None: the connection is closed."""
    carried_out: bool = False
    """The server has it first, and its answer is lost; without a status, half of it comes before the end."""


class Exchange(NamedTuple):
    """A request as it came. `name` is its JSON-RPC method, or `GET /path`; that of an answer is `answer`."""

    name: str
    head: bytes
    body: bytes


@dataclass
class Front:
    """`ahead` are the troubles to come, by name of the exchange; `seen` counts exchanges by name, `told` has the
    beginning of what was passed on in answer to them."""

    url: str
    backend: int
    ahead: defaultdict[str, list[Trouble]] = field(default_factory=lambda: defaultdict(list))
    seen: Counter[str] = field(default_factory=Counter)
    told: defaultdict[str, bytes] = field(default_factory=lambda: defaultdict(bytes))
    kept: set["_Side"] = field(default_factory=set)
    """Connections of the proxy that are idle."""

    async def hang_up(self) -> None:
        """Closes all idle connections, as servers do after a while."""
        for side in list(self.kept):
            await side.stream.aclose()

    async def serve(self, stream: ByteStream) -> None:
        """One connection of the proxy, exchange by exchange."""
        side = _Side(stream)
        async with stream:
            try:
                while True:
                    self.kept.add(side)
                    try:
                        exchange = await side.exchange()
                    finally:
                        self.kept.discard(side)
                    self.seen[exchange.name] += 1
                    trouble = self.ahead[exchange.name]
                    if trouble:
                        await self._trouble(side, exchange, trouble.pop(0))
                    else:
                        await self._pass_on(side, exchange)
            except* GONE:
                pass

    async def _trouble(self, side: "_Side", exchange: Exchange, trouble: Trouble) -> None:
        answer = b""
        if trouble.carried_out:
            async with await self._asked(exchange) as server:
                answer = await _all_of(server)
        if trouble.status is None:
            await side.stream.send(answer[: len(answer) // 2])
            raise anyio.EndOfStream
        body = b"<html>No server for you.</html>"
        head = f"HTTP/1.1 {trouble.status} Trouble\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\n\r\n"
        await side.stream.send(head.encode() + body)

    async def _pass_on(self, side: "_Side", exchange: Exchange) -> None:
        """Until the server has answered in full, or the proxy has gone."""
        async with await self._asked(exchange) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(side.until_gone, tasks.cancel_scope)
            answer = await _Side(server).head()
            piece = re.sub(rb"(?i)connection: close\r\n", b"", answer.head) + answer.body
            with suppress(anyio.EndOfStream):
                while True:
                    await side.stream.send(piece)
                    self.told[exchange.name] = (self.told[exchange.name] + piece)[:TOLD_BYTES]
                    piece = await server.receive()
            tasks.cancel_scope.cancel()
        if side.gone:
            raise anyio.EndOfStream

    async def _asked(self, exchange: Exchange) -> ByteStream:
        """A connection to the server on which it has this request, and no other."""
        server = await anyio.connect_tcp("127.0.0.1", self.backend)
        await server.send(exchange.head[:-2] + b"connection: close\r\n\r\n" + exchange.body)
        return server


class _Side:
    """One end, and what came from it ahead of time."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self.gone = False
        self._buffer = b""

    async def head(self) -> Exchange:
        """Start line and headers, with what else came."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            self._buffer += await self.stream.receive()
        head, body, self._buffer = self._buffer[: end + 4], self._buffer[end + 4 :], b""
        return Exchange("", head, body)

    async def exchange(self) -> Exchange:
        _, head, body = await self.head()
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found[1]) if found else 0
        while len(body) < length:
            body += await self.stream.receive()
        self._buffer = body[length:]
        if not length:
            return Exchange(b" ".join(head.split(b" ")[:2]).decode(), head, b"")
        return Exchange(json.loads(body[:length]).get("method", "answer"), head, body[:length])

    async def until_gone(self, scope: anyio.CancelScope) -> None:
        """Cancels `scope` when the other end hangs up; what it sends before is the next request's."""
        try:
            while True:
                self._buffer += await self.stream.receive()
        except GONE:
            self.gone = True
            scope.cancel()


async def _all_of(stream: ByteStream) -> bytes:
    return b"".join([piece async for piece in stream])


@asynccontextmanager
async def fronting(url: str, port: int = 0, context: ssl.SSLContext | None = None) -> AsyncGenerator[Front]:
    """A front before the server at `url` (without a path), at `port` or any free one; with `context` it speaks TLS."""
    async with AsyncExitStack() as stack:
        tcp = await stack.enter_async_context(await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port))
        port = tcp.extra_attributes[anyio.abc.SocketAttribute.local_port]()
        listener = TLSListener(tcp, context, standard_compatible=False) if context else tcp
        scheme = "https" if context else "http"
        front = Front(f"{scheme}://127.0.0.1:{port}/mcp", int(url.rpartition(":")[2]))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(listener.serve, front.serve)
        yield front
        tasks.cancel_scope.cancel()
