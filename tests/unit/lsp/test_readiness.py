import json
from typing import Any

import anyio
import msgspec
import pytest

from serena_central.core.progress import reporting_to
from serena_central.lsp.catalogue import Readiness
from serena_central.lsp.readiness import ReadinessTracker

pytestmark = pytest.mark.anyio

NEVER_S = 600.0


def progress(token: str, kind: str, **fields: Any) -> tuple[str, msgspec.Raw]:
    return "$/progress", raw({"token": token, "value": {"kind": kind, **fields}})


def raw(params: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(params).encode())


class Waiter:
    """Waits for readiness in a task; `answer` is what came, or ... while nothing did."""

    def __init__(self, tracker: ReadinessTracker) -> None:
        self.tracker = tracker
        self.answer: object = ...
        self.reports: list[tuple[str, float | None]] = []

    async def run(self) -> None:
        with reporting_to(lambda message, part: self.reports.append((message, part))):
            self.answer = await self.tracker.wait()


async def test_a_server_that_needs_no_wait_is_ready_at_once() -> None:
    tracker = ReadinessTracker(Readiness(), "S")
    tracker.start_clock()
    assert await tracker.wait() is None


async def test_progress_is_over_when_all_that_matches_has_ended_and_is_reported_meanwhile() -> None:
    spec = Readiness(kind="progress", titles=("Indexing",), grace_s=NEVER_S, cap_s=NEVER_S)
    tracker = ReadinessTracker(spec, "S")
    tracker.start_clock()
    waiter = Waiter(tracker)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.run)
            for step in (
                progress("1", "begin", title="indexing src"),
                progress("2", "begin", title="Indexing lib"),
                progress("3", "begin", title="Something else"),
                progress("1", "report", message="3/4", percentage=75),
                progress("1", "end"),
            ):
                await anyio.wait_all_tasks_blocked()
                tracker.hear(*step)
            await anyio.wait_all_tasks_blocked()
            assert waiter.answer is ...
            tracker.hear(*progress("2", "end"))
    assert waiter.answer is None
    assert ("S: indexing src 3/4", 0.75) in waiter.reports


async def test_a_server_that_begins_nothing_within_the_grace_is_ready() -> None:
    tracker = ReadinessTracker(Readiness(kind="progress", titles=("x",), grace_s=0.05, cap_s=NEVER_S), "S")
    tracker.start_clock()
    with anyio.fail_after(60):
        assert await tracker.wait() is None


async def test_a_capped_wait_gives_a_note_and_later_waits_do_not_wait_again() -> None:
    tracker = ReadinessTracker(Readiness(kind="progress", titles=("x",), grace_s=NEVER_S, cap_s=0.05), "S")
    tracker.start_clock()
    tracker.hear(*progress("1", "begin", title="x"))
    with anyio.fail_after(60):
        assert "S was still indexing (x)" in (await tracker.wait() or "")
        assert await tracker.wait()
        tracker.hear(*progress("1", "end"))
        assert await tracker.wait() is None


async def test_a_log_line_is_a_sign() -> None:
    tracker = ReadinessTracker(Readiness(kind="log", pattern=r"Found \d+ files", cap_s=NEVER_S), "S")
    tracker.start_clock()
    tracker.hear("window/logMessage", raw({"type": 3, "message": "Starting"}))
    waiter = Waiter(tracker)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.run)
            await anyio.wait_all_tasks_blocked()
            assert waiter.answer is ...
            tracker.hear("window/logMessage", raw({"type": 3, "message": "Found 12 files"}))
    assert waiter.answer is None


async def test_a_notification_can_take_readiness_back() -> None:
    spec = Readiness(kind="notification", method="x/status", field="quiet", value=True, cap_s=NEVER_S)
    tracker = ReadinessTracker(spec, "S")
    tracker.start_clock()
    tracker.hear("x/status", raw({"quiet": True}))
    assert await tracker.wait() is None
    tracker.hear("x/status", raw({"quiet": False}))
    waiter = Waiter(tracker)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.run)
            await anyio.wait_all_tasks_blocked()
            assert waiter.answer is ...
            tracker.hear("x/status", raw({"quiet": True}))
    assert waiter.answer is None


async def test_a_server_that_works_only_once_a_document_is_open_is_waited_for_from_there_on() -> None:
    spec = Readiness(kind="progress", titles=("x",), grace_s=NEVER_S, cap_s=0.05, after_open=True)
    tracker = ReadinessTracker(spec, "S")
    tracker.start_clock()
    with anyio.fail_after(60):
        assert await tracker.wait() is None
        tracker.start_clock(opened=True)
        assert await tracker.wait()


async def test_a_project_that_could_not_be_loaded_is_told_until_it_can() -> None:
    tracker = ReadinessTracker(Readiness(trouble=r"Load #\d+: err", cured=r"Load #\d+\s"), "S")
    tracker.hear("window/logMessage", raw({"type": 1, "message": "Load #1: err: no such\n\tmodule"}))
    assert await tracker.wait() == "S could not load everything: Load #1: err: no such module"
    tracker.hear("window/logMessage", raw({"type": 3, "message": "Something else"}))
    assert await tracker.wait()
    tracker.hear("window/logMessage", raw({"type": 3, "message": "Load #2\n"}))
    assert await tracker.wait() is None


async def test_a_status_that_says_trouble_is_told_with_its_message() -> None:
    spec = Readiness(kind="notification", method="x/status", field="quiet", value=True, trouble=r'"health":\s*"error"')
    tracker = ReadinessTracker(spec, "S")
    tracker.start_clock()
    tracker.hear("x/status", raw({"quiet": True, "health": "error", "message": "no manifest"}))
    assert await tracker.wait() == "S could not load everything: no manifest"
    tracker.hear("x/status", raw({"quiet": True, "health": "ok", "message": None}))
    assert await tracker.wait() is None


async def test_silence_up_to_the_cap_is_no_sign_where_the_grace_is_as_long() -> None:
    tracker = ReadinessTracker(Readiness(kind="log", pattern="Found", grace_s=0.05, cap_s=0.05), "S")
    tracker.start_clock()
    with anyio.fail_after(60):
        assert "S was still indexing" in (await tracker.wait() or "")
