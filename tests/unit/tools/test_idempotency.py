"""A call that comes twice is made idempotency."""

import anyio
import pytest

from serena_central.core.errors import (
    CallCancelled,
    ClusterError,
    DirectoryUnavailable,
    EditConflict,
    HostUnavailable,
    NotReady,
    OutcomeUnknown,
    SerenaCentralError,
)
from serena_central.tools import idempotency as once_module
from serena_central.tools.answer import Answer
from serena_central.tools.idempotency import MOST_KEPT, Idempotency, idempotency_key

pytestmark = pytest.mark.anyio


class Calls:
    """Counts how often a call is really made."""

    def __init__(self) -> None:
        self.idempotency = Idempotency()
        self.idempotency.expect({"earlier": "e-1"}, complete=True)
        self.idempotency.recall({"earlier": ["answered before the restart"]})
        self.made = 0

    async def make(self, key: str = "k", *, error: Exception | None = None, changed: bool = False) -> str:
        async def work() -> Answer:
            self.made += 1
            if error is not None:
                raise error
            return Answer([f"answer {self.made}"])

        return (await self.idempotency.run(key, work, changed=lambda: ["e-2"] if changed else [])).blocks[0]


def once_after_start() -> Idempotency:
    idempotency = Idempotency()
    idempotency.expect({}, complete=True)
    return idempotency


async def test_a_repetition_gets_the_first_answer() -> None:
    calls = Calls()

    assert [await calls.make(), await calls.make(), await calls.make("other")] == ["answer 1", "answer 1", "answer 2"]


async def test_a_repetition_waits_for_a_call_that_still_runs() -> None:
    idempotency, release, answers = once_after_start(), anyio.Event(), list[str]()
    started = 0

    async def work() -> Answer:
        nonlocal started
        started += 1
        await release.wait()
        return Answer(["done"])

    async def call() -> None:
        answers.extend((await idempotency.run("k", work, changed=lambda: ["e-1"])).blocks)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert (started, answers) == (1, [])
            release.set()

    assert (started, answers) == (1, ["done"] * 3)


async def test_a_repetition_takes_the_place_of_a_call_that_was_cancelled() -> None:
    idempotency, blocked = once_after_start(), anyio.Event()
    first = anyio.CancelScope()

    async def never() -> Answer:
        blocked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def quick() -> Answer:
        return Answer(["made by the second"])

    answers: list[str] = []

    async def second() -> None:
        answers.extend((await idempotency.run("k", quick, changed=list)).blocks)

    async def call() -> None:
        with first:
            await idempotency.run("k", never, changed=list)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await blocked.wait()
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            first.cancel()

    assert answers == ["made by the second"]


@pytest.mark.parametrize("error", [DirectoryUnavailable("it restarts"), HostUnavailable("/src/app", "no node has it")])
async def test_a_cluster_that_can_not_place_a_project_now_may_later(error: SerenaCentralError) -> None:
    calls = Calls()
    with pytest.raises(ClusterError):
        await calls.make(error=error)
    assert await calls.make() == "answer 2"


async def test_a_refusal_is_an_answer_and_a_passing_failure_is_none() -> None:
    calls = Calls()
    conflict = EditConflict("f", "a.py", "somebody", "2026-01-01T00:00:00Z", None)
    for _ in range(2):
        with pytest.raises(EditConflict):
            await calls.make(error=conflict)
    assert calls.made == 1

    with pytest.raises(CallCancelled):
        await calls.make("k2", error=CallCancelled("gone"))
    assert await calls.make("k2") == "answer 3"


async def test_a_call_that_changed_something_and_failed_is_not_made_again() -> None:
    calls = Calls()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await calls.make(error=ZeroDivisionError(), changed=True)

    assert calls.made == 1


async def test_answers_are_forgotten_beyond_a_number_and_not_by_any_clock() -> None:
    calls = Calls()
    await calls.make()
    assert await calls.make() == "answer 1"

    for number in range(MOST_KEPT + 10):
        await calls.make(f"many {number}")
    assert await calls.make("many 0") != "answer 2"


async def test_a_call_that_was_cancelled_after_its_edit_is_not_made_again() -> None:
    idempotency, edited = once_after_start(), anyio.Event()

    async def work() -> Answer:
        edited.set()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(idempotency.run, "k", work, lambda: ["e-1"])
            await edited.wait()
            tasks.cancel_scope.cancel()

        again = await idempotency.run("k", work, list)
    assert "already made as e-1" in again.blocks[0]


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once_module, "RECALL_S", 0.01)


@pytest.mark.usefixtures("no_patience")
async def test_what_the_journal_knows_needs_no_store() -> None:
    idempotency = Idempotency()
    idempotency.expect({"made": "e-1", "unknown": OutcomeUnknown("e-2", ["/a.py"])}, complete=True)

    async def work() -> Answer:
        return Answer(["made now"])

    assert "already made as e-1" in (await idempotency.run("made", work, list)).blocks[0]
    with pytest.raises(OutcomeUnknown, match=r"e-2.*/a\.py"):
        await idempotency.run("unknown", work, list)
    assert (await idempotency.run("new", work, list)).blocks == ["made now"]


@pytest.mark.usefixtures("no_patience")
async def test_without_a_whole_journal_no_call_is_made_before_the_store_has_told() -> None:
    idempotency = Idempotency()
    idempotency.expect({}, complete=False)

    async def work() -> Answer:
        return Answer(["made now"])

    with pytest.raises(NotReady, match="Retry in a few seconds"):
        await idempotency.run("k", work, list)
    idempotency.expect({"k": "e-1"}, complete=True)
    idempotency.recall({})
    assert "already made as e-1" in (await idempotency.run("k", work, list)).blocks[0]
    assert (await idempotency.run("new", work, list)).blocks == ["made now"]


async def test_answers_of_the_run_before_are_known() -> None:
    calls = Calls()

    assert await calls.make("earlier") == "answered before the restart"
    assert calls.made == 0


def test_the_key_tells_sessions_requests_tools_and_arguments_apart() -> None:
    keys = {
        idempotency_key(session, request, tool, arguments)
        for session in ("s", "t")
        for request in ("c 1", "c '1'")
        for tool in ("a", "b")
        for arguments in ({"x": 1, "y": 2}, {"x": 2, "y": 1})
    }
    assert len(keys) == 16
    assert idempotency_key("s", "c", "t", {"x": 1, "y": 2}) == idempotency_key("s", "c", "t", {"y": 2, "x": 1})
