"""OpenTelemetry spans for a call and its parts; does nothing while `tracing` is off.

Off, a span is one comparison, and no part of OpenTelemetry is imported here. Where spans go and how many are kept, the
standard OTEL_* variables say. A span below another is only made while that one is recorded: work in the background,
which no call waits for, leaves none.
"""

import threading
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from serena_central.core.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

FLUSH_S = 3.0
"""How long the last spans may take to be sent when the server stops."""

_NOTHING = nullcontext()
_tracer: "Tracer | None" = None


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
        raise ConfigError("tracing", "requires extra packages: pip install 'serena-central[otel]'") from error
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
