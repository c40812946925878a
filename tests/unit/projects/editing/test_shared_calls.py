"""A call that two servers with one database are sent is made by one of them, or the other says that it can't know."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from serena_central.core.errors import NotReady, OutcomeUnknown
from serena_central.core.events import EventBus
from serena_central.editing.journal import Entry, Step
from serena_central.files.text import digest_of
from serena_central.projects.editing import shared_calls
from serena_central.projects.editing.shared_calls import SharedCalls
from serena_central.store.rows import EditRow
from serena_central.store.store import Store

pytestmark = pytest.mark.anyio

NEW = b"new\n"


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_calls, "WAIT_S", 0.01)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    store = Store(tmp_path / "db", EventBus(), shared=True)
    async with anyio.create_task_group() as tasks:
        await tasks.start(store.run)
        yield store
        tasks.cancel_scope.cancel()


def entry(file: Path, edit: str = "e-1", repeat: str | None = "k") -> Entry:
    return Entry(edit, [Step(str(file), digest_of(b"old\n"), digest_of(NEW), None, None)], b"", repeat)


async def checked(calls: SharedCalls, one: Entry) -> None:
    await anyio.to_thread.run_sync(calls.check, one)


async def test_one_server_makes_a_call_and_the_other_learns_from_the_files_that_it_did(
    store: Store, tmp_path: Path
) -> None:
    one, other, file = SharedCalls(store, "f1"), SharedCalls(store, "f2"), tmp_path / "a.py"
    file.write_bytes(b"old\n")
    assert await other.earlier("k") is None
    await checked(one, entry(file))
    with pytest.raises(OutcomeUnknown, match=r"e-1 by the front f1.*a\.py"):
        await checked(other, entry(file, "e-2"))
    with pytest.raises(OutcomeUnknown, match="new call"):
        await other.earlier("k")
    file.write_bytes(NEW)
    assert await other.earlier("k") == ["This edit was already made as e-1, by the front f1. It was not repeated."]
    file.write_bytes(b"changed by somebody since\n")
    with pytest.raises(OutcomeUnknown):
        await other.earlier("k")
    store.writer.put(
        EditRow(id="e-1", at=1, call="c", tool="t", session="s", project_root="/", repeat="k", answer='["as it was"]')
    )
    await store.writer.flush()
    assert await other.earlier("k") == ["as it was"]


async def test_a_call_that_was_rolled_back_may_be_made_by_any_and_again_by_its_own(
    store: Store, tmp_path: Path
) -> None:
    one, other, file = SharedCalls(store, "f1"), SharedCalls(store, "f2"), tmp_path / "a.py"
    await checked(one, entry(file))
    await checked(one, entry(file, "e-2"))  # planned once more: files changed meanwhile
    await anyio.to_thread.run_sync(lambda: one.ended(entry(file), applied=False))  # late: e-2 stands
    with pytest.raises(OutcomeUnknown):
        await checked(other, entry(file, "e-3"))
    await anyio.to_thread.run_sync(lambda: one.ended(entry(file, "e-2"), applied=False))
    assert await other.earlier("k") is None
    await checked(other, entry(file, "e-3"))
    with pytest.raises(OutcomeUnknown, match="f2"):
        await checked(one, entry(file, "e-4"))


async def test_what_was_sent_to_a_node_is_known_there_alone(store: Store, tmp_path: Path) -> None:
    one, other = SharedCalls(store, "f1"), SharedCalls(store, "f2")
    assert await one.sent_to("k", "a") is None
    assert await other.earlier("k") is None  # its host's journal answers
    assert await other.sent_to("k", "b") == "a"
    with pytest.raises(OutcomeUnknown):
        await checked(other, entry(tmp_path / "a.py"))


async def test_without_its_database_no_server_makes_a_call_that_may_be_a_repetition(tmp_path: Path) -> None:
    calls = SharedCalls(Store(tmp_path / "no" / "db", EventBus(), shared=True), "f1")
    with pytest.raises(NotReady, match="Another front"):
        await calls.earlier("k")
    with pytest.raises(NotReady):
        await calls.sent_to("k", "a")
    with pytest.raises(NotReady):
        await checked(calls, entry(tmp_path / "a.py"))
    await checked(calls, entry(tmp_path / "a.py", repeat=None))  # nobody sends it again
