"""Transcripts of tasks: what they were asked, what their agents said and called, and how a conversation goes on.

Of a runner that holds the conversation itself each answer is written, with its tokens and its cost; of a program that
writes a transcript of its own the texts alone, since its tokens stand there.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio.to_thread

from serena_central.agents.tasks import TaskSpec, Transcript, Usage
from serena_central.core.errors import TaskRefused
from serena_central.transcripts.cleanup import pin
from serena_central.transcripts.recorded_call import Recorded, RecordedCall, RecordedMessage, Spent
from serena_central.transcripts.records import SUMMARY
from serena_central.transcripts.resuming import Conversation, continued, resume


class TaskTranscripts:
    """`put` hands something to the writer of `folder`, `flush` waits until it is written."""

    def __init__(self, put: Callable[[Recorded], None], flush: Callable[[], Awaitable[None]], folder: Path) -> None:
        self._put = put
        self.flush = flush
        self._folder = folder

    def prompt(self, spec: TaskSpec, text: str, *, model: str | None = None, first: bool = False) -> None:
        """What the agent was told; `first`: by whoever started the task."""
        self._user(spec, text, model, spec.transcript.attachments if first else ())

    def summary(self, spec: TaskSpec, text: str, *, model: str | None = None) -> None:
        """What a compaction has left of the conversation."""
        self._user(spec, text, model, ({"type": SUMMARY},))

    def answer(
        self,
        spec: TaskSpec,
        text: str,
        *,
        calls: Sequence[Mapping[str, Any]] = (),
        stop_reason: str = "end_turn",
        usage: Usage | None = None,
        cost: float | None = None,
        model: str | None = None,
    ) -> None:
        """What the agent said; `model` where its tokens are counted by this transcript."""
        used = usage or Usage()
        spent = Spent(
            input=used.input,
            output=used.output,
            cache_write=used.cache_write,
            cache_read=used.cache_read,
            cost=cost or 0.0,
        )
        told = {"model": model, "agent": spec.agent} if model else {}
        self._message(spec, role="assistant", text=text, calls=calls, stop_reason=stop_reason, spent=spent, **told)

    def call(self, spec: TaskSpec, called: Mapping[str, Any], output: str, *, failed: bool, duration_ms: float) -> None:
        """A call that has ended; `called` is its block in the answer."""
        self._put(
            RecordedCall(
                id=str(called["id"]),
                session=spec.session,
                root=spec.transcript.root,
                transcript=spec.transcript.session,
                tool=str(called["name"]),
                arguments=called.get("input") or {},
                outcome="error" if failed else "ok",
                output=output,
                ended_at=time.time(),
                duration_ms=duration_ms,
            )
        )

    def _user(self, spec: TaskSpec, text: str, model: str | None, attachments: Sequence[Mapping[str, Any]]) -> None:
        self._message(spec, role="user", text=text, model=model, attachments=attachments)

    def _message(self, spec: TaskSpec, **said: Any) -> None:
        place = spec.transcript
        self._put(
            RecordedMessage(session=spec.session, root=place.root, transcript=place.session, at=time.time(), **said)
        )

    async def place(self, root: str, resumes: str, *, new: bool) -> Transcript:
        """Where a task is written: in a session of its own, or in the one that it `resumes`; with `new`, and where that
        one was idle for a day, in another one that refers to it.

        Raises:
            TaskRefused: there is no such session in this project.
            InvalidTranscript
        """
        if not resumes:
            return Transcript(session=str(uuid4()), root=root)
        found = await self.conversation(resumes)
        if found.project != root:
            raise TaskRefused(f"Session {resumes} is of another project: {found.project}. Resume it with that one.")
        goal = continued(found, new=new)
        return Transcript(session=goal.session, root=root, resumes=resumes, attachments=tuple(goal.attachments))

    async def keep(self, session: str) -> None:
        """Keeps a session's transcript whatever its age.

        Raises:
            TaskRefused: that can't be noted.
        """
        try:
            await anyio.to_thread.run_sync(self._pin, session)
        except OSError as error:
            raise TaskRefused(f"Its transcript can't be kept: {error.strerror or error}.") from error

    def _pin(self, session: str) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        pin(self._folder, session)

    async def conversation(self, session: str) -> Conversation:
        """What was said in a session so far.

        Raises:
            TaskRefused: there is none, or it can't be read.
            InvalidTranscript
        """
        await self.flush()
        try:
            found = await anyio.to_thread.run_sync(resume, self._folder, session)
        except OSError as error:
            raise TaskRefused(f"The transcript of {session} can't be read: {error.strerror or error}.") from error
        if found is None or not found.messages:
            raise TaskRefused(
                f"No transcript of this server holds session {session}. `serena-central transcripts own` lists them; "
                "a client's own session is resumed in the client (`serena-central transcripts resume SESSION`)."
            )
        return found
