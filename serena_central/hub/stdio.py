"""The stdio transport of an upstream: newline-delimited JSON-RPC with a program below our own supervisor.

What a program writes that is not a message (a banner, a log line, half a line of ten megabytes) is counted and logged,
and costs nothing else. If it was to be an answer, its call fails at once: nothing else would ever come. Its stderr is
read to the end, logged, and its last part kept.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from serena_central.core.errors import UpstreamUnavailable
from serena_central.hub.specs import UpstreamSpec
from serena_central.hub.wire_log import WireLog
from serena_central.hub.wire_messages import (
    MAX_MESSAGE_BYTES,
    MOST_PARTS,
    NO_PROTOCOL,
    TOO_MANY_PARTS,
    batch_of,
    ends_of,
    failed_answer,
    has_too_many_parts,
    message_of,
    too_long,
)
from serena_central.processes.child import STDERR_TAIL_BYTES, ChildProcess, Limits, supervised
from serena_central.processes.ladder import POLITE, Ladder, stop
from serena_central.processes.output import Lines, Nothing, Tail, drain

STOPPING = Ladder(closed_s=5.0, term_s=5.0)
"""For a server that is stopped while this one runs on. At the end of this one it is `POLITE`."""

STDERR_LINES_PER_S = 200
"""Logged: a flood must not rotate all else out of the log, nor hold up the server."""

MOST_UNREAD = 1000
"""Messages that wait until the program reads those before; what it asks beyond that has no answer."""

LEFT_S = 0.5
"""How long what an ended program has written is read."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]


class Outgoing:
    """Where messages to the program go in, as the SDK's dispatcher writes them. Each becomes JSON in the task that
    sends it: what JSON can't hold fails its sender, and not the task that writes for all."""

    def __init__(self, texts: MemoryObjectSendStream[str], log: WireLog) -> None:
        self._texts = texts
        self._log = log

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def send(self, item: SessionMessage) -> None:
        """Raises ValueError: it can't be sent."""
        message = item.message
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        if is_answer and self._texts.statistics().tasks_waiting_send >= MOST_UNREAD:
            self._log.note("the server does not read answers as fast as it asks for them: one was dropped")
            return
        await self._texts.send(message.model_dump_json(by_alias=True, exclude_unset=True))

    async def aclose(self) -> None:
        await self._texts.aclose()


class StdioWire:
    """The streams of one running program."""

    def __init__(self, incoming: Incoming, outgoing: Outgoing, process: ChildProcess) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.process = process
        self.garbage = 0
        """Lines that were not messages."""
        self.orderly = False
        """Set before the block is left to give the program its full time to end."""


class _Stderr(Tail):
    """Keeps the last part, and logs the lines; of a flood some of each second."""

    def __init__(self, log: WireLog) -> None:
        super().__init__(STDERR_TAIL_BYTES)
        self._log = log
        self._lines = Lines(self._line)
        self._second = 0
        self._logged = 0
        self._left_out = 0

    def take(self, chunk: bytes) -> None:
        super().take(chunk)
        self._lines.take(chunk)

    def finish(self) -> None:
        """What stands after the last line, and what was left out."""
        self._lines.finish()
        self._begin_second(0)

    def _line(self, line: bytes) -> None:
        second = int(time.monotonic())
        if second != self._second:
            self._begin_second(second)
        if self._logged < STDERR_LINES_PER_S:
            self._logged += 1
            self._log.stderr(line.decode("utf-8", "replace"))
        else:
            self._left_out += 1

    def _begin_second(self, second: int) -> None:
        if self._left_out:
            self._log.note(f"{self._left_out} further lines of stderr are not shown")
        self._second, self._logged, self._left_out = second, 0, 0


@asynccontextmanager
async def stdio_wire(
    spec: UpstreamSpec, environment: Mapping[str, str], temporary: Path, log: WireLog, *, memory_bytes: int = 0
) -> AsyncGenerator[StdioWire]:
    """Runs the program while the block is open.

    Raises:
        UpstreamUnavailable: it can't be started.
    """
    if not spec.folder.is_dir():
        raise UpstreamUnavailable(spec.name, f"its folder {str(spec.folder)!r} does not exist")
    stderr = _Stderr(log)
    limits = Limits(memory_bytes=memory_bytes, keeps_privileges=False)
    try:
        async with supervised(
            spec.command,
            spec.folder,
            environment=environment,
            ladder=POLITE,
            temporary=temporary,
            limits=limits,
            stderr=stderr,
        ) as process:
            received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, to_send = anyio.create_memory_object_stream[str](0)
            wire = StdioWire(incoming, Outgoing(outgoing, log), process)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, wire, received, log)
                tasks.start_soon(_write, process.stdin, to_send, received, log)
                tasks.start_soon(_watch, process, received, log)
                try:
                    yield wire
                finally:
                    with anyio.CancelScope(shield=True):
                        for stream in (outgoing, to_send, incoming, received):
                            stream.close()
                        await stop(process, STOPPING if wire.orderly else POLITE)
                    tasks.cancel_scope.cancel()
    except OSError as error:
        raise UpstreamUnavailable(spec.name, f"it can't be started: {error.strerror or error}") from error
    finally:
        stderr.finish()


async def _read(wire: StdioWire, received: MemoryObjectSendStream[SessionMessage | Exception], log: WireLog) -> None:
    """Messages from the program, until it closes its stdout."""
    try:
        async with received:
            async for line in _lines(wire.process.stdout):
                for message in _messages(line, wire, log):
                    await received.send(SessionMessage(message))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        await drain(wire.process.stdout, Nothing())  # a program that can't write can't end either


def _messages(line: "bytes | _TooLong", wire: StdioWire, log: WireLog) -> list[JSONRPCMessage]:
    """The message of a line, or those of a batch; the failure of the request that it was to answer, if it is known."""
    if isinstance(line, _TooLong):
        log.note(f"a line of {line.size} bytes was dropped")
        failed = failed_answer(line.ends, too_long(line.size, MAX_MESSAGE_BYTES))
    elif has_too_many_parts(line):
        log.note(f"a line of more than {MOST_PARTS:,} objects and lists was dropped")
        failed = failed_answer(line, TOO_MANY_PARTS)
    else:
        message = message_of(line)
        if found := [message] if message is not None else batch_of(line):
            log.received(line.decode("utf-8", "replace"))
            return found
        wire.garbage += 1
        log.note(f"not a message: {line[:200].decode('utf-8', 'replace')}")
        failed = failed_answer(line, NO_PROTOCOL)
    return [failed] if failed is not None else []


class _TooLong(NamedTuple):
    """A line that is dropped. `ends`: its first and its last bytes."""

    size: int
    ends: bytes


async def _lines(stdout: ByteReceiveStream) -> AsyncGenerator[bytes | _TooLong]:
    """Lines that are not empty."""
    rest, dropped = bytearray(), 0
    async for chunk in stdout:
        *ends, tail = chunk.split(b"\n")
        for end in ends:
            if dropped:
                yield _TooLong(dropped + len(end), bytes(ends_of(rest + end)))
            elif line := bytes(rest + end).strip():
                yield line
            rest, dropped = bytearray(), 0
        if dropped or len(rest) + len(tail) > MAX_MESSAGE_BYTES:
            dropped += len(tail) if dropped else len(rest) + len(tail)
            rest = ends_of(rest + tail)
        else:
            rest += tail


async def _write(
    stdin: ByteSendStream,
    to_send: MemoryObjectReceiveStream[str],
    received: MemoryObjectSendStream[SessionMessage | Exception],
    log: WireLog,
) -> None:
    """Messages to the program. One that does not read any more is noticed by the deadlines of what waits."""
    try:
        async with to_send:
            async for text in to_send:
                log.sent(text)
                await stdin.send(text.encode() + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        received.close()  # whoever waits for an answer hears that there will be none


async def _watch(
    process: ChildProcess, received: MemoryObjectSendStream[SessionMessage | Exception], log: WireLog
) -> None:
    """Ends the connection when the program has ended, whoever still holds its stdout."""
    code = await process.wait()
    log.note(f"ended with {code}")
    await anyio.sleep(LEFT_S)
    received.close()
