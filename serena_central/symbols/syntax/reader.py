"""SyntaxReader: symbols of a file by syntax, from supervised worker processes for all projects.

The first worker starts on demand, further ones while many texts are queued. A worker is killed if it takes too long for
a text, and exits when it is idle for a while. This module knows texts, but neither files nor projects.
"""

import logging
import os
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream

from serena_central.core.decoding import msgpack_decoder
from serena_central.core.errors import LanguageServerError
from serena_central.core.tracing import phase
from serena_central.processes.child import GIVES_WAY, ChildProcess, Limits, supervised
from serena_central.symbols.indexing.symbol_source import Outline
from serena_central.symbols.syntax.messages import (
    Answer,
    Claimed,
    Declared,
    Occurrence,
    Packed,
    PythonStructure,
    Request,
    SyntaxEdit,
    framed,
    longest,
    without_repetition,
)

logger = logging.getLogger(__name__)

NAME = "tree-sitter"

MAX_ANSWER_BYTES = 64 << 20

ANSWER_S = 10.0
"""How long one text may take: ten times what the longest does. The worker's own start is part of it. The second half is
CPU time of the worker, since a machine that does much else may give it none."""

STALLED_S = 120.0
"""And how long it may take in all."""

CPU_CHECKS = 10
"""Of the worker's CPU time, while ANSWER_S passes."""

IDLE_S = 120.0
"""Idle time in seconds after which the last worker exits: it holds some 40 MB …"""

FURTHER_IDLE_S = 5.0
"""… and the other workers, in seconds."""

MOST_WORKERS = min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1, 8)
"""One for each core that this process may use."""

TEXTS_PER_WORKER = 48
"""So many have to wait before another worker is started, which takes a third of a second."""

BATCH_TEXTS = 32
BATCH_BYTES = 500_000
"""Sent at once: some 30 ms of work, which whoever asks next waits for."""

MEMORY_BYTES = 2 << 30
"""Address space of a worker: a syntax tree takes 60 times its text at the worst."""

_LIMITS = Limits(MEMORY_BYTES, GIVES_WAY, keeps_privileges=False)

_COMMAND = [sys.executable, "-P", "-m", "serena_central.symbols.syntax.worker"]


class _Order:
    """One question. `answer` is set before `done`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer = Answer(error="the server is stopping")
        self.wanted = True
        self.alone = False
        """A batch with it in it failed: which text was the cause is not known."""
        self.done = anyio.Event()


class SyntaxReader:
    """Belongs to the event loop's thread; any number of tasks may ask at once."""

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None  # while it runs
        self._urgent: deque[_Order] = deque()
        self._bulk: deque[_Order] = deque()
        """Of whole projects: served when nothing is urgent."""
        self._workers = 0
        self._idle: list[anyio.Event] = []

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until it is cancelled; no worker is left then."""
        try:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            for order in (*self._urgent, *self._bulk):
                _settle(order, order.answer)

    async def outline(self, identifier: str, text: str) -> Outline:
        """What a text defines, its language named by LSP's identifier; lone surrogates are read as `?`.

        Raises:
            LanguageServerError: too long, too hard to parse, or nothing is being served.
        """
        answer = await self._answer(Request(identifier, _source(identifier, text)))
        return Outline(answer.symbols, answer.cut)

    async def occurrences(self, identifier: str, text: str, name: str) -> list[Occurrence]:
        """Where a name stands in a text, and in what. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(identifier, text), name))).occurrences

    async def declared(self, identifier: str, text: str, claimed: Claimed) -> Declared:
        """What the syntax says of the range that a server claims for a symbol. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(identifier, text), claimed=claimed))).declared

    async def damage(self, identifier: str, text: str, edit: SyntaxEdit) -> str:
        """What an edit breaks in a text, as a sentence; empty if nothing. Raises as `outline` does."""
        return (await self._answer(Request(identifier, _source(identifier, text), edit=edit))).damage

    async def python(self, text: str) -> PythonStructure:
        """What a text of Python tries, imports and declares. Raises as `outline` does."""
        return (await self._answer(Request("python", _source("python", text), structure=True))).structure

    async def packed(self, texts: Sequence[tuple[str, bytes]]) -> list[Packed | LanguageServerError]:
        """What texts (valid UTF-8) define, as the index keeps it, each with LSP's identifier of its language; in their
        order.

        Raises:
            LanguageServerError: nothing is being served.
        """
        orders: list[_Order | LanguageServerError] = []
        for identifier, source in texts:
            try:
                check_length(identifier, len(source))
                orders.append(_Order(Request(identifier, source, packed=True)))
            except LanguageServerError as error:
                orders.append(error)
        await self._settled([order for order in orders if isinstance(order, _Order)], self._bulk)
        return [_result(order) if isinstance(order, _Order) else order for order in orders]

    async def _answer(self, request: Request) -> Answer:
        order = _Order(request)
        await self._settled([order], self._urgent)
        if order.answer.error:
            raise _refused(order)
        return order.answer

    async def _settled(self, orders: Sequence[_Order], queue: deque[_Order]) -> None:
        if self._tasks is None:
            raise LanguageServerError(NAME, "files are not read by syntax while the server starts or stops")
        queue.extend(orders)
        self._wake()
        try:
            with phase("syntax"):
                for order in orders:
                    await order.done.wait()
        finally:
            for order in orders:
                order.wanted = False

    def _wake(self) -> None:
        """Has somebody serve what waits."""
        waiting = len(self._urgent) + len(self._bulk)
        if self._idle and waiting:
            self._idle.pop().set()
        wanted = min(1 + waiting // TEXTS_PER_WORKER, MOST_WORKERS) if waiting else 0
        while self._tasks is not None and self._workers < wanted:
            self._workers += 1
            self._tasks.start_soon(self._serve)

    def _take(self) -> list[_Order]:
        """The next batch; empty if nothing waits."""
        batch: list[_Order] = []
        size = 0
        for queue in (self._urgent, self._bulk):
            while queue and len(batch) < BATCH_TEXTS and (not batch or not queue[0].alone):
                size += len(queue[0].request.source)
                if batch and size > BATCH_BYTES:
                    return batch
                order = queue.popleft()
                if order.wanted:
                    batch.append(order)
                if order.alone and batch:
                    return batch
        return batch

    async def _serve(self) -> None:
        """Runs one worker after the other, until none was needed for a while."""
        try:
            while batch := self._take() or await self._next():
                try:
                    await self._work(batch)
                except Exception as error:
                    logger.exception("the syntax worker failed")
                    for order in batch:
                        _settle(order, Answer(error=f"its process failed: {error}"))
        finally:
            self._workers -= 1

    async def _next(self) -> list[_Order]:
        """The next batch; empty if there was no request for a while."""
        idle = anyio.Event()
        self._idle.append(idle)
        try:
            is_last = len(self._idle) == self._workers
            with anyio.move_on_after(IDLE_S if is_last else min(IDLE_S, FURTHER_IDLE_S)):
                await idle.wait()
        finally:
            if idle in self._idle:
                self._idle.remove(idle)
        return self._take()

    async def _work(self, batch: list[_Order]) -> None:
        """Runs one worker from its first batch until it fails or has nothing to do."""
        try:
            async with supervised(_COMMAND, Path(__file__).parent, limits=_LIMITS) as process:
                answers = BufferedByteReceiveStream(process.stdout)
                while batch:
                    failure = await _ask(process, answers, batch)
                    if failure:
                        process.kill()
                        self._failed(batch, failure)
                        return
                    batch[:] = self._take() or await self._next()
        finally:
            for order in batch:
                _settle(order, order.answer)

    def _failed(self, batch: list[_Order], failure: str) -> None:
        """A worker failed: of several texts each is retried by itself."""
        if len(batch) == 1:
            logger.warning("reading %s by syntax: %s", batch[0].request.identifier, failure)
            _settle(batch[0], Answer(error=failure))
            return
        for order in batch:
            order.alone = True
        self._urgent.extendleft(reversed(batch))
        batch.clear()


async def _ask(process: ChildProcess, answers: BufferedByteReceiveStream, batch: Sequence[_Order]) -> str:
    """Answers a batch; returns the reason if the worker cannot continue."""
    try:
        with anyio.fail_after(STALLED_S):
            await process.stdin.send(framed(without_repetition([order.request for order in batch])))
            length = int.from_bytes(await _received(process, answers, 4))
            if length > MAX_ANSWER_BYTES:
                return f"{length} bytes is not a valid response size"
            found = _decoder.decode(await answers.receive_exactly(length))
    except TimeoutError:
        return f"parsing it takes longer than {ANSWER_S:g} s"
    except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return "the parser crashed"
    except msgspec.DecodeError as error:
        return f"the parser's answer can't be read: {error}"
    if len(found) != len(batch):
        return f"the parser gave {len(found)} answers to {len(batch)} questions"
    for order, answer in zip(batch, found, strict=True):
        _settle(order, answer)
    return ""


async def _received(process: ChildProcess, answers: BufferedByteReceiveStream, length: int) -> bytes:
    """The next bytes of a worker's answer.

    Raises:
        TimeoutError: it works for too long.
    """
    with anyio.move_on_after(ANSWER_S / 2):
        return await answers.receive_exactly(length)
    before = await _cpu_s(process)
    while await _cpu_s(process) - before < ANSWER_S / 2:
        with anyio.move_on_after(ANSWER_S / CPU_CHECKS):  # what has come stays in the buffer
            return await answers.receive_exactly(length)
    raise TimeoutError


async def _cpu_s(process: ChildProcess) -> float:
    return (await anyio.to_thread.run_sync(process.usage)).cpu_s


_decoder = msgpack_decoder(list[Answer])


def _result(order: _Order) -> Packed | LanguageServerError:
    return _refused(order) if order.answer.error else order.answer.packed


def _refused(order: _Order) -> LanguageServerError:
    return LanguageServerError(NAME, f"it can't be read by syntax: {order.answer.error}")


def encoded(text: str) -> bytes:
    """A text as the parser takes it: lone surrogates become `?`."""
    return text.encode("utf-8", "replace")


def check_length(identifier: str, length: int) -> None:
    """Raises LanguageServerError for a text of more bytes than are looked at in the language of an LSP identifier."""
    limit = longest(identifier)
    if length > limit:
        raise LanguageServerError(NAME, f"it is larger than {limit / 1e6:g} MB, the limit for reading by syntax")


def _source(identifier: str, text: str) -> bytes:
    source = encoded(text)
    check_length(identifier, len(source))
    return source


def _settle(order: _Order, answer: Answer) -> None:
    order.answer = answer
    order.done.set()
