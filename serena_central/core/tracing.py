"""What is observed of a call: its id, the phases that its time goes to, and OpenTelemetry spans for it and its parts.

Phases: how long it waited for what, and for which language servers. What runs at the same time for one call counts
once: a phase lasts while at least one part of the call is in it. Outside of a call, measuring does nothing. It costs
about a microsecond per part.

While `tracing` is off, a span is one comparison, and no part of OpenTelemetry is imported here. Where spans go and how
many are kept, the standard OTEL_* variables say. A span below another is only made while that one is recorded: work in
the background, which no call waits for, leaves none.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from serena_central.core.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider


Phase = Literal["scope", "barrier", "queue", "start", "server", "syntax", "shaping"]
"""Choosing projects; the file system barrier; waiting for one's turn to edit; waiting for a language server to start;
its answers; reading by syntax; fitting the answer."""


FLUSH_S = 3.0
"""How long the last spans may take to be sent when the server stops."""

_ID_BYTES, _IDS_DRAWN = 8, 64

_call_ids: deque[str] = deque()
"""Ids that no call has got yet."""

_NOTHING = nullcontext()
_tracer: "Tracer | None" = None


def new_call_id() -> str:
    """A call id; unique among the calls of one server."""
    try:
        return _call_ids.pop()
    except IndexError:
        # The kernel is asked for many at a time.
        drawn = secrets.token_hex(_ID_BYTES * _IDS_DRAWN)
        _call_ids.extend(f"c-{drawn[at : at + 2 * _ID_BYTES]}" for at in range(0, len(drawn), 2 * _ID_BYTES))
        return _call_ids.pop()


def enabled() -> bool:
    return _tracer is not None


def call_span(name: str, **attributes: str) -> AbstractContextManager[Any]:
    """The span of one call, below the current one if there is any."""
    return _NOTHING if _tracer is None else _tracer.start_as_current_span(name, attributes=attributes)


def step_span(name: str, **attributes: str) -> AbstractContextManager[Any]:
    """A step inside a call that is recorded."""
    if _tracer is None:
        return _NOTHING
    from opentelemetry.trace import get_current_span

    if not get_current_span().is_recording():
        return _NOTHING
    return _tracer.start_as_current_span(name, attributes=attributes)


def note(**attributes: str) -> None:
    """Adds to the current span what is only known by now."""
    if _tracer is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(attributes)


@contextmanager
def continuing(headers: Mapping[str, str]) -> Generator[None]:
    """Spans inside belong to the trace that the caller names (W3C traceparent), if it names one."""
    if _tracer is None or "traceparent" not in headers:
        yield
        return
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def carried() -> dict[str, str]:
    """The headers by which another process continues the current trace (`continuing`); empty without one."""
    headers: dict[str, str] = {}
    if _tracer is not None:
        from opentelemetry import propagate

        propagate.inject(headers)
    return headers


@contextmanager
def recording_to(provider: "TracerProvider") -> Generator[None]:
    """Spans are made by `provider` inside. One at a time."""
    global _tracer  # noqa: PLW0603 - one for the process, as the provider of OpenTelemetry is
    _tracer = provider.get_tracer("serena-central")
    try:
        yield
    finally:
        _tracer = None


@contextmanager
def exporting(version: str) -> Generator[None]:
    """Sends spans by OTLP over HTTP to where OTEL_EXPORTER_OTLP_ENDPOINT says (default: the local collector).

    Raises:
        ConfigError: the packages of the extra `otel` are missing.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError("tracing", "requires extra packages: pipx install --force '.[otel]' in a checkout") from error
    ours = Resource.create({"service.name": "serena-central", "service.version": version})
    # The environment's names win over ours.
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)  # the MCP SDK's own spans go the same way
    try:
        with recording_to(provider):
            yield
    finally:
        # A collector that does not answer must not hold up the stop.
        last = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(FLUSH_S)


class Phases:
    """The phases of one call. Belongs to the event loop's thread."""

    __slots__ = ("_active", "_any", "_any_since", "_since", "is_over", "label", "servers", "spent_s", "together_s")

    def __init__(self, label: str = "") -> None:
        self.label = label
        """Names the call, for people."""
        self.is_over = False
        """Tasks that it started may go on: they work for nobody who waits."""
        self._active: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._any = 0
        self._any_since = 0.0
        self.spent_s: dict[str, float] = {}
        """Seconds in each phase that it has been in."""
        self.together_s = 0.0
        """Seconds in any of them."""
        self.servers: set[str] = set()
        """Language servers that were asked."""

    def enter(self, name: str) -> None:
        count = self._active.get(name, 0)
        self._active[name] = count + 1
        if not count:
            now = time.perf_counter()
            self._since[name] = now
            if not self._any:
                self._any_since = now
            self._any += 1

    def leave(self, name: str) -> None:
        count = self._active[name] = self._active[name] - 1
        if not count:
            now = time.perf_counter()
            self.spent_s[name] = self.spent_s.get(name, 0.0) + now - self._since[name]
            self._any -= 1
            if not self._any:
                self.together_s += now - self._any_since

    def add(self, spent_s: Mapping[str, float], together_s: float, servers: Iterable[str]) -> None:
        """Adds what another process has measured of the call."""
        for name, seconds in spent_s.items():
            self.spent_s[name] = self.spent_s.get(name, 0.0) + seconds
        self.together_s += together_s
        self.servers.update(servers)


_current: ContextVar[Phases | None] = ContextVar("phases", default=None)


def current_phases() -> Phases | None:
    """The phases of this task's call."""
    return _current.get()


class measuring:  # noqa: N801 - used like a function
    """Measures what the block, and the tasks that it starts, enter."""

    __slots__ = ("_phases", "_token")

    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    def __enter__(self) -> None:
        self._token = _current.set(self._phases)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._phases.is_over = True
        _current.reset(self._token)


def measured_call() -> str | None:
    """The label of the call that this task works for; None in the background, and when the call is over."""
    phases = _current.get()
    return None if phases is None or phases.is_over else phases.label


class phase:  # noqa: N801 - used like a function
    """While the block runs, the call of this task is in the phase; `server` is the language server that it asks."""

    __slots__ = ("_name", "_phases", "_server")

    def __init__(self, name: Phase, server: str | None = None) -> None:
        self._name = name
        self._server = server
        self._phases: Phases | None = None

    def __enter__(self) -> None:
        phases = self._phases = _current.get()
        if phases is not None:
            phases.enter(self._name)
            if self._server is not None:
                phases.servers.add(self._server)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._phases is not None:
            self._phases.leave(self._name)
