"""Relays between stdio and a TCP socket, for language servers that already listen on TCP.

Run under the supervisor in place of the server (`python -I -S relay.py HOST PORT`), so that all who start, watch
and stop a process need not know of sockets. Standard library alone. Ends when either side does.
"""

import contextlib
import os
import socket
import sys
import threading

CHUNK_BYTES = 65_536

CONNECT_S = 5.0


def main() -> None:
    host, port = sys.argv[1], int(sys.argv[2])
    try:
        server = socket.create_connection((host, port), timeout=CONNECT_S)
    except OSError as error:
        sys.exit(f"nothing listens at {host}:{port}: {error}")
    server.settimeout(None)
    threading.Thread(target=_to_server, args=(server,), daemon=True).start()
    with contextlib.suppress(OSError):
        while chunk := server.recv(CHUNK_BYTES):
            while chunk:
                chunk = chunk[os.write(1, chunk) :]


def _to_server(server: socket.socket) -> None:
    """Ends the whole relay with stdin: the client is gone, and the editor that listens must not be told to go."""
    with contextlib.suppress(OSError):
        while chunk := os.read(0, CHUNK_BYTES):
            server.sendall(chunk)
    os._exit(0)


if __name__ == "__main__":
    main()
