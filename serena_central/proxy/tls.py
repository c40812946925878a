"""TLS for a server on another machine. Imported only then: `ssl` takes longer to import than all the rest.

Certificates and names are checked by the system's rules; OpenSSL's SSL_CERT_FILE names others to trust.
"""

import socket
import ssl
import time

from serena_central.proxy.event_loop import READ, WRITE, Loop
from serena_central.proxy.http1 import TlsWants
from serena_central.standalone.home import Unusable


class TlsSocket:
    """A TLS connection with the interface of a non-blocking socket; raises TlsWants where that would block."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def recv(self, size: int) -> bytes:
        try:
            return self._socket.recv(size)
        except ssl.SSLWantReadError:
            raise TlsWants(READ) from None
        except ssl.SSLWantWriteError:
            raise TlsWants(WRITE) from None

    def send(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except ssl.SSLWantReadError:
            raise TlsWants(READ) from None
        except ssl.SSLWantWriteError:
            raise TlsWants(WRITE) from None


async def secure(loop: Loop, sock: socket.socket, host: str, timeout_s: float) -> TlsSocket:
    """Shakes hands over a connected socket, which it takes over.

    Raises:
        Unusable: the other end is not who it should be, or speaks no TLS: waiting does not help.
        OSError: the connection failed.
    """
    deadline = time.monotonic() + timeout_s
    wrapped = ssl.create_default_context().wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    try:
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                await loop.ready(wrapped.fileno(), READ, deadline)
            except ssl.SSLWantWriteError:
                await loop.ready(wrapped.fileno(), WRITE, deadline)
            except ssl.SSLCertVerificationError as error:
                raise Unusable(
                    f"The certificate of {host} is not trusted: {error.verify_message}. If it is your own, set the "
                    "environment variable SSL_CERT_FILE to the file of the certificate or its CA."
                ) from None
            except ssl.SSLEOFError:
                raise
            except ssl.SSLError as error:
                text = f"TLS with {host} failed ({error.reason}). Check whether its URL should start with http://."
                raise Unusable(text) from None
            else:
                return TlsSocket(wrapped)
    except BaseException:
        wrapped.close()
        raise
