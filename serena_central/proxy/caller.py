"""The headers by which this process identifies itself, for all requests and for each message."""

import os
import sys
from typing import NamedTuple

from serena_central.proxy.link import Link, Target
from serena_central.proxy.messages import Message, header_value

ACCEPT = b"application/json, text/event-stream"


class Options(NamedTuple):
    """What the command line and the environment say about this proxy's client."""

    folder: str
    """The client's working folder; empty where it says nothing."""
    context: str | None = None
    modes: tuple[str, ...] = ()
    conversation: str | None = None
    hops: str = ""
    """How many hubs of MCP servers lie between this process and the client."""


def identity_of(options: Options) -> dict[str, bytes]:
    """The headers that identify this process, so that it gets its own session."""
    said = {
        "x-serena-session": b"proxy-" + os.urandom(12).hex().encode("ascii"),
        "x-serena-conversation": _value(options.conversation),
        "x-serena-project": _value(options.folder),
        "x-serena-context": _value(options.context),
        "x-serena-hops": _value(options.hops),
        "x-serena-modes": _value(",".join(options.modes)),
    }
    return {name: value for name, value in said.items() if value}


class Caller:
    """Our identity: an id that is fresh for this process and stays for its life."""

    def __init__(self, link: Link, options: Options) -> None:
        self._link = link
        self._always = identity_of(options)
        self.session = self._always["x-serena-session"].decode("ascii")
        self._calls = 0
        if sys.platform != "win32":
            self._always["x-serena-parent"] = b"%d" % os.getppid()
        self._always["user-agent"] = b"serena-proxy"

    def next_call(self) -> str:
        """An id for one request, that a repetition of it carries again."""
        self._calls += 1
        return f"{self.session}-{self._calls}"

    def headers(self, target: Target, *, accept: bytes = ACCEPT) -> dict[str, bytes]:
        """Raises Unusable: the token can't be used."""
        headers = {"host": target.authority.encode("idna" if not target.authority.isascii() else "ascii")}
        headers |= self._always
        token = self._link.token()
        if token is not None:
            headers["authorization"] = b"Bearer " + token.encode("ascii")
        headers["accept"] = accept
        return headers


def modern_headers(message: Message, version: str) -> dict[str, bytes]:
    """What the modern era repeats of a message in headers."""
    headers = {
        "content-type": b"application/json",
        "mcp-protocol-version": header_value(version),
        "mcp-method": header_value(message.method or ""),
    }
    if message.name is not None:
        headers["mcp-name"] = header_value(message.name)
    return headers


def _value(text: str | None) -> bytes:
    """As UTF-8, or the bytes that a folder really has; empty for what no header can carry."""
    data = os.fsencode(text) if text else b""
    return data if data == data.strip() and not any(byte < 0x20 or byte == 0x7F for byte in data) else b""
