"""What the log writes is read back, in both forms and over rotations."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from serena_central.core.log_lines import Follower, Wanted, last_records, records_in
from serena_central.core.logs import JsonLines, TextLines

ALL = Wanted()


@contextmanager
def logging_to(file: Path, formatter: logging.Formatter) -> Generator[logging.Logger]:
    """A logger whose file is set aside by hand."""
    handler = RotatingFileHandler(file, backupCount=3, encoding="utf-8")
    handler.setFormatter(formatter)
    logger = logging.getLogger("test_log_lines")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)
    handler.close()


def rotate(logger: logging.Logger) -> None:
    # pytest adds handlers of its own
    next(handler for handler in logger.handlers if isinstance(handler, RotatingFileHandler)).doRollover()


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
def test_records_are_read_as_they_were_written(tmp_path: Path, formatter: logging.Formatter) -> None:
    file = tmp_path / "server.log"
    with logging_to(file, formatter) as logger:
        logger.info("started [really]")
        logger.warning("odd", extra={"session": "s-1", "project": "a shop", "action": "call.finished"})
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("failed", extra={"session": "s-2"})
    first, second, third = last_records(file, 10, ALL)
    assert (first.level, first.message, first.keys) == ("info", "started [really]", {})
    assert second.keys == {"session": "s-1", "project": "a shop", "action": "call.finished"}
    assert (third.level, third.message) == ("error", "failed")
    assert "ValueError: broken" in third.lines
    assert last_records(file, 10, Wanted(session="s-2")) == [third]
    assert last_records(file, 10, Wanted(least="warning")) == [second, third]
    assert last_records(file, 1, Wanted(least="warning")) == [third]
    assert last_records(file, 0, ALL) == []


def test_the_newest_are_taken_from_older_files_as_well(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    with logging_to(file, TextLines()) as logger:
        for number in range(12):
            logger.info("record %d", number)
            if number % 3 == 2:
                rotate(logger)
    assert [record.message for record in last_records(file, 5, ALL)] == [f"record {n}" for n in range(7, 12)]
    assert len(last_records(file, 100, ALL)) == 9  # three files are kept


def test_what_is_added_is_followed_over_a_rotation(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    with logging_to(file, TextLines()) as logger:
        early = Follower(tmp_path / "none.log")
        logger.info("before")
        follower = Follower(file)
        assert follower.added() == []
        logger.info("one")
        assert [record.message for record in follower.added()] == ["one"]
        logger.info("two")
        rotate(logger)
        logger.info("three")
        assert [record.message for record in follower.added()] == ["two", "three"]
        assert follower.added() == []
        assert early.added() == []
    with file.open("ab") as stream:
        stream.write(b"2026-01-31T12:00:00.123Z INFO x: half")
        stream.flush()
        assert follower.added() == []
        stream.write(b" and half\n")
        stream.flush()
        assert [record.message for record in follower.added()] == ["half and half"]
    os.truncate(file, 0)
    file.write_text("2026-01-31T12:00:00.123Z INFO x: anew\n")
    assert [record.message for record in follower.added()] == ["anew"]


def test_what_is_no_record_belongs_to_the_one_before() -> None:
    lines = [
        "noise",
        "2026-01-31T12:00:00.123Z INFO x: a",
        "{",
        '{"time": 1}',
        "[]",
        "2026-01-31T12:00:00.123Z INFO x: b",
    ]
    first, second = records_in(lines)
    assert first.lines == '2026-01-31T12:00:00.123Z INFO x: a\n{\n{"time": 1}\n[]'
    assert second.message == "b"
