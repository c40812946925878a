"""Spans of real calls: who is whose parent, whose trace it is, and that nothing of it exists while it is off."""

import gzip
import subprocess
import sys
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serena_central.core import tracing
from tests.support.central import running_central
from tests.support.child import environment, serving_child
from tests.support.mcp import Era

pytestmark = pytest.mark.anyio

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


@pytest.fixture(scope="module")
def exporter() -> Generator[InMemorySpanExporter]:
    """The SDK's global provider can be set once in a process: this module does."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    with tracing.recording_to(provider):
        yield kept
    provider.shutdown()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    pass\n\nprint(Cart)\n")
    return root


def chain(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """The only span of that name, and those above it."""
    finished = {span.context.span_id: span for span in spans.get_finished_spans() if span.context}
    (found,) = [span for span in finished.values() if span.name == name]
    above = [found]
    while above[-1].parent and above[-1].parent.span_id in finished:
        above.append(finished[above[-1].parent.span_id])
    return above


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_question_to_a_language_server_stands_below_its_call_in_the_callers_trace(
    tmp_path: Path, project: Path, spans: InMemorySpanExporter, era: Era
) -> None:
    async with running_central(tmp_path) as central, central.raw(era, traceparent=TRACEPARENT) as client:
        arguments = {"name_path": "Cart", "relative_path": "cart.py", "project": str(project)}
        answer = await client.call("find_referencing_symbols", **arguments)
        assert not answer["isError"], answer
    # By its places or, where files were noted meanwhile, by the list.
    questions = {"ty textDocument/definition", "ty textDocument/references"}
    question = min(questions.intersection(span.name for span in spans.get_finished_spans()))
    asked = chain(spans, question)
    assert [span.name for span in asked] == [
        question,
        "tool find_referencing_symbols",
        "tools/call find_referencing_symbols",
    ]
    top = asked[-1].parent
    assert top is not None
    assert (f"{top.trace_id:032x}", f"{top.span_id:016x}") == (TRACE, CALLER)
    attributes = asked[1].attributes
    assert attributes
    assert attributes["serena.projects"] == "shop"
    assert str(attributes["serena.call"]).startswith("c-")
    assert [span.name for span in chain(spans, "scope")][1:] == [span.name for span in asked[1:]]


async def test_a_call_over_the_api_takes_the_trace_over_and_a_failure_is_its_spans_state(
    tmp_path: Path, project: Path, spans: InMemorySpanExporter
) -> None:
    async with running_central(tmp_path) as central, central.http(traceparent=TRACEPARENT) as http:
        body = {"arguments": {"relative_path": "none.py", "project": str(project)}}
        assert (await http.post("/api/v1/tools/read_file", json=body)).status_code == 404
    (call,) = chain(spans, "tool read_file")
    assert call.parent is not None
    assert f"{call.parent.span_id:016x}" == CALLER
    assert not call.status.is_ok
    assert [event.name for event in call.events] == ["exception"]


async def test_spans_are_sent_to_the_collector_of_the_environment(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[ExportTraceServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None: ...

    settings = tmp_path / "user" / ".serena" / "serena_config.yml"
    settings.parent.mkdir(parents=True)
    settings.write_text("tracing: true\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        serving = Thread(target=collector.serve_forever)
        serving.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "my-box")
        async with serving_child(tmp_path) as child:
            await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(project)})
            assert await child.end(15) == 143
        collector.shutdown()
        serving.join()
    resources = [resource for request in received for resource in request.resource_spans]
    names = {span.name for one in resources for scope in one.scope_spans for span in scope.spans}
    assert {"tool find_symbol", "scope", "ty textDocument/documentSymbol"} <= names
    attributes = {pair.key: pair.value.string_value for one in resources for pair in one.resource.attributes}
    assert attributes["service.name"] == "my-box"
    assert attributes["service.version"]


def test_a_server_without_tracing_imports_neither_sdk_nor_exporter(tmp_path: Path) -> None:
    says = (
        "import sys, serena_central.app; print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", says], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert ended.stdout == "[]\n"
    says = "import sys, serena_central.core.tracing; print([name for name in sys.modules if 'opentelemetry' in name])"
    ended = subprocess.run([sys.executable, "-c", says], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
