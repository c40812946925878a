"""Writes sessions into transcripts: those of tasks, and those of clients as far as this server sees them (calls, their
results, prompts and stops).

They are handed over on the event loop and written by a worker thread; one that waits too long behind others is
dropped, counted and logged.
"""

import logging
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus
from msgspec import UNSET

from serena_central.core.errors import StoreError
from serena_central.core.masking import MASK, is_secret_file
from serena_central.transcripts.recorded_call import Recorded, RecordedCall, RecordedMessage
from serena_central.transcripts.records import AssistantMessage, ToolCall, ToolResult, UserMessage
from serena_central.transcripts.session_ids import SessionIds
from serena_central.transcripts.writer import TranscriptWriter

logger = logging.getLogger(__name__)

WAITING = 2000
"""Calls and messages that may wait to be written."""

BATCH = 200

OUTPUT_CHARS = 100_000
"""Of a result or a message; the rest is cut, and the line says so."""

OPEN_PROJECTS = 32
"""Projects whose day files are held open."""

CLOSE_S = 5.0


class TranscriptRecorder:
    """The one writer of a server's transcripts in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._send, self._receive = anyio.create_memory_object_stream[Recorded | anyio.Event](WAITING)
        self._projects: dict[str, _Project] = {}
        self.dropped = 0

    def put(self, one: Recorded) -> None:
        """Never waits, never raises."""
        try:
            self._send.send_nowait(one)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.dropped += 1
            if self.dropped in (1, 10, 100) or self.dropped % 1000 == 0:
                logger.warning(
                    "%d calls or messages are missing from transcripts: they came faster than written", self.dropped
                )

    async def flush(self) -> None:
        """Waits until all that was handed over is written; bounded."""
        written = anyio.Event()
        with anyio.move_on_after(CLOSE_S):
            try:
                await self._send.send(written)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            await written.wait()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Writes until it is cancelled, and then what is left."""
        try:
            task_status.started()
            while True:
                await self._write([await self._receive.receive()])
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True):
                self._send.close()
                await self._write([])
                await anyio.to_thread.run_sync(self._close)
            self._receive.close()

    async def _write(self, batch: list[Recorded | anyio.Event]) -> None:
        while True:
            while len(batch) < BATCH:
                try:
                    batch.append(self._receive.receive_nowait())
                except (anyio.WouldBlock, anyio.EndOfStream):
                    break
            if not batch:
                return
            # A cancelled thread would still write: it is waited for.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._append, [one for one in batch if not isinstance(one, anyio.Event)])
            for one in batch:
                if isinstance(one, anyio.Event):
                    one.set()
            batch = []

    def _append(self, batch: list[Recorded]) -> None:
        for one in batch:
            try:
                self._project(one.root).append(one)
            except (OSError, StoreError) as error:
                self.dropped += 1
                logger.warning("a call or message is missing from the transcript of %s: %s", one.root, error)
            except Exception:  # of what is in it: the others are written
                self.dropped += 1
                logger.exception("a call or message is missing from the transcript of %s", one.root)

    def _project(self, root: str) -> "_Project":
        """The latest used is the last."""
        found = self._projects.pop(root, None) or _Project(self._folder, root)
        self._projects[root] = found
        if len(self._projects) > OPEN_PROJECTS:
            self._projects.pop(next(iter(self._projects))).close()
        return found

    def _close(self) -> None:
        for one in self._projects.values():
            one.close()


class _Project:
    def __init__(self, folder: Path, root: str) -> None:
        self._writer = TranscriptWriter(folder, root)
        self._ids = SessionIds(self._writer.folder)

    def append(self, one: Recorded) -> None:
        if isinstance(one, RecordedMessage):
            self._append_message(one)
        else:
            self._append_call(one)

    def _append_message(self, one: RecordedMessage) -> None:
        at = datetime.fromtimestamp(one.at, UTC)
        session, content, spent = self._session(one, at), _cut(one.text), one.spent
        if one.role == "user":
            record = UserMessage(
                session_id=session, timestamp=at, content=content, model=one.model, attachments=list(one.attachments)
            )
        else:
            record = AssistantMessage(
                session_id=session,
                timestamp=at,
                content=content,
                tool_calls=list(one.calls),
                stop_reason=one.stop_reason,
                input_tokens=spent.input,
                output_tokens=spent.output,
                cache_creation_tokens=spent.cache_write,
                cache_read_tokens=spent.cache_read,
                cost=spent.cost,
                model=one.model or UNSET,
                agent=one.agent or UNSET,
            )
        self._writer.append(record)

    def _session(self, one: Recorded, at: datetime) -> UUID:
        return UUID(one.transcript) if one.transcript else self._ids.current(one.session, at, one.conversation)

    def _append_call(self, call: RecordedCall) -> None:
        ended = datetime.fromtimestamp(call.ended_at, UTC)
        began = datetime.fromtimestamp(call.ended_at - call.duration_ms / 1000, UTC)
        session = self._session(call, ended)
        output = _cut(call.output)
        if any(isinstance(value, str) and is_secret_file(value) for value in call.arguments.values()):
            output = MASK
        self._writer.append(
            ToolCall(
                session_id=session,
                timestamp=began,
                tool_call_id=call.id,
                tool_name=call.tool,
                tool_input=call.arguments,
            )
        )
        self._writer.append(
            ToolResult(
                session_id=session,
                timestamp=ended,
                tool_call_id=call.id,
                tool_name=call.tool,
                status=call.outcome,
                output=output,
                execution_time_ms=round(call.duration_ms, 3),
            )
        )

    def close(self) -> None:
        self._writer.close()


def _cut(text: str) -> str:
    return (
        text if len(text) <= OUTPUT_CHARS else f"{text[:OUTPUT_CHARS]}… ({len(text) - OUTPUT_CHARS:,} more characters)"
    )
