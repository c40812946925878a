"""The client that measures: one keep-alive connection, requests built beforehand, nothing parsed but where the answer
ends. What it costs itself is the floor's share, too."""

import json
import socket
import time
from itertools import count
from typing import Any, Literal

Era = Literal["handshake", "modern"]
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"

KEPT_S = 3.0
"""A connection that was quiet for longer is opened anew: web servers close them after 5 s."""

ANSWER_S = 600
"""A graph of all of Django takes minutes; nothing else comes near."""

_ids = count(1)


class Refused(Exception):
    """The server answered with an error: there is nothing to measure."""


class Connection:
    """HTTP/1.1 over one socket. Blocks."""

    def __init__(self, port: int, token: str = "") -> None:
        self.port = port
        self._token = token
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used_at = time.monotonic()

    def close(self) -> None:
        self._socket.close()

    def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
        """The bytes of a request."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"host: 127.0.0.1:{self.port}",
            f"authorization: Bearer {self._token}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Head and body of the answer, the body as it came (with the marks of its chunks, if it has any)."""
        if time.monotonic() - self._used_at > KEPT_S:
            self.close()
            self._connect()
        head, body = self.begin(request)
        if b"transfer-encoding: chunked" in head:
            while not body.endswith(b"0\r\n\r\n"):
                body += self._read()
        elif b"content-length: " in head:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            while len(body) < length:
                body += self._read()
        self._used_at = time.monotonic()
        return head, body

    def begin(self, request: bytes) -> tuple[bytes, bytes]:
        """The head of the answer, and what has come of its body."""
        self._socket.sendall(request)
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._read()
        return data[:end].lower(), data[end + 4 :]

    def _read(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise Refused("the server closed the connection")
        return data


class Client:
    """One MCP client of either era."""

    def __init__(self, port: int, token: str, era: Era = "handshake", *, name: str = "bench") -> None:
        self.connection = Connection(port, token)
        self._token = token
        self._era = era
        self._name = name
        self._session: dict[str, str] = {}
        if era == "modern":
            self._session = {"x-serena-session": f"bench-{time.time_ns()}-{next(_ids)}"}
            return
        opening = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        head, _ = self.connection.exchange(self._request("initialize", opening))
        session = head.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()
        self._session = {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}
        body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        self.connection.exchange(self.connection.request("POST", "/mcp", body, self._session))

    def close(self) -> None:
        self.connection.close()

    def _request(self, method: str, params: dict[str, Any]) -> bytes:
        headers, number = dict(self._session), next(_ids)
        if method == "tools/call":
            params = {**params, "_meta": {"progressToken": number}}  # as agents do
        if self._era == "modern":
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": params.get("name", "")}
            about = {"protocolVersion": MODERN, "clientCapabilities": {}}
            about["clientInfo"] = {"name": self._name, "version": "1"}
            meta = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
            params = {**params, "_meta": {**meta, **params.get("_meta", {})}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        return self.connection.request("POST", "/mcp", body, headers)

    def prepare(self, tool: str, **arguments: Any) -> bytes:
        """The bytes of a call."""
        return self._request("tools/call", {"name": tool, "arguments": arguments})

    def send(self, request: bytes) -> bytes:
        """The body of the answer.

        Raises:
            Refused: the tool or the server answered with an error.
        """
        head, body = self.connection.exchange(request)
        if b" 200 " not in head[:16] or b'"isError":false' not in body:
            raise Refused(body.decode(errors="replace")[:1000])
        return body

    def ask(self, method: str, **params: Any) -> bytes:
        """The body of the answer to any request, which may be an event stream."""
        return self.connection.exchange(self._request(method, params))[1]

    def follow(self) -> Connection:
        """The stream outside of calls, on a connection of its own.

        Raises:
            Refused: there is none.
        """
        stream = Connection(self.connection.port, self._token)
        head, body = stream.begin(stream.request("GET", "/mcp", headers=self._session))
        if b" 200 " not in head[:16]:
            raise Refused(body.decode(errors="replace")[:1000])
        return stream

    def call(self, tool: str, **arguments: Any) -> bytes:
        return self.send(self.prepare(tool, **arguments))
