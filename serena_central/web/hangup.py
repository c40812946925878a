"""Ends the work of a request whose caller has hung up: Starlette itself lets it run on."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def until_hung_up(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` returns; it is cancelled when the caller closes the connection. The body must have been read.

    Raises:
        ClientDisconnect: the caller has gone.
    """
    outcome: list[T] = []
    failure: list[Exception] = []

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            outcome.append(await work())
        except Exception as error:  # noqa: BLE001 (raised again below: a task group would wrap it)
            failure.append(error)
        tasks.cancel_scope.cancel()
    if failure:
        raise failure[0]
    if not outcome:
        raise ClientDisconnect
    return outcome[0]
