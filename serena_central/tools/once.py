"""Exactly once: a call that changes something and comes again, because its connection broke, gets its first answer.

Answers are kept for ten minutes; a repetition of a call that still runs waits for it. A call that was cancelled, or
failed for a passing reason, without having changed anything counts as never made. How a request is recognised when it
is sent again is the transport's business.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import anyio
import msgspec

from serena_central.core.errors import CallCancelled, DeadlineExceeded, LanguageServerError, SerenaCentralError
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool

KEPT_S = 600.0
"""How long an answer is kept: clients give up trying long before."""

MOST_KEPT = 5000

RECALL_S = 5.0
"""How long a call waits at the server's start until the answers of the run before are known."""

_WITHOUT_JOURNAL = frozenset({"execute_shell_command"})
"""Nobody can know what a command has done by the time its server dies."""

_PASSING = (CallCancelled, DeadlineExceeded, LanguageServerError)


class _Kept:
    """A call that runs (`done` is not set), or its outcome."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.done = anyio.Event()
        self.answer: Answer | None = None
        self.error: Exception | None = None


class Once:
    """Belongs to the event loop's thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._recalled = anyio.Event()

    def recall(self, answers: Mapping[str, list[str]]) -> None:
        """Takes over what an earlier run of the server answered: repeat key → blocks of the answer."""
        for key, blocks in answers.items():
            kept = self._kept.setdefault(key, _Kept(self._clock()))
            if not kept.done.is_set():
                kept.answer = Answer(blocks)
                kept.done.set()
        self._recalled.set()

    async def run(self, key: str, work: Callable[[], Awaitable[Answer]], changed: Callable[[], bool]) -> Answer:
        """The answer of `work`, run only if it was not yet. `changed` tells whether it has changed anything."""
        if not self._recalled.is_set():
            with anyio.move_on_after(RECALL_S):
                await self._recalled.wait()
        while (kept := self._kept.get(key)) is not None:
            await kept.done.wait()
            if kept.error is not None:
                raise kept.error
            if kept.answer is not None:
                return kept.answer
        kept = self._kept[key] = _Kept(self._clock())
        self._drop_old()
        try:
            kept.answer = answer = await work()
        except Exception as error:
            if changed() or (isinstance(error, SerenaCentralError) and not isinstance(error, _PASSING)):
                kept.error = error
            raise
        finally:
            if kept.answer is None and kept.error is None:
                self._kept.pop(key, None)
            kept.done.set()
        return answer

    def _drop_old(self) -> None:
        since = self._clock() - KEPT_S
        while True:
            key, kept = next(iter(self._kept.items()))
            if (kept.at >= since and len(self._kept) <= MOST_KEPT) or not kept.done.is_set():
                return
            del self._kept[key]


def called_once(tools: Iterable[Tool]) -> list[str]:
    """Names of the tools that change something and whose calls are made once though sent again, even if the server
    died meanwhile: they leave a journal, or making them twice is making them once."""
    return [tool.name for tool in tools if tool.idempotent or (tool.edits and tool.name not in _WITHOUT_JOURNAL)]


def repeat_key(session: str, request: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """By what a repetition is recognised: the session, the request as its transport names it, and what it asks."""
    said = msgspec.json.encode([session, request, tool, arguments], order="deterministic")
    return blake2b(said, digest_size=16).hexdigest()
