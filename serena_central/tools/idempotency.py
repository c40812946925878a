"""Idempotency: a call that changes something and is sent again gets its first answer instead of running twice.

The newest answers are kept, by number: an age could be falsified by a clock that jumps. A repetition of a call that
still runs waits for it. A call that was cancelled, or failed for a passing reason, without having changed anything
counts as never made. Of edits of earlier runs the journal knows, before the first call comes; their answers follow from
the store. How a request is recognized when it is sent again is the transport's business.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol

import anyio

from serena_central.core.encoding import canonical_json
from serena_central.core.errors import (
    CallCancelled,
    DeadlineExceeded,
    DirectoryUnavailable,
    HostFenced,
    HostUnavailable,
    LanguageServerError,
    NotReady,
    OutcomeUnknown,
    SerenaCentralError,
)
from serena_central.tools.answer import Answer, recalled
from serena_central.tools.catalogue import Tool

MOST_KEPT = 10_000

RECALL_S = 5.0
"""How long a call waits at the server's start for what only the store knows."""

ALREADY = "This edit was already made as {}, before the server restarted. It was not repeated."

CUT_OFF = "This edit was already made as {}; its call was interrupted before the answer. It was not repeated."

_PASSING = (
    *(CallCancelled, DeadlineExceeded, LanguageServerError, NotReady),
    *(DirectoryUnavailable, HostFenced, HostUnavailable),
)


class SharedCalls(Protocol):
    """Knows the calls that other servers make, to which the same client may go."""

    async def earlier(self, repeat: str) -> list[str] | None:
        """The answer to a call that another server has made, as blocks; None if none has.

        Raises:
            OutcomeUnknown
            NotReady
        """
        ...


class _Kept:
    """A call that runs (`done` is not set), or its outcome."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.answer: Answer | None = None
        self.error: Exception | None = None


class Idempotency:
    """Belongs to the event loop's thread."""

    def __init__(self, shared: SharedCalls | None = None) -> None:
        self._shared = shared
        self._kept: dict[str, _Kept] = {}
        self._complete = False
        """Whether a key that is not known is new."""
        self._recalled = anyio.Event()

    def expect(self, earlier: Mapping[str, str | SerenaCentralError], *, complete: bool) -> None:
        """Loads the outcomes of earlier runs of the server: idempotency key → the edit's id, or why the outcome is
        unknown. `complete`: these are all. Their answers come by `recall`."""
        for key, outcome in earlier.items():
            if key not in self._kept:
                kept = self._kept[key] = _Kept()
                if isinstance(outcome, str):
                    kept.answer = Answer([ALREADY.format(outcome)])
                else:
                    kept.error = outcome
        self._complete = complete

    def recall(self, answers: Mapping[str, list[str]]) -> None:
        """Loads the answers to calls of earlier runs: idempotency key → blocks. Afterwards nothing more can be
        learned."""
        for key, blocks in answers.items():
            kept = self._kept.get(key)
            if kept is not None and kept.answer is not None and not kept.done.is_set():
                kept.answer = recalled(blocks)
        for kept in self._kept.values():
            if kept.answer is not None or kept.error is not None:
                kept.done.set()
        self._complete = True
        self._recalled.set()

    async def run(
        self,
        key: str,
        work: Callable[[], Awaitable[Answer]],
        changed: Callable[[], Sequence[str]],
        *,
        journaled: bool = True,
    ) -> Answer:
        """The answer of `work`, run only if it was not yet. `changed` tells the edits that it has made; `journaled`: it
        makes edits, which another server may have made.

        Raises:
            NotReady: it can't be told yet whether this is a repetition.
            OutcomeUnknown: it is one, of a call of which nobody can know what it did.
        """
        earlier = await self._earlier(key)
        if earlier is not None:
            return earlier
        kept = self._kept[key] = _Kept()
        self._drop_old()
        shared = self._shared if journaled else None
        try:
            if shared is not None and (blocks := await shared.earlier(key)) is not None:
                kept.answer = answer = recalled(blocks)
            else:
                kept.answer = answer = await work()
        except BaseException as error:
            if made := changed():
                if isinstance(error, Exception):
                    kept.error = error
                else:
                    kept.answer = Answer([CUT_OFF.format(", ".join(made))])
            elif isinstance(error, SerenaCentralError) and not isinstance(error, _passing(shared)):
                kept.error = error
            raise
        finally:
            if kept.answer is None and kept.error is None:
                self._kept.pop(key, None)
            kept.done.set()
        return answer

    async def _earlier(self, key: str) -> Answer | None:
        """What a call was answered that was made already, also by an earlier run; None if there was none. No await
        between finding none and returning: single flight."""
        if key not in self._kept and not self._complete:
            with anyio.move_on_after(RECALL_S):
                await self._recalled.wait()
            if not self._complete:
                raise NotReady
        while (kept := self._kept.get(key)) is not None:
            # What an earlier run did is known from the beginning; what it answered is not worth a long wait.
            with anyio.move_on_after(RECALL_S if kept.answer or kept.error else None):
                await kept.done.wait()
            if kept.error is not None:
                raise kept.error
            if kept.answer is not None:
                return kept.answer
        return None

    def _drop_old(self) -> None:
        while len(self._kept) > MOST_KEPT:
            key, kept = next(iter(self._kept.items()))
            if not kept.done.is_set():
                return
            del self._kept[key]


def _passing(shared: SharedCalls | None) -> tuple[type[SerenaCentralError], ...]:
    """Failures after which the same call may have another outcome; what is unknown of another server's call may be
    known later."""
    return _PASSING if shared is None else (*_PASSING, OutcomeUnknown)


def called_once(tools: Iterable[Tool]) -> list[str]:
    """Names of the tools that change something and whose calls are made once though sent again, even if the server
    died meanwhile: they leave a journal, or making them twice is making them once. What a shell command has done by
    then nobody can know."""
    return [tool.name for tool in tools if tool.idempotent or tool.journaled]


def idempotency_key(session: str, request: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """By what a repetition is identified_by: the session, the request as its transport names it, and what it asks."""
    return blake2b(canonical_json([session, request, tool, arguments]), digest_size=16).hexdigest()
