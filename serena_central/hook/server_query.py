"""Asks the running server whether it can answer for a place, within a quarter of a second, or not at all.

Two plain HTTP exchanges on one socket under one deadline: first the server proves itself, then it gets our token.
Whatever goes wrong means "no": the search then runs.
"""

import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode, urlsplit

from serena_central.hook.log import log
from serena_central.hook.suggestions import SearchPlace
from serena_central.standalone.home import Home, Unusable, read_token
from serena_central.standalone.proof import Unproven, authority_of, prove

WAIT_S = 0.25
"""A server that is up answers in two milliseconds, on a busy machine in a hundred. One that is down refuses the
connection at once."""

LONGEST_WAIT_S = 5.0
WAIT_VARIABLE = "SERENA_HOOK_WAIT_MS"
MOST_BYTES = 64 * 1024


class Answer(NamedTuple):
    """A status and what came with it."""

    status: int
    value: dict[str, Any]


def wait_s() -> float:
    """How long to wait in all; slow machines may allow more by `SERENA_HOOK_WAIT_MS`."""
    said = os.environ.get(WAIT_VARIABLE, "")
    return min(int(said) / 1000, LONGEST_WAIT_S) if said.isdecimal() and len(said) < 9 else WAIT_S


MOST_PATHS = 20
"""A shell fills `*` with many names; a search through more of them is left alone."""


def place_of(home: Home, paths: Sequence[str], names: Sequence[str]) -> SearchPlace | None:
    """Where absolute paths are in a known project or super-repo whose symbols can be read there, of several the place
    that holds them; None for anything else.

    `names` are globs that limit the files.
    """
    if len(paths) > MOST_PATHS:
        return None
    query = urlencode([*(("path", path) for path in paths), *(("name", name) for name in names)])
    answer = ask(home, "GET", f"/api/v1/coverage?{query}", deadline=time.monotonic() + wait_s())
    if answer is None or answer.status != 200 or answer.value.get("covered") is not True:
        return None
    root, relative = answer.value.get("root"), answer.value.get("relative_path")
    unread = answer.value.get("unread", [])
    if not (isinstance(root, str) and isinstance(relative, str) and isinstance(unread, list)):
        return None
    return SearchPlace(root, relative, tuple(map(str, cast("list[Any]", unread))))


def ask(home: Home, method: str, target: str, *, deadline: float, body: Any = None) -> Answer | None:
    """One exchange with the server of this home; None where it gives no answer in time. `deadline` is monotonic."""
    said = home.announcement()
    url = urlsplit(said.url) if said else None
    try:
        token = read_token(home.token_file)
        if url is None or url.scheme != "http" or not url.hostname or not token:
            return None
        with socket.create_connection((url.hostname, url.port or 80), timeout=_left(deadline)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            prove(connection, token, authority_of(url.hostname, url.port or 80), deadline=deadline)
            connection.sendall(_request(method, target, url.netloc, token, body))
            return _read(connection, deadline)
    except TimeoutError:
        log(home, f"the server did not answer in time: {method} {target[:200]}")
        return None
    except (OSError, ValueError, Unproven, Unusable):
        return None


def _request(method: str, target: str, host: str, token: str, body: Any) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"User-Agent: serena-hook\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + content


def _read(connection: socket.socket, deadline: float) -> Answer | None:
    """The server closes behind its answer.

    Raises:
        OSError, ValueError
    """
    received = bytearray()
    while True:
        connection.settimeout(_left(deadline))
        piece = connection.recv(MOST_BYTES)
        if not piece:
            break
        received += piece
        if len(received) > MOST_BYTES:
            return None
    head, _, content = bytes(received).partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
    value: Any = json.loads(content) if content else {}
    return Answer(status, cast("dict[str, Any]", value)) if isinstance(value, dict) else None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
