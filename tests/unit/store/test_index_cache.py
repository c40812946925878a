"""The cache gives back what it was given, and is thrown away rather than believed."""

import multiprocessing
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.store.cache_file import DAY_S, UNUSED_DAYS
from serena_central.store.index_cache import SCHEMA_VERSION, CachedFile, IndexCache


def file(path: str, blob: bytes = b"\x00\xff") -> CachedFile:
    return CachedFile(path, 1, 2**60, 3, 2**62, 5, "ty 0.1 abc", True, b"a\0b", blob)


@pytest.fixture
def cache(tmp_path: Path) -> IndexCache:
    return IndexCache(tmp_path, Path("/some/root"))


def test_files_are_saved_replaced_and_deleted(cache: IndexCache) -> None:
    assert cache.load() == []
    assert cache.save([file("a.py"), file("ü/b.py")])
    assert cache.save([file("a.py", b"new")], deletes=["ü/b.py", "never.py"])
    assert cache.load() == [file("a.py", b"new")]


def test_every_root_has_a_file_of_its_own(tmp_path: Path) -> None:
    IndexCache(tmp_path, Path("/a")).save([file("x")])
    assert IndexCache(tmp_path, Path("/b")).load() == []
    assert IndexCache(tmp_path, Path("/a")).load() == [file("x")]


def test_caches_of_roots_that_nobody_uses_any_more_are_deleted_when_there_is_another_one(tmp_path: Path) -> None:
    """Every worktree of an agent leaves one behind."""
    gone, read, fresh = (IndexCache(tmp_path, Path(root)) for root in ("/gone", "/read", "/fresh"))
    long_ago = time.time() - (UNUSED_DAYS + 1) * DAY_S
    for cache in (gone, read, fresh):
        cache.save([file("a.py")])
    for cache in (gone, read):
        os.utime(cache.path, (long_ago, long_ago))
    assert read.load() == fresh.load() == [file("a.py")]
    assert gone.path.exists()
    IndexCache(tmp_path, Path("/new")).save([file("a.py")])
    assert not gone.path.exists()
    assert read.load() == fresh.load() == [file("a.py")]


def test_another_version_of_the_schema_is_dropped(cache: IndexCache) -> None:
    cache.save([file("a.py")])
    with closing(sqlite3.connect(cache.path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert cache.load() == []
    assert cache.save([file("b.py")])
    assert cache.load() == [file("b.py")]


def test_a_file_that_is_no_database_is_dropped(cache: IndexCache) -> None:
    cache.path.write_bytes(b"no database at all" * 1000)
    assert cache.load() == []
    assert cache.save([file("a.py")])
    assert cache.load() == [file("a.py")]


def test_a_damaged_file_is_dropped_when_it_is_read(cache: IndexCache) -> None:
    cache.save([file(f"{n}.py", b"x" * 1000) for n in range(200)])
    content = bytearray(cache.path.read_bytes())
    content[3 * 4096 :] = b"\xa5" * (len(content) - 3 * 4096)
    cache.path.write_bytes(content)
    assert cache.load() == []
    assert cache.save([file("a.py")])
    assert cache.load() == [file("a.py")]


def test_a_folder_that_is_missing_is_an_empty_cache(tmp_path: Path) -> None:
    cache = IndexCache(tmp_path / "missing", Path("/a"))
    assert cache.load() == []
    assert not cache.save([file("a.py")])


def test_a_path_that_is_no_unicode_is_not_saved_and_does_no_harm(cache: IndexCache) -> None:
    cache.save([file("a.py")])
    assert not cache.save([file("\udcff.py")])
    assert cache.load() == [file("a.py")]


def save_many(folder: Path, name: str) -> None:
    for number in range(20):
        IndexCache(folder, Path("/a")).save([file(f"{name}{number}")])


def test_processes_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    IndexCache(tmp_path, Path("/a")).load()
    start = multiprocessing.get_context("spawn").Process
    processes = [start(target=save_many, args=(tmp_path, name)) for name in ("x", "y")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(IndexCache(tmp_path, Path("/a")).load()) == 40
