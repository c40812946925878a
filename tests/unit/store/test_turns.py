import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from serena_central.store.turns import LONGEST_REST_S, Turns


def test_a_rest_takes_as_long_as_the_part_before_it_and_no_longer_than_a_bound() -> None:
    now, ended = 0.0, threading.Event()
    rests: list[float] = []

    def wait(timeout: float | None = None) -> bool:
        nonlocal now
        assert timeout is not None
        now += timeout
        rests.append(timeout)
        return False

    ended.wait = wait  # type: ignore[method-assign]
    turns = Turns(ended, clock=lambda: now)
    for part_s in (0.0, 0.03, 60.0):
        now += part_s
        assert turns.goes_on()
    assert rests == [0.0, 0.03, LONGEST_REST_S]


def test_the_end_ends_a_rest() -> None:
    ended = threading.Event()
    clock = iter([0.0, 1e9, 1e9])
    turns = Turns(ended, clock=lambda: next(clock))
    ended.set()
    assert not turns.goes_on()


def test_who_waits_for_the_lock_gets_it_long_before_all_the_work_is_done(tmp_path: Path) -> None:
    path, ended, began = tmp_path / "x.db", threading.Event(), threading.Event()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE a (b)")

    def work() -> None:
        turns = Turns(ended)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            while turns.goes_on():
                connection.execute("BEGIN IMMEDIATE")
                began.set()
                time.sleep(0.02)
                connection.execute("COMMIT")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert began.wait(30)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
            for number in range(5):
                connection.execute("INSERT INTO a VALUES (?)", (number,))
    finally:
        ended.set()
        thread.join()
