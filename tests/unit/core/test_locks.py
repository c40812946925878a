import anyio
import pytest
from anyio.lowlevel import checkpoint

from serena_central.core.locks import KeyedLocks, NotInTime

pytestmark = pytest.mark.anyio


async def _settle() -> None:
    """Lets every task run until it waits."""
    for _ in range(10):
        await checkpoint()


async def test_who_comes_first_is_served_first() -> None:
    locks, order = KeyedLocks(), list[int]()

    async def take(number: int) -> None:
        async with locks.holding(["a"]):
            order.append(number)
            await checkpoint()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, locks.holding(["a"]):
            for number in range(20):
                tasks.start_soon(take, number)
                await _settle()
            assert order == []
    assert order == list(range(20))
    assert not locks.queued("a")


async def test_who_gives_up_leaves_the_queue_and_others_keep_their_places() -> None:
    locks, order, scopes = KeyedLocks(), list[int](), dict[int, anyio.CancelScope]()

    async def take(number: int) -> None:
        with anyio.CancelScope() as scopes[number]:
            async with locks.holding(["a"]):
                order.append(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, locks.holding(["a"]):
            for number in range(4):
                tasks.start_soon(take, number)
                await _settle()
            scopes[0].cancel()
            scopes[2].cancel()
            await _settle()
    assert order == [1, 3]


async def test_a_wait_that_is_too_long_says_how_many_are_ahead_and_holds_nothing() -> None:
    locks = KeyedLocks()

    async def wait() -> None:
        async with locks.holding(["b"]):
            raise AssertionError

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, locks.holding(["b"]):
            tasks.start_soon(wait)
            await _settle()
            with pytest.raises(NotInTime) as failed:
                async with locks.holding(["a", "b"], until=anyio.current_time()):
                    raise AssertionError
            assert (failed.value.name, failed.value.ahead) == ("b", 2)
            tasks.cancel_scope.cancel()
    assert not locks.queued("a")
    assert not locks.queued("b")


async def test_two_that_want_the_same_locks_in_another_order_both_get_them() -> None:
    locks, done = KeyedLocks(), list[str]()

    async def take(*names: str) -> None:
        async with locks.holding(names):
            await checkpoint()
            done.append("".join(names))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(take, "a", "b")
                tasks.start_soon(take, "b", "a")
    assert len(done) == 40


async def test_further_locks_are_taken_only_if_all_are_free() -> None:
    locks = KeyedLocks()
    async with locks.holding(["a"]) as one, locks.holding(["b"]):
        assert not one.add_free(["b", "c"])
        assert not locks.queued("c")
        assert one.add_free(["a", "c"])
        assert locks.queued("c") == 1
    assert not locks.queued("a")
    assert not locks.queued("c")


async def test_relatives_take_over_each_other_s_locks_and_nobody_else_s() -> None:
    locks, order = KeyedLocks(), list[str]()

    async def wait() -> None:
        async with locks.holding(["a"]):
            order.append("waited")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, locks.holding(["other"]):
            async with locks.holding(["a", "b"]) as reserve:
                tasks.start_soon(wait)
                while locks.queued("a") < 2:
                    await checkpoint()
                part = reserve.relative()
                assert not part.add_free(["a", "other"])
                assert part.add_free(["a"])
                assert reserve.relative().add_free(["b", "c"])
                assert not locks.new_holder().add_free(["b"])
            assert locks.queued("a") == 2
            order.append("left")
            part.leave()
    assert order == ["left", "waited"]
