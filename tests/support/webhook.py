"""An HTTP server on loopback that keeps the alerts it gets."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Webhook:
    """What came, in the order in which it came."""

    def __init__(self, url: str, got: list[dict[str, Any]]) -> None:
        self.url = url
        self.got = got


@contextmanager
def listening() -> Generator[Webhook]:
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Webhook(f"http://127.0.0.1:{server.server_port}/hook", got)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
