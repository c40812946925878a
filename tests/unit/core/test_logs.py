"""The log's lines are whole, carry their keys, and can't be forged by the names in them."""

import json
import logging
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from serena_central.core import logs
from serena_central.core.events import EventBus, Severity
from serena_central.core.logs import JsonLines, TextLines, log_event, log_to
from tests.support.events import call_finished, server_moved

SENT = "hunter2"


def record(message: str, **keys: object) -> logging.LogRecord:
    made = logging.LogRecord("serena_central.pool", logging.WARNING, __file__, 1, message, (), None)
    made.__dict__.update(keys)
    made.created, made.msecs = 1_700_000_000.042, 42.0
    return made


def test_a_line_for_people_names_what_it_is_about() -> None:
    assert TextLines().format(record("it ended", action="server.moved", project="shop", session=None)) == (
        "2023-11-14T22:13:20.042Z WARNING serena_central.pool: it ended [action=server.moved project=shop]"
    )


def test_a_name_with_line_breaks_makes_no_lines_of_its_own() -> None:
    line = TextLines().format(record("one\ntwo\x1b[31m", project="a\nb"))
    assert line.splitlines() == [line]
    assert "\x1b" not in line


def test_what_a_server_sent_is_not_quoted_where_it_did_not_fit() -> None:
    """Pydantic's errors quote it, and the MCP SDK logs them."""
    try:
        TypeAdapter(int).validate_python(SENT)
    except ValidationError:
        broken = record("Error parsing JSON response")
        broken.exc_info = sys.exc_info()
    for line in (TextLines().format(broken), JsonLines().format(broken)):
        assert "ValidationError" in line
        assert SENT not in line


@pytest.mark.parametrize("wrapped", ["cause", "context", "group"])
def test_what_did_not_fit_is_not_quoted_either_where_another_error_came_of_it(wrapped: str) -> None:
    broken = record("The call failed")
    try:
        try:
            TypeAdapter(int).validate_python(SENT)
        except ValidationError as error:
            if wrapped == "group":
                raise ExceptionGroup("tasks", [error]) from None
            if wrapped == "cause":
                raise LookupError from error
            raise LookupError  # noqa: B904 - its context is enough
    except (ExceptionGroup, LookupError):
        broken.exc_info = sys.exc_info()
    for line in (TextLines().format(broken), JsonLines().format(broken)):
        assert "ValidationError" in line
        assert Path(__file__).name in line
        assert SENT not in line


def test_an_error_that_is_its_own_cause_is_logged() -> None:
    error = LookupError("around")
    error.__cause__ = ValueError("and around")
    error.__cause__.__cause__ = error
    broken = record("The call failed")
    broken.exc_info = (LookupError, error, None)
    assert "and around" in TextLines().format(broken)


def test_a_json_line_holds_the_keys_and_the_trace_of_an_exception() -> None:
    try:
        raise ValueError("half a pair: \udcff")
    except ValueError:
        broken = record("it broke", session="s-1")
        broken.exc_info = sys.exc_info()
    line = JsonLines().format(broken)
    said = json.loads(line)
    assert "\n" not in line
    assert said["time"] == "2023-11-14T22:13:20.042Z"
    assert (said["level"], said["logger"], said["message"]) == ("warning", "serena_central.pool", "it broke")
    assert said["session"] == "s-1"
    assert said["trace"].endswith("ValueError: half a pair: \udcff")


def test_the_file_is_rotated_and_old_ones_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root_logger = logging.getLogger()
    monkeypatch.setattr(root_logger, "handlers", [])
    monkeypatch.setattr(root_logger, "level", logging.WARNING)
    monkeypatch.setattr(logs, "LOG_BYTES", 2000)
    log_to(tmp_path / "server.log", "info", "json")
    for number in range(100):
        root_logger.info("line %d %s", number, "x" * 100)
    root_logger.debug("nobody asked for this")
    for handler in root_logger.handlers:
        handler.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "server.log",
        *(f"server.log.{number}" for number in range(1, logs.LOG_FILES + 1)),
    ]
    lines = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert lines[-1]["message"].startswith("line 99")
    assert (tmp_path / "server.log").stat().st_size <= 2000


def test_events_are_logged_with_their_keys_and_calls_without_the_callers_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "serena_central.core.logs")
    bus = EventBus()
    bus.tap(log_event)
    bus.publish(server_moved(message="it crashed", severity=Severity.ERROR, project="shop"))
    bus.publish(server_moved(message="of every call", keep=False))
    bus.publish(call_finished(session="s-1", semantic_context="private words"))
    bus.publish(call_finished(severity=Severity.WARNING, session="s-1", outcome="error"))
    found = [(line.levelname, line.getMessage(), line.__dict__.get("action")) for line in caplog.records]
    assert found == [
        ("ERROR", "it crashed", "server.moved"),
        ("DEBUG", "call.finished call=c-1 tool=find_symbol outcome=ok error=None duration_ms=1.0", "call.finished"),
        ("INFO", "call.finished call=c-1 tool=find_symbol outcome=error error=None duration_ms=1.0", "call.finished"),
    ]
    assert (caplog.records[0].__dict__["server"], caplog.records[1].__dict__["session"]) == ("ty", "s-1")
