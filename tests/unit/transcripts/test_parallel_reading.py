"""Reading in processes, with real ones."""

import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from serena_central.transcripts import parallel_reading
from serena_central.transcripts.parallel_reading import Job, Result, readings
from serena_central.transcripts.reading import Reading
from serena_central.transcripts.roots import roots_of, transcripts_in
from tests.support.transcripts import claude, codex, codex_meta, codex_turn, failed, written


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Thirty transcripts that are read in two processes."""
    monkeypatch.setattr(parallel_reading, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(parallel_reading, "MOST_PROCESSES", 2)
    folder = tmp_path / ".claude" / "projects" / "-home-u-shop"
    for number in range(29):
        lines = [claude(f"m-{number}", input=number, tools={f"t-{number}": "Bash"}), failed(f"t-{number}"), b"{torn\n"]
        written(folder / f"s-{number:02}.jsonl", *lines)
    rollout = tmp_path / ".codex" / "sessions" / "2026" / "11" / "01" / "rollout-a.jsonl"
    written(rollout, codex_meta("a"), codex_turn("gpt-5"), codex((100, 0, 10)))
    return [Job(found, None) for found in transcripts_in(roots_of(tmp_path, {}))]


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if parallel_reading.__name__ in child.cmdline()}


def _here(jobs: Sequence[Job], monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    monkeypatch.setattr(parallel_reading, "PARALLEL_BYTES", 1 << 60)
    with readings(jobs) as results:
        return [result for _, result in results]


def test_processes_read_what_is_read_without_them_in_the_same_order(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    with readings(jobs) as results:
        until = time.monotonic() + 30
        while len(_children()) < 2:  # the kernel lets a start return before the command line can be read
            assert time.monotonic() < until
        found = list(results)
    assert [job for job, _ in found] == jobs
    assert [result for _, result in found] == _here(jobs, monkeypatch)
    assert sum(len(result.requests) for _, result in found if isinstance(result, Reading)) == 30
    assert not _children()


def test_the_end_of_a_process_loses_nothing(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    with readings(jobs) as results:
        found = [next(results)]
        for child in _children():
            psutil.Process(child).kill()
        found += results
    assert [result for _, result in found] == _here(jobs, monkeypatch)


def test_no_process_is_left_when_the_reader_fails(jobs: list[Job]) -> None:
    def fails() -> None:
        with readings(jobs) as results:
            next(results)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not _children()


def test_a_file_that_is_gone_is_an_error_and_the_others_are_read(jobs: list[Job]) -> None:
    Path(jobs[3].found.path).unlink()
    with readings(jobs) as results:
        found = [result for _, result in results]
    assert [number for number, one in enumerate(found) if isinstance(one, FileNotFoundError)] == [3]
    assert sum(isinstance(one, Reading) for one in found) == 29


def test_one_process_reads_on_from_where_another_stopped(jobs: list[Job]) -> None:
    with readings(jobs) as results:
        known = {job.found.path: result.file for job, result in results if isinstance(result, Reading)}
    path = Path(jobs[0].found.path)
    written(path, claude("m-new", input=7))
    root = jobs[0].found.root
    again = [Job(found, known.get(found.path)) for found in transcripts_in([root])]
    assert [job.found.path for job in again if job.is_due] == [str(path)]
    with readings(again) as results:
        new = [result for job, result in results if job.is_due]
    assert [request.input for one in new if isinstance(one, Reading) for request in one.requests] == [7]
