"""A browser without a screen, signed in to the dashboard of a server."""

import http.client
from contextlib import suppress
from urllib.parse import urlencode

from benchmarks.bench import Server
from benchmarks.client import Connection


def cookie_of(server: Server) -> str:
    """What a browser that came in by a one-time link sends from then on."""
    connection = Connection(server.port, server.token)
    _, link = connection.exchange(connection.request("POST", "/api/v1/dashboard/link"))
    connection.close()
    browser = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    browser.request("GET", link.partition(b'"path":"')[2].partition(b'"')[0].decode())
    return (browser.getresponse().getheader("set-cookie") or "").partition(";")[0]


class Browser:
    """Keeps one connection."""

    def __init__(self, server: Server) -> None:
        self._cookie = cookie_of(server)
        self._origin = f"http://127.0.0.1:{server.port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._csrf = self.fetch("/dashboard").partition('name="csrf" value="')[2].partition('"')[0]

    def fetch(self, path: str) -> str:
        """A page."""
        self._connection.request("GET", path, headers={"cookie": self._cookie})
        response = self._connection.getresponse()
        body = response.read().decode()
        assert response.status == 200, body
        return body

    def follow(self, path: str) -> None:
        """Reads a stream until it ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self._connection.port)
        connection.request("GET", path, headers={"cookie": self._cookie})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        with suppress(OSError, http.client.HTTPException):
            while response.read1():
                pass

    def act(self, path: str, **fields: str) -> None:
        """Presses a button: sends its form, as a page does."""
        headers = {
            "cookie": self._cookie,
            "origin": self._origin,
            "content-type": "application/x-www-form-urlencoded",
        }
        self._connection.request("POST", path, urlencode({"csrf": self._csrf, **fields}), headers)
        response = self._connection.getresponse()
        assert response.status == 303, response.read()
        response.read()
