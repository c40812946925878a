"""Decides whether a server's answers can be believed yet, by the signs that its catalogue entry names; and records what
the answer to a question may lack, where it is found out, for the caller.

It is passed the server's messages (progress, log lines, notifications) and the start of the clock; it sends nothing.
Gaps are not kept at the server, where another question could change them before the caller reads them.
"""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import msgspec

from serena_central.core.decoding import converted, from_json
from serena_central.core.progress import report
from serena_central.lsp.catalogue import Readiness
from serena_central.lsp.patterns import LinePatterns
from serena_central.lsp.types import LspLogMessage, LspProgress, LspProgressValue

LOG_METHODS = ("window/logMessage", "window/showMessage")

COMPLAINT_LENGTH = 300
"""Characters shown of what a server said."""

_gaps: ContextVar[dict[str, None] | None] = ContextVar("answer_gaps", default=None)


class ReadinessTracker:
    """Follows one server. It can become unready again when the server says so (a reload, a new index)."""

    def __init__(self, spec: Readiness, server: str) -> None:
        self._spec = spec
        self._server = server
        self._titles = re.compile("|".join(re.escape(title) for title in spec.titles), re.IGNORECASE)
        self._patterns = LinePatterns(spec, server)
        self.bounded = self._patterns.bounded
        self._running: dict[int | str, str] = {}
        """Token → title, of every progress that has begun and not ended."""
        self._seen = False
        """The sign that the entry names was seen at least once."""
        self._ails = ""
        """What the server said of a project that it could not load."""
        self._ready = spec.kind == "none"
        self._doing = ""
        self._part: float | None = None
        self._waits_until: float | None = None
        """The clock's time when the cap of the present wait ends; None before the clock starts, and while ready."""
        self._grace_until = 0.0
        self._moved = anyio.Event()

    def start_clock(self, *, opened: bool = False) -> None:
        """The server is initialized, or has (`opened`) got its first document; only the first fitting call counts."""
        if self._waits_until is None and not self._ready and opened == self._spec.after_open:
            now = anyio.current_time()
            self._waits_until = now + self._spec.cap_s
            self._grace_until = now + self._spec.grace_s
            self._wake()

    def begin_again(self) -> None:
        """The server was asked for work, and will say when that is done."""
        self._sign(ready=False)

    def hear(self, method: str, params: msgspec.Raw) -> None:
        """Takes a notification of the server.

        Raises:
            msgspec.DecodeError
        """
        if method == "$/progress":
            self._hear_progress(from_json(params, LspProgress))
        elif method in LOG_METHODS:
            self._hear_line(from_json(params, LspLogMessage).message)
        elif self._spec.kind == "notification" and method == self._spec.method:
            fields = from_json(params, dict[str, Any]) if self._spec.field else {}
            ails = self._patterns.ails
            ill = ails and ails.search(bytes(params).decode())
            self._ails = str(fields.get("message") or "") if ill else ""
            self._sign(ready=fields.get(self._spec.field) == self._spec.value)

    def _hear_line(self, line: str) -> None:
        ready, ails, cured = self._patterns.ready, self._patterns.ails, self._patterns.cured
        if self._spec.kind == "log" and (ready is None or ready.search(line)):
            self._sign(ready=True)
        if ails and ails.search(line):
            self._ails = line
        elif cured and cured.search(line):
            self._ails = ""

    @property
    def pending(self) -> bool:
        """The clock runs, or has run out, and the server is not ready."""
        return not self._ready and self._waits_until is not None

    @property
    def note(self) -> str:
        """What an answer may lack that comes while it is pending."""
        doing = f" ({self._doing})" if self._doing else ""
        return f"{self._server} was still indexing{doing}; the answer may be incomplete, so call again later"

    @property
    def lacks(self) -> str | None:
        """What an answer may lack that came just now."""
        return self.note if self.pending else self._complaint()

    async def wait(self) -> str | None:
        """Waits until the server is ready; a note when the entry's cap came first, or a project was not loaded."""
        if self._ready or self._waits_until is None:
            return self._complaint()
        with anyio.CancelScope(deadline=self._waits_until):
            while not self._ready:
                report(f"{self._server}: {self._doing or 'starting'}", self._part)
                await self._next_move()
            return self._complaint()
        return self.note

    def _complaint(self) -> str | None:
        said = " ".join(self._ails.split())
        return f"{self._server} could not load everything: {said[:COMPLAINT_LENGTH]}" if said else None

    async def _next_move(self) -> None:
        if self._seen or self._grace_until >= (self._waits_until or 0.0):
            await self._moved.wait()
            return
        with anyio.CancelScope(deadline=self._grace_until):
            await self._moved.wait()
            return
        if not self._seen:
            self._sign(ready=True)  # nothing began in time: there was nothing to do

    def _hear_progress(self, progress: LspProgress) -> None:
        try:
            value = converted(progress.value, LspProgressValue)
        except msgspec.ValidationError:
            return  # partial results have a shape of their own
        if value.kind == "begin":
            self._running[progress.token] = value.title
        elif progress.token not in self._running:
            return
        title = self._running[progress.token]
        if value.kind == "end":
            del self._running[progress.token]
        self._doing = " ".join(filter(None, (title, value.message)))
        self._part = None if value.percentage is None else min(max(value.percentage / 100, 0.0), 1.0)
        if self._spec.kind == "progress" and self._titles.search(title):
            self._seen = True
            self._sign(ready=not any(self._titles.search(running) for running in self._running.values()))
        else:
            self._wake()

    def _sign(self, *, ready: bool) -> None:
        self._seen = True
        if ready:
            self._waits_until = None
        elif self._ready or self._waits_until is None:
            self._waits_until = anyio.current_time() + self._spec.cap_s
        self._ready = ready
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()


@contextmanager
def noting_gaps() -> Generator[Callable[[], str | None]]:
    """Collects what is noted inside, in the tasks that are started there too; what is given tells it, None if nothing
    was."""
    noted: dict[str, None] = {}
    token = _gaps.set(noted)
    try:
        yield lambda: "; ".join(noted) or None
    finally:
        _gaps.reset(token)


def note_gap(gap: str) -> None:
    """An answer that is being made may lack something."""
    noted = _gaps.get()
    if noted is not None:
        noted[gap] = None
