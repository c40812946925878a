"""Security headers on every response below a path: pages, errors, refusals, files.

The access check adds them in front of all else, so that no answer can lack them.
"""

from starlette.types import Message, Send

HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",  # `no-referrer` would take the Origin from forms as well
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""An answer's own header counts instead."""


def with_safe_headers(send: Send) -> Send:
    """Sends the answer of a page with these headers."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in own]
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return sending
