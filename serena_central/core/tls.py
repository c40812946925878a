"""What HTTP clients of the server verify others by."""

import ssl
from functools import cache

import httpx


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The usual authorities', or those of SSL_CERT_FILE or SSL_CERT_DIR. Made once: a client that makes its own holds
    the event loop for 20 ms."""
    return httpx.create_ssl_context()
