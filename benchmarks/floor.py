"""The floor: a bare Starlette endpoint behind the web server settings of the product. It reads a request, and answers
with a fixed small body. Prints its port; ends with its standard input."""

import os
import socket
import sys
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}],"isError":false}}'


async def answer(request: Request) -> Response:
    await request.body()
    return Response(ANSWER, media_type="application/json")


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        threading.Thread(target=_end_with_input, daemon=True).start()
        app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
        settings = {"loop": "uvloop", "http": "httptools", "ws": "none", "log_config": None}
        config = uvicorn.Config(app, lifespan="off", access_log=False, server_header=False, **settings)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
