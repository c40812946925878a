"""Notices that the client of an HTTP request has closed its connection."""

from collections.abc import Callable

from starlette.types import Receive


async def on_disconnect(receive: Receive, then: Callable[[], None]) -> None:
    """Waits for that, and calls `then`. The request's body must have been read, or be of no interest."""
    while (await receive())["type"] != "http.disconnect":
        pass
    then()
