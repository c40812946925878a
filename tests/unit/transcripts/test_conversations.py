"""Which conversation a session belongs to, over transcripts in the clients' own form."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.conversations import KnownCall, conversations_of
from serena_central.transcripts.counting import update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.roots import roots_of
from tests.support.transcripts import claude, written

AT = datetime(2026, 11, 1, 10, tzinfo=UTC).timestamp()
FIND = "mcp__serena-central__find_symbol"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two windows in one folder, which called the same tool, and one in another folder."""
    folder = tmp_path / ".claude" / "projects" / "p"

    def call(session: str, second: int, tool: str = FIND, cwd: str = "/home/u/shop") -> dict[str, object]:
        name = f"{session}-{second}"
        at = f"2026-11-01T10:00:{second:02}.000Z"
        return claude(name, request=name, session=session, at=at, cwd=cwd, tools={f"toolu_{name}": tool})

    written(folder / "one.jsonl", *(call("one", second) for second in (0, 20, 40)), call("one", 50, "Bash"))
    written(folder / "two.jsonl", call("two", 1), call("two", 30, "mcp__serena-central__read_file"))
    written(folder / "far.jsonl", *(call("far", second, cwd="/home/u/far") for second in (0, 20, 40)))
    return tmp_path


def found(home: Path, *calls: tuple[str, float], ids: tuple[str, ...] = ()) -> list[tuple[str, bool, int]]:
    with UsageStore(home / "usage.db") as store:
        roots = roots_of(home, {})
        update(store, roots, Prices())
        known = [KnownCall(tool, AT + second) for tool, second in calls]
        some = conversations_of(store, roots, ids, ["/home/u/shop"], known)
        return [(one.usage.session, one.named, one.calls) for one in some]


def test_the_conversation_is_the_one_whose_transcript_holds_the_calls(home: Path) -> None:
    assert found(home, ("find_symbol", 0.4), ("find_symbol", 20.4), ("find_symbol", 40.4)) == [("one", False, 3)]


def test_another_tool_or_another_time_is_another_call(home: Path) -> None:
    assert found(home, ("read_file", 0.4), ("find_symbol", 50.4), ("find_symbol", 3600)) == []


def test_two_windows_that_fit_alike_are_both_given(home: Path) -> None:
    assert {name for name, *_ in found(home, ("find_symbol", 0.5))} == {"one", "two"}


def test_a_conversation_that_the_client_named_needs_no_calls(home: Path) -> None:
    assert found(home, ids=("far", "unheard-of")) == [("far", True, 0)]


def test_after_clear_a_session_has_the_conversation_that_was_named_and_the_one_that_followed(home: Path) -> None:
    assert found(home, ("find_symbol", 20.4), ids=("two",)) == [("one", False, 1), ("two", True, 0)]


def test_nothing_is_known_of_a_session_without_calls_and_ids(home: Path) -> None:
    assert found(home) == []
