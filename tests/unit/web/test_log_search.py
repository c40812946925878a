"""The search over the server's log, in files that the logging of the server wrote."""

import json
import logging
import os
import sys
import time
from pathlib import Path

import pytest

from serena_central.core.logs import JsonLines, LogFormat, TextLines
from serena_central.web import log_search
from serena_central.web.log_search import search_log

AT = 1_790_000_000.0


@pytest.fixture(params=["text", "json"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "server.log"
    file.write_text("".join(f"{line}\n" for line in written(request.param)))
    return file


def written(form: LogFormat) -> list[str]:
    formatter = JsonLines() if form == "json" else TextLines()
    return [
        formatter.format(one)
        for one in (
            record(AT, "INFO", "opened", project="shop", session="s-1"),
            record(AT + 60, "WARNING", "slow disk", session="s-2"),
            failure(AT + 120),
            record(AT + 180, "INFO", "sent with api_key=abcdef0123456789abcdef"),
        )
    ]


def record(at: float, level: str, text: str, **keys: str) -> logging.LogRecord:
    one = logging.LogRecord("serena_central.pool", getattr(logging, level), __file__, 1, text, None, None)
    one.created, one.msecs = at, 0
    for key, value in keys.items():
        setattr(one, key, value)
    return one


def failure(at: float) -> logging.LogRecord:
    one = record(at, "ERROR", "unexpected error c-1")
    try:
        raise ValueError("a broken thing")
    except ValueError:
        one.exc_info = sys.exc_info()
    return one


def test_records_are_found_by_words_session_project_level_and_time(file: Path) -> None:
    def found(**wanted: object) -> list[float]:
        return [one.at - AT for one in search_log(file, limit=10, **wanted).records]  # pyright: ignore[reportArgumentType]

    assert found() == [180, 120, 60, 0]
    assert found(words="DISK slow") == [60]
    assert found(words="broken thing") == [120]
    assert found(session="s-1") == [0]
    assert found(project="shop") == [0]
    assert found(level="warning") == [120, 60]
    assert found(since=AT + 60, until=AT + 120) == [60]
    assert found(words="nowhere") == []


def test_a_record_has_the_lines_of_its_trace_and_no_secret(file: Path) -> None:
    newest, failed, *_ = search_log(file, limit=10).records
    assert "abcdef0123456789" not in newest.text
    assert failed.text.startswith("unexpected error c-1\nTraceback")
    assert failed.text.endswith("ValueError: a broken thing")


def test_what_was_not_looked_at_is_reported(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not search_log(file, limit=10).more
    two = search_log(file, limit=2)
    assert (len(two.records), two.more) == (2, True)
    monkeypatch.setattr(log_search, "READ_BYTES", 200)
    end = search_log(file, limit=10)
    assert end.more
    assert [one.at for one in end.records] == [AT + 180]


def test_the_file_that_was_set_aside_is_searched_too(file: Path) -> None:
    older = "".join(f"{line}\n" for line in written("text"))
    file.with_name("server.log.1").write_text(older.replace("slow disk", "slower disk"))
    assert [one.at - AT for one in search_log(file, words="slower", limit=10).records] == [60]


def test_no_log_and_no_sense_are_no_failure(tmp_path: Path) -> None:
    assert search_log(tmp_path / "none", limit=10).records == []
    (tmp_path / "odd").write_bytes(os.urandom(1000) + b'\n{"time": "x"}\n{"time": "2026"\n')
    assert search_log(tmp_path / "odd", limit=10).records == []


def test_a_full_log_is_read_in_part(tmp_path: Path) -> None:
    line = TextLines().format(record(time.time(), "INFO", "x" * 200)) + "\n"
    file = tmp_path / "server.log"
    file.write_text(line * (3 * log_search.READ_BYTES // len(line)))
    found = search_log(file, words="nothing", limit=10)
    assert (found.records, found.more) == ([], True)
    assert json.dumps(found.searched_to)
