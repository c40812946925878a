"""A server that proves itself as ours does, and answers everything else as its test says; for blocking callers."""

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from serena_central.standalone.proof import address_endpoint, proof_of


@dataclass
class Sent:
    """A request as it came; names of headers are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Sent], bytes | None]
"""The whole answer; None: the connection is closed."""


@dataclass
class Scripted:
    """`requests` are those that came after the proof."""

    url: str
    requests: list[Sent] = field(default_factory=list)


def answer(status: int = 200, text: str = "", *, value: Any = None) -> bytes:
    """An HTTP answer with a text, or with JSON."""
    body = text.encode() if value is None else json.dumps(value).encode()
    return f"HTTP/1.1 {status} Some Reason\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def scripted_http(token: str, script: Script) -> Generator[Scripted]:
    """Serves until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        server = Scripted(f"http://127.0.0.1:{address[1]}")
        open_ones: list[socket.socket] = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    open_ones.append(connection)
                    with suppress(OSError), connection, connection.makefile("rb") as stream:
                        while (sent := _request(stream)) is not None and (said := _answered(sent)) is not None:
                            connection.sendall(said)

        def _answered(sent: Sent) -> bytes | None:
            nonce = parse_qs(urlsplit(sent.target).query).get("nonce")
            if nonce:
                return answer(value={"proof": proof_of(token, nonce[0], address_endpoint(address))})
            server.requests.append(sent)
            return script(sent)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            for one in (listener, *open_ones):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            thread.join(30)
            assert not thread.is_alive()


def _request(stream: Any) -> Sent | None:
    first = stream.readline().decode()
    if not first:
        return None
    method, target, _ = first.split(" ", 2)
    headers: dict[str, str] = {}
    while (line := stream.readline().strip()) != b"":
        name, _, value = line.decode("utf-8").partition(":")
        headers[name.lower()] = value.strip()
    return Sent(method, target, headers, stream.read(int(headers.get("content-length", 0))))
