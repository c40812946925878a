"""Checks the port that the server listens on, and names the program that occupies it."""

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress

from serena_central.config.settings import ServerSettings
from serena_central.core.errors import SerenaCentralError

BACKLOG = 2048
"""Connections that may wait to be accepted; clients reconnect all at once after a restart."""


class PortTaken(SerenaCentralError):
    """Another program listens on the port."""


@contextmanager
def listening(settings: ServerSettings) -> Generator[socket.socket]:
    """A bound socket.

    Raises:
        PortTaken
    """
    host, port = settings.central_server_host, settings.central_server_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host.strip("[]"), port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PortTaken(f"Can't listen on {host}:{port}: {error.strerror}.") from error
            raise PortTaken(
                f"Port {port} is in use{_by_whom(port)}. Choose another with --port (0 takes a free one) "
                "or set central_server_port."
            ) from error
        listener.listen(BACKLOG)
        listener.setblocking(False)
        yield listener


def _by_whom(port: int) -> str:
    """` by NAME (pid N)`, if the system tells."""
    import psutil  # costs 30 ms and is needed for this message alone

    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            here = connection.laddr
            if connection.status == psutil.CONN_LISTEN and here and here.port == port and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return ""
