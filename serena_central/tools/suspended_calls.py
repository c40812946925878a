"""Calls of upstreams that wait for an answer of the client, for clients of the modern era.

Such a client gets an upstream's question as the result of its call, and sends the call again with the answer. Meanwhile
the call to the upstream goes on here, in a task of its own, and waits.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.abc

from serena_central.core.client_channel import ClientChannel, ClientRequest
from serena_central.core.encoding import canonical_json
from serena_central.core.errors import ClientInputRequired, SerenaCentralError, UpstreamQuestionRefused
from serena_central.core.tracing import new_call_id

logger = logging.getLogger(__name__)

WAITS_S = 600.0
"""For the client to send the call again; then the upstream's call is cancelled."""

MOST_WAITING = 100

Work = Callable[[Callable[[ClientRequest], Awaitable[dict[str, Any]]]], Awaitable[dict[str, Any]]]
"""Makes the call; gets what it has to ask by."""


class _Suspended:
    """One call: at any moment it runs, has a question, or is over."""

    def __init__(self, key: object) -> None:
        self.key = key
        self.scope = anyio.CancelScope()
        self._id = new_call_id()
        self._asked = 0
        self.question: ClientRequest | None = None
        self._answer: dict[str, Any] | None = None
        self._answered = anyio.Event()
        self._turned = anyio.Event()
        self.result: dict[str, Any] | None = None
        self.error: BaseException | None = None

    @property
    def name(self) -> str:
        """Of its present question."""
        return f"{self._id}-{self._asked}"

    async def ask(self, request: ClientRequest) -> dict[str, Any]:
        """For the upstream's side. Waits until the client has answered.

        Raises:
            UpstreamQuestionRefused
        """
        if self.question is not None:
            raise UpstreamQuestionRefused(request.method, "another question is open")
        self._asked += 1
        self.question, self._answered = request, anyio.Event()
        self._turned.set()
        with anyio.move_on_after(WAITS_S):
            await self._answered.wait()
        if self._answer is None:
            raise UpstreamQuestionRefused(request.method, f"the client did not answer within {WAITS_S:.0f} s")
        answer, self._answer = self._answer, None
        return answer

    def answer(self, given: dict[str, Any]) -> None:
        self.question, self._answer, self._turned = None, given, anyio.Event()
        self._answered.set()

    def end(self, result: dict[str, Any] | None, error: BaseException | None) -> None:
        self.result, self.error = result, error
        self._turned.set()

    async def turned(self) -> None:
        """Waits until it has a question or is over."""
        await self._turned.wait()


class SuspendedCalls:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: list[_Suspended] = []
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Holds the calls until it is cancelled."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            await anyio.sleep_forever()

    async def call(
        self, channel: ClientChannel, session: str, tool: str, arguments: Mapping[str, Any], work: Work
    ) -> dict[str, Any]:
        """The result of a call, made now or continued with the answers that it was sent again with.

        Raises:
            ClientInputRequired: it has a question, and what `work` raises.
        """
        key = session, tool, canonical_json(arguments)
        call = await self._continued(channel, key) or self._begun(key, work)
        try:
            await call.turned()
        except BaseException:
            self._forget(call)
            call.scope.cancel()
            raise
        if call.question is not None:
            try:
                await channel.ask({call.name: call.question})
            except ClientInputRequired:
                raise  # it stays, and waits
            except BaseException:
                self._forget(call)
                call.scope.cancel()
                raise
        self._forget(call)
        if call.error is not None:
            raise call.error
        assert call.result is not None
        return call.result

    async def _continued(self, channel: ClientChannel, key: object) -> _Suspended | None:
        """The call that a client has sent again, with its answer."""
        for call in [one for one in self._waiting if one.key == key and one.question is not None]:
            assert call.question is not None
            try:
                answers = await channel.ask({call.name: call.question})
            except ClientInputRequired:
                continue  # another call with the same arguments
            call.answer(answers[call.name])
            return call
        return None

    def _begun(self, key: object, work: Work) -> _Suspended:
        assert self._tasks is not None
        while len(self._waiting) >= MOST_WAITING:
            self._waiting.pop(0).scope.cancel()
        call = _Suspended(key)
        self._waiting.append(call)
        self._tasks.start_soon(self._make, call, work)
        return call

    async def _make(self, call: _Suspended, work: Work) -> None:
        with call.scope:
            try:
                call.end(await work(call.ask), None)
            except SerenaCentralError as error:
                call.end(None, error)
            except Exception as error:  # raised to who waits for it; all other calls go on
                logger.exception("a call that may ask back failed")
                call.end(None, error)
            return
        call.end(None, UpstreamQuestionRefused("the call", "it was cancelled"))

    def _forget(self, call: _Suspended) -> None:
        if call in self._waiting:
            self._waiting.remove(call)
