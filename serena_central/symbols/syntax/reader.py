"""SyntaxReader: symbols of a file by syntax, from one guarded worker process for all projects.

The worker starts when first asked, is killed when it takes too long over a file, and ends when nobody has asked for a
while. It knows texts, neither files nor projects.
"""

import logging
import math
import sys
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from serena_central.core.errors import LanguageServerError
from serena_central.lsp.locate import Launch
from serena_central.lsp.process import GuardedProcess, guarded
from serena_central.symbols.source import Outline
from serena_central.symbols.syntax.messages import Answer, Claimed, Declared, Edit, Occurrence, Request, framed

logger = logging.getLogger(__name__)

NAME = "tree-sitter"

MAX_BYTES = 5_000_000
"""The longest text that is parsed: half a second's work. Longer ones are data."""

MAX_ANSWER_BYTES = 64 << 20

ANSWER_S = 10.0
"""How long one text may take: ten times what the longest does. The worker's own start is part of it."""

IDLE_S = 120.0
"""After so long without a question the worker ends: it holds some 40 MB."""

_COMMAND = [sys.executable, "-P", "-m", "serena_central.symbols.syntax.worker"]


class _Order:
    """One question. `answer` is set before `done`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer = Answer(error="the server is stopping")
        self.wanted = True
        self.done = anyio.Event()


class SyntaxReader:
    """Belongs to the event loop's thread; any number of tasks may ask at once, and are served in turn."""

    def __init__(self) -> None:
        self._orders: MemoryObjectSendStream[_Order] | None = None  # while it runs

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until it is cancelled; no worker is left then."""
        self._orders, orders = anyio.create_memory_object_stream[_Order](math.inf)
        task_status.started()
        with self._orders, orders:
            try:
                while True:
                    order = await orders.receive()
                    try:
                        await self._work(order, orders)
                    except Exception as error:
                        logger.exception("the worker for syntax failed")
                        _settle(order, Answer(error=f"its process failed: {error}"))
            finally:
                self._orders = None
                while orders.statistics().current_buffer_used:
                    _settle(orders.receive_nowait(), Answer(error="the server is stopping"))

    async def outline(self, identifier: str, text: str) -> Outline:
        """What a text defines, its language named by LSP's identifier; lone surrogates are read as `?`.

        Raises LanguageServerError: too long, too hard to parse, or nothing is being served.
        """
        answer = await self._answer(Request(identifier, _source(text)))
        return Outline(answer.symbols, answer.cut)

    async def occurrences(self, identifier: str, text: str, name: str) -> list[Occurrence]:
        """Where a name stands in a text, and in what. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(text), name))).occurrences

    async def declared(self, identifier: str, text: str, claimed: Claimed) -> Declared:
        """What the syntax says of the range that a server claims for a symbol. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(text), claimed=claimed))).declared

    async def damage(self, identifier: str, text: str, edit: Edit) -> str:
        """What an edit breaks in a text, as a sentence; empty if nothing. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(text), edit=edit))).damage

    async def _answer(self, request: Request) -> Answer:
        if self._orders is None:
            raise LanguageServerError(NAME, "files are not read by syntax while the server starts or stops")
        order = _Order(request)
        self._orders.send_nowait(order)
        try:
            await order.done.wait()
        finally:
            order.wanted = False
        if order.answer.error:
            raise LanguageServerError(NAME, f"it can't be read by syntax: {order.answer.error}")
        return order.answer

    async def _work(self, order: _Order, orders: MemoryObjectReceiveStream[_Order]) -> None:
        """Runs one worker from its first order until it fails or has nothing to do."""
        try:
            async with guarded(Launch(_COMMAND), Path(__file__).parent) as process:
                answers = BufferedByteReceiveStream(process.stdout)
                while True:
                    failure = await _ask(process, answers, order) if order.wanted else ""
                    if failure:
                        logger.warning("reading %s by syntax: %s", order.request.identifier, failure)
                        process.cut()
                        _settle(order, Answer(error=failure))
                        return
                    with anyio.move_on_after(IDLE_S) as idle:
                        order = await orders.receive()
                    if idle.cancelled_caught:
                        return
        finally:
            _settle(order, order.answer)


async def _ask(process: GuardedProcess, answers: BufferedByteReceiveStream, order: _Order) -> str:
    """Settles an order; says why where the worker can't go on."""
    try:
        with anyio.fail_after(ANSWER_S):
            await process.stdin.send(framed(order.request))
            length = int.from_bytes(await answers.receive_exactly(4))
            if length > MAX_ANSWER_BYTES:
                return f"{length} bytes of symbols are no answer"
            answer = msgspec.msgpack.decode(await answers.receive_exactly(length), type=Answer)
    except TimeoutError:
        return f"parsing it takes longer than {ANSWER_S:g} s"
    except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return "the parser broke"
    except msgspec.DecodeError as error:
        return f"the parser's answer can't be read: {error}"
    _settle(order, answer)
    return ""


def _source(text: str) -> bytes:
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        raise LanguageServerError(NAME, f"by syntax, {MAX_BYTES / 1e6:g} MB can be read; it is longer")
    return source


def _settle(order: _Order, answer: Answer) -> None:
    order.answer = answer
    order.done.set()
