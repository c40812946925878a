"""Ends the work of a request whose caller has hung up: Starlette itself lets it run on."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request

from serena_central.core.disconnects import on_disconnect

T = TypeVar("T")

MOST_WAIT_S = 60
"""Of one request; whoever waits longer asks again."""


async def until_hung_up(request: Request, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` returns; it is cancelled when the caller closes the connection. The body must have been read.

    Raises:
        ClientDisconnect: the caller has gone.
    """
    outcome: list[T] = []
    failure: list[Exception] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(on_disconnect, request.receive, tasks.cancel_scope.cancel)
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


async def long_polled(
    request: Request, closing: anyio.Event, find: Callable[[], Awaitable[T]], wait: Callable[[int], Awaitable[T]]
) -> T:
    """What `find` says; with `wait_s` in the query, what `wait` says after at most so many seconds. Those who wait hold
    up no stop of the server: at `closing` they get what there is.

    Raises:
        ClientDisconnect: the caller has gone.
    """
    seconds = min(int(request.query_params.get("wait_s", 0)), MOST_WAIT_S)
    if not seconds:
        return await find()

    async def waited() -> T:
        async with anyio.create_task_group() as tasks:

            async def until_closing() -> None:
                await closing.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_closing)
            found = await wait(seconds)
            tasks.cancel_scope.cancel()
            return found
        return await find()

    return await until_hung_up(request, waited)
