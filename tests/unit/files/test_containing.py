"""Words name the files that hold them, as far as the disk delivers these in time."""

import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from serena_central.files import containing as containing_module
from serena_central.files.containing import READ_AT_ONCE, files_containing, files_lacking, find_containing

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("waiting", [0.0, math.inf], ids=["several threads", "one thread"])
async def test_many_files_are_named_in_the_order_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: float
) -> None:
    monkeypatch.setattr(containing_module, "WAITING", waiting)
    names = [f"{number}" for number in range(3 * READ_AT_ONCE)]
    for name in names:
        (tmp_path / name).write_text("word" if int(name) % 3 else "words")
    holding = await find_containing(tmp_path, reversed(names), "word")
    assert holding == ([name for name in reversed(names) if int(name) % 3], [])


async def test_files_that_the_disk_does_not_deliver_in_time_are_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = threading.Event()

    def reading(root: Path, paths: list[str], word: str, **how: Any) -> list[str]:
        if "60" in paths:
            disk.wait()
        return files_containing(root, paths, word, **how)

    monkeypatch.setattr(containing_module, "files_containing", reading)
    names = [f"{number}" for number in range(2 * READ_AT_ONCE)]
    for name in names:
        (tmp_path / name).write_text("word" if int(name) % 3 else "words")
    try:
        files, unread = await find_containing(tmp_path, names, "word", most_s=0.05)
    finally:
        disk.set()
    assert {"50", "60", "99"} <= set(unread)
    assert files == [name for name in names if int(name) % 3 and name not in unread]


@pytest.mark.parametrize(
    ("data", "word", "contained"),
    [
        (b"x = foo(1)", "foo", True),
        (b"foo", "foo", True),
        (b"food _foo foo2 foo_", "foo", False),
        (b"food foo", "foo", True),
        (b"$foo", "foo", True),
        ("a∈foo→b".encode(), "foo", True),
        ("été".encode(), "été", True),
        ("été".encode("latin-1"), "été", True),
        ("\ufefffoo".encode("utf-16-le"), "foo", True),
        ("\ufefffood".encode("utf-16-be"), "foo", False),
        (b"bool operator==(X)", "operator==", True),
        (b"empty? or empty", "empty?", True),
        (b"aaaa a", "a", True),
        (b"foo", "", False),
    ],
)
async def test_candidates_contain_the_word_as_a_word(tmp_path: Path, data: bytes, word: str, contained: bool) -> None:
    (tmp_path / "f").write_bytes(data)
    assert files_containing(tmp_path, ["f"], word, encoding="latin-1") == (["f"] if contained else [])


async def test_candidates_for_a_part_of_a_word_need_no_ends(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("def get_name(): ...")
    (tmp_path / "g").write_text("nothing")
    assert files_containing(tmp_path, ["f", "g"], "et_na", whole=False) == ["f"]
    assert files_containing(tmp_path, ["f", "g"], "et_na") == []


def test_files_that_can_not_be_read_are_none_and_pipes_never_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(50_000_000)
    (tmp_path / "a").write_text("x")
    assert files_containing(tmp_path, ["pipe", "huge", "missing", "a"], "x") == ["a"]
    assert files_lacking(tmp_path, ["huge", "missing", "a"], "y") == ["a"]
