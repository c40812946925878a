"""The proxy: forwards the client's lines, and makes sure that every request gets exactly one answer.

Owns the table of pending requests and the bounds. `initialize` and `initialized` go in order; requests go concurrently;
notifications and answers to the server go one after the other.
"""

import time
from collections import deque

from serena_central.proxy.caller import Caller
from serena_central.proxy.delivery import Call, Delivery, Undelivered
from serena_central.proxy.event_loop import Cancelled, Event, Loop, Task
from serena_central.proxy.handshake import Handshake
from serena_central.proxy.http1 import Broken, request
from serena_central.proxy.link import Link, Unreachable
from serena_central.proxy.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Invalid,
    Message,
    error_answer,
    key_of,
    parse,
    read_only_tools,
)
from serena_central.proxy.pipes import LINE_BYTES, Input, Output, TooLong
from serena_central.proxy.streams import Streams
from serena_central.standalone.home import Unusable

AT_ONCE = 64
"""Requests that are at the server at a time, each on a connection of its own."""

PENDING = 1024
PENDING_BYTES = LINE_BYTES
"""Limits of pending requests, in number and bytes; beyond them no further line is read."""

NOTES = 256
"""Notifications and answers that wait to be sent; then no further line is read."""

CANCEL_S = 2.0
"""What a server has not ended so long after it was told to, ends by the end of its connection."""

LAST_ANSWERS_S = 1.0
"""How long running requests may take after the end of stdin, in seconds."""

GOODBYE_S = 0.4


class StdioProxy:
    """One client's stdio on one side, the server on the other. Runs once."""

    def __init__(self, loop: Loop, link: Link, caller: Caller, source: Input, output: Output) -> None:
        self._loop = loop
        self._link = link
        self._caller = caller
        self._input = source
        self._output = output
        self._handshake = Handshake(loop, link, caller)
        self._streams = Streams(loop, link, caller, self._handshake, output.write)
        self._delivery = Delivery(loop, link, caller, self._handshake, self, output.write)
        self._pending: dict[tuple[bool, object], tuple[Call, Task | None]] = {}
        self._pending_bytes = 0
        self._at_server = 0
        self._room = loop.event()
        """Set whenever a request has been answered."""
        self._notes: deque[Call] = deque()
        self._notes_changed = loop.event()
        self._modern_version: str | None = None
        self._read_only: set[str] = set()
        self._known = False
        """The server has answered, so that there is a session to close."""
        self._ending = loop.event()
        self.ended_because = ""

    def end(self, because: str) -> None:
        """Begins the end; `run` returns soon after."""
        if not self._ending.is_set:
            self.ended_because = because
            self._ending.set()

    def repeats_safely(self, message: Message) -> bool:
        """`delivery.Knowledge`."""
        if message.method != "tools/call":
            return message.repeats_safely or not message.is_request
        name = message.params.get("name")
        return isinstance(name, str) and (name in self._read_only or name in self._streams.calls_once)

    async def run(self) -> None:
        """Runs until stdin ends, stdout is closed, or `end`; then closes the session."""
        reading = self._loop.spawn(self._read())
        sending = self._loop.spawn(self._send_notes())
        leaving = self._loop.spawn(self._leave_with(self._output.closed))
        await self._ending.wait()
        if self.ended_because == STDIN_ENDED:
            # A script that closes stdin behind its last question still gets the answer.
            await self._all_answered(LAST_ANSWERS_S)
        for task in (reading, sending, leaving):
            task.cancel()
        for call, task in list(self._pending.values()):
            if task is not None and not call.answered:
                task.cancel()
        goodbye = self._loop.spawn(self._say_goodbye())
        await self._all_answered(GOODBYE_S)
        try:
            await goodbye.ended.wait(time.monotonic() + GOODBYE_S)
        except TimeoutError:
            goodbye.cancel()

    async def _leave_with(self, closed: Event) -> None:
        await closed.wait()
        self.end("its stdout is not read")

    # --- what the client sends -------------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for line in self._input.lines():
            if isinstance(line, TooLong):
                text = f"The line is longer than the limit of {LINE_BYTES} bytes."
                await self._output.write(error_answer(None, INVALID_REQUEST, text))
                continue
            try:
                message = parse(line)
            except Invalid as error:
                await self._output.write(error.answer)
                continue
            await self._take(message)
        self.end(STDIN_ENDED)

    async def _take(self, message: Message) -> None:
        if message.is_request:
            await self._take_request(message)
        elif message.method == "notifications/initialized":
            self._loop.spawn(self._begin(Call(message, self._version_of(message), "")))
        elif message.method == "notifications/cancelled" and await self._cancel(message):
            return
        else:
            while len(self._notes) >= NOTES:
                self._notes_changed.clear()
                await self._notes_changed.wait()
            self._notes.append(Call(message, self._version_of(message), ""))
            self._notes_changed.set()

    async def _take_request(self, message: Message) -> None:
        key = key_of(message.id)
        if key in self._pending:
            text = "A request with this id is still in progress."
            await self._output.write(error_answer(message.id, INVALID_REQUEST, text))
            return
        while len(self._pending) >= PENDING or (
            self._pending and self._pending_bytes + len(message.raw) > PENDING_BYTES
        ):
            self._room.clear()
            await self._room.wait()
        call = Call(message, self._version_of(message), self._caller.next_call())
        self._pending[key] = (call, None)
        self._pending_bytes += len(message.raw)
        task = self._loop.spawn(self._serve(call, key))
        if not task.done:
            self._pending[key] = (call, task)

    def _version_of(self, message: Message) -> str | None:
        """The version of a message of the modern era: its own, or for what carries none, that of the last request."""
        version = message.modern_version
        if version is not None:
            self._modern_version = version
        elif not message.is_request and self._handshake.session is None:
            return self._modern_version
        return version

    async def _begin(self, call: Call) -> None:
        """`initialized`: what comes after it waits until the server has it."""
        await self._handshake.enter()
        call.has_gate = True
        try:
            await self._deliver_note(call)
        finally:
            self._handshake.initialized = call.message.raw
            self._handshake.gate.set()
        if self._handshake.session is not None:
            self._streams.listen()

    async def _cancel(self, message: Message) -> bool:
        """Whether the cancellation is complete; else the server must be notified."""
        found = self._pending.get(key_of(message.params.get("requestId")))
        if found is None:
            return False
        call, task = found
        call.cancelled = True
        if task is None or call.answered:
            return True
        if call.version is not None or not call.sent:
            task.cancel()
            return True
        self._loop.spawn(self._cut_off(task))
        return False

    async def _cut_off(self, task: Task) -> None:
        try:
            await task.ended.wait(time.monotonic() + CANCEL_S)
        except TimeoutError:
            task.cancel()

    # --- requests --------------------------------------------------------------------------------------------------

    async def _serve(self, call: Call, key: tuple[bool, object]) -> None:
        try:
            await self._enter(call)
            try:
                await self._delivery.deliver(call, lambda answer: self._answer(call, answer))
            finally:
                self._leave(call)
        except Undelivered as error:
            await self._fail(call, str(error))
        except Cancelled:
            await self._fail(call, "serena-proxy is shutting down.")
        finally:
            del self._pending[key]
            self._pending_bytes -= len(call.message.raw)
            self._room.set()

    async def _enter(self, call: Call) -> None:
        if call.opens:
            self._handshake.opening = call.message.raw
            await self._handshake.enter()
            call.has_gate = True
        elif call.version is None:
            await self._handshake.over()
        while self._at_server >= AT_ONCE and not call.opens:
            self._room.clear()
            await self._room.wait()
        self._at_server += 1

    def _leave(self, call: Call) -> None:
        self._at_server -= 1
        if call.has_gate:
            self._handshake.gate.set()

    async def _answer(self, call: Call, answer: bytes) -> None:
        if call.message.method == "initialize":
            self._handshake.learn(answer)
        self._known = True
        self._streams.be_present()
        await self._output.write(answer)
        if call.message.method == "tools/list":
            self._read_only |= read_only_tools(answer)

    async def _fail(self, call: Call, text: str) -> None:
        if not call.answered and not call.cancelled:  # MCP, "Cancellation": no response is sent any more
            call.answered = True
            await self._output.write(error_answer(call.message.id, INTERNAL_ERROR, text))

    # --- notifications, and answers to the server ------------------------------------------------------------------

    async def _send_notes(self) -> None:
        while True:
            while not self._notes:
                self._notes_changed.clear()
                await self._notes_changed.wait()
            call = self._notes.popleft()
            self._notes_changed.set()
            if call.version is None:
                await self._handshake.over()
            await self._deliver_note(call)

    async def _deliver_note(self, call: Call) -> None:
        try:
            await self._delivery.deliver(call, self._output.write)
        except Undelivered:
            return  # who sent it expects no answer

    # --- the end ---------------------------------------------------------------------------------------------------

    async def _all_answered(self, within_s: float) -> None:
        """Returns when no request waits for an answer any more, or time is up."""
        deadline = time.monotonic() + within_s
        while self._pending and not self._output.closed.is_set:
            self._room.clear()
            try:
                await self._room.wait(deadline)
            except TimeoutError:
                return

    async def _say_goodbye(self) -> None:
        """DELETE in the handshake era; the modern one knows no goodbye, but /api does."""
        if not self._known:
            return
        try:
            connection, target = await self._link.connection_now()
            headers = self._caller.headers(target)
            if self._handshake.session is not None:
                message = request("DELETE", target.path, headers | self._handshake.headers())
            else:
                path = f"{target.path.removesuffix('/mcp')}/api/v1/sessions/{self._caller.session}/close"
                message = request("POST", path, headers)
            await connection.send(message)
            await connection.head()
        except (Broken, Unreachable, Unusable, TimeoutError):
            return  # the server is away, or sees it by the end of our connections


STDIN_ENDED = "its input has ended"
