"""A call that comes twice is made once."""

import anyio
import pytest

from serena_central.core.errors import CallCancelled, EditConflict
from serena_central.tools.answer import Answer
from serena_central.tools.once import KEPT_S, MOST_KEPT, Once, repeat_key

pytestmark = pytest.mark.anyio


class Calls:
    """Counts how often a call is really made."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.once = Once(clock=lambda: self.now)
        self.once.recall({"earlier": ["answered before the restart"]})
        self.made = 0

    async def make(self, key: str = "k", *, error: Exception | None = None, changed: bool = False) -> str:
        async def work() -> Answer:
            self.made += 1
            if error is not None:
                raise error
            return Answer([f"answer {self.made}"])

        return (await self.once.run(key, work, changed=lambda: changed)).blocks[0]


async def test_a_repetition_gets_the_first_answer() -> None:
    calls = Calls()

    assert [await calls.make(), await calls.make(), await calls.make("other")] == ["answer 1", "answer 1", "answer 2"]


async def test_a_repetition_waits_for_a_call_that_still_runs() -> None:
    once, release, answers = Once(), anyio.Event(), list[str]()
    once.recall({})
    started = 0

    async def work() -> Answer:
        nonlocal started
        started += 1
        await release.wait()
        return Answer(["done"])

    async def call() -> None:
        answers.extend((await once.run("k", work, changed=lambda: True)).blocks)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            assert (started, answers) == (1, [])
            release.set()

    assert (started, answers) == (1, ["done"] * 3)


async def test_a_repetition_takes_the_place_of_a_call_that_was_cancelled() -> None:
    once, blocked = Once(), anyio.Event()
    once.recall({})
    first = anyio.CancelScope()

    async def never() -> Answer:
        blocked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def quick() -> Answer:
        return Answer(["made by the second"])

    answers: list[str] = []

    async def second() -> None:
        answers.extend((await once.run("k", quick, changed=lambda: False)).blocks)

    async def call() -> None:
        with first:
            await once.run("k", never, changed=lambda: False)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await blocked.wait()
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            first.cancel()

    assert answers == ["made by the second"]


async def test_a_refusal_is_an_answer_and_a_passing_failure_is_none() -> None:
    calls = Calls()
    conflict = EditConflict("f", "a.py", "somebody", None, None)
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


async def test_answers_are_forgotten_after_a_while_and_beyond_a_number() -> None:
    calls = Calls()
    await calls.make()
    calls.now += KEPT_S + 1
    await calls.make("later")
    assert await calls.make() == "answer 3"

    for number in range(MOST_KEPT + 10):
        await calls.make(f"many {number}")
    assert await calls.make("many 0") != "answer 4"


async def test_answers_of_the_run_before_are_known() -> None:
    calls = Calls()

    assert await calls.make("earlier") == "answered before the restart"
    assert calls.made == 0


def test_the_key_tells_sessions_requests_tools_and_arguments_apart() -> None:
    keys = {
        repeat_key(session, request, tool, arguments)
        for session in ("s", "t")
        for request in ("c 1", "c '1'")
        for tool in ("a", "b")
        for arguments in ({"x": 1, "y": 2}, {"x": 2, "y": 1})
    }
    assert len(keys) == 16
    assert repeat_key("s", "c", "t", {"x": 1, "y": 2}) == repeat_key("s", "c", "t", {"y": 2, "x": 1})
