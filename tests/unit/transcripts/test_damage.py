"""Transcripts with any damage: nothing fails, and what is whole counts exactly."""

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.audit import STREAMED, Audit
from serena_central.transcripts.blame import author_of
from serena_central.transcripts.counting import update
from serena_central.transcripts.messages import messages
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import By, report, session_usage
from serena_central.transcripts.requests import REPEATED
from serena_central.transcripts.roots import Root, roots_of, transcripts_in
from serena_central.transcripts.search import search
from tests.support.transcripts import claude, codex, codex_meta, codex_turn, failed, gemini, written

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)

PRICES = Prices()

WHOLE = 5
"""Requests that are whole in each transcript: each took 10 tokens in and 3 out."""

COUNTED_ONCE = (STREAMED, REPEATED)

Line = dict[str, Any]


def claude_lines() -> list[Line]:
    return [
        claude(f"m{n}", request=f"r{n}", session="whole", output=3, tools={f"t{n}": "Bash"}) | {"uuid": f"u{n}"}
        for n in range(WHOLE)
    ]


def codex_lines() -> list[Line]:
    counts = [codex((10 * n, 0, 3 * n), (10, 0, 3)) for n in range(1, WHOLE + 1)]
    return [codex_meta("whole"), codex_turn(), *counts]


def gemini_lines() -> list[Line]:
    return [{"sessionId": "whole"}, *(gemini(f"g{n}", input=10, output=3) for n in range(WHOLE))]


CLAUDE_DAMAGED = [
    claude("d", session="damaged", tools={"t": "Bash"}, agent="a", costUSD=0.5),
    failed("t", session="damaged"),
    {"type": "summary", "summary": "Looked.", "leafUuid": "u"},
    {
        "type": "progress",
        "sessionId": "damaged",
        "cwd": "/x",
        "data": {"type": "agent_progress", "message": claude("p")},
    },
]
CODEX_DAMAGED = [
    codex_meta("damaged", forked_from_id="other"),
    codex_turn(),
    codex((7, 3, 2), (7, 3, 2)),
    {
        "timestamp": "2026-11-01T10:00:00Z",
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "call_id": "c", "arguments": '{"a": "x"}'},
    },
    {
        "timestamp": "2026-11-01T10:00:00Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
    },
    {
        "type": "event_msg",
        "payload": {"type": "x", "item": {"type": "CommandExecution", "id": "c", "status": "failed"}},
    },
]
GEMINI_DAMAGED = [
    {"sessionId": "damaged"},
    gemini("d", input=7, output=2)
    | {"content": "There.", "toolCalls": [{"id": "t", "name": "ls", "status": "error", "args": {"a": "x"}}]},
    {"type": "user", "id": "u", "timestamp": "2026-11-01T10:00:00Z", "content": [{"text": "Where?"}]},
    {"$set": {"messages": [gemini("s", input=1, output=1)]}},
]

FORMS: dict[str, tuple[Path, Callable[[], list[Line]], list[Line]]] = {
    "claude-code": (Path(".claude/projects/-home-u-shop"), claude_lines, CLAUDE_DAMAGED),
    "codex": (Path(".codex/sessions/2026/11/01"), codex_lines, CODEX_DAMAGED),
    "gemini": (Path(".gemini/tmp/shop/chats"), gemini_lines, GEMINI_DAMAGED),
}
NAMES = {"claude-code": "{}.jsonl", "codex": "rollout-2026-11-01T10-00-00-{}.jsonl", "gemini": "session-{}.jsonl"}

ODD_NUMBERS = [0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400, 0.5, -0.0, 1e308]
ODD_TEXTS = [
    "", "\0", "\ud800", "\udfff\ud800", "\x1b[31m", "ä" * 5, "/" * 3, "..", "a\nb", "NaN", "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00", "1969-12-31T23:59:59Z", "2026-11-01", "2026-11-01T10:00:00+99:99", "x" * 5000,
]  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(ODD_NUMBERS),
    st.sampled_from(ODD_TEXTS),
    st.integers(),
    st.floats(),
    st.text(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


Place = tuple[Any, ...]


def places(value: Any, path: Place = ()) -> list[tuple[Place, Any]]:
    """All values in a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path, value), *(place for key, one in inner for place in places(one, (*path, key)))]


def replaced(value: Any, path: Place, new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def records(draw: st.DrawFn, originals: list[Line]) -> bytes:
    """A record with other values, as JSON."""
    record: Any = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 3))):
        path, old = draw(st.sampled_from(places(record)))
        like = ODD_NUMBERS if isinstance(old, int | float) else ODD_TEXTS if isinstance(old, str) else [old, [old]]
        record = replaced(record, path, draw(st.one_of(st.sampled_from(like), values)))
    return json.dumps(record, separators=(",", ":")).encode("utf-8", "surrogatepass")


def broken(line: bytes, how: str, at: int) -> bytes:
    """A line that is not JSON any more."""
    at %= len(line) - 2
    match how:
        case "cut":
            return line[: at + 1]
        case "begun late":
            return line[at + 1 :]
        case "zeroes":
            return line[: at + 1] + b"\0" * 300 + line[at + 1 :]
        case "utf-16":
            return line.decode("utf-8", "replace").encode("utf-16").replace(b"\n", b"")
        case "latin-1":
            return line[:-1] + b',"more":"\xe4\xf6\xff"'
        case _:
            return line[:-1] + b',"deep":' + b"[" * 3000


HOW = ["cut", "begun late", "zeroes", "utf-16", "latin-1", "deep"]

broken_lines = st.lists(st.tuples(st.sampled_from(HOW), st.integers(0, 10_000), st.integers(0, WHOLE)), max_size=8)


@pytest.mark.parametrize("client", FORMS)
def test_nothing_fails_and_what_is_whole_counts(client: str) -> None:
    folder, lines, originals = FORMS[client]

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(broken_lines, st.lists(records(originals), max_size=8), st.booleans())
    def check(breaks: list[tuple[str, int, int]], others: list[bytes], ended: bool) -> None:
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            file = home / folder / NAMES[client].format("whole")
            whole: list[Line | bytes] = list(lines())
            for how, at, place in breaks:
                original = json.dumps(originals[place % len(originals)], separators=(",", ":")).encode()
                whole.insert(len(whole) - place, broken(original, how, at).replace(b"\n", b"") + b"\n")
            written(file, *whole)
            other = home / folder / NAMES[client].format("damaged")
            written(other, b"\n".join(others) + b"\n" * ended)
            _check(home, file)

    check()


def test_a_document_with_any_damage_fails_nothing() -> None:
    folder, lines, originals = FORMS["gemini"]
    document = {"sessionId": "damaged", "messages": [originals[1], *lines()[1:]]}

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(records([document]), st.sampled_from(HOW), st.integers(0, 10_000), st.booleans())
    def check(record: bytes, how: str, at: int, breaks: bool) -> None:
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            file = written(home / folder / "session-whole.jsonl", *lines())
            content = broken(record, how, at) if breaks and len(record) > 2 else record
            written(file.with_name("session-damaged.json"), content)
            _check(home, file)

    check()


def _check(home: Path, whole: Path) -> None:
    """Asks all that reads transcripts."""
    roots = roots_of(home, {})
    with UsageStore(home / "usage.db") as store:
        update(store, roots, PRICES)
        total = {row.session: row for row in session_usage(store)}["whole"]
        assert (total.requests, total.input, total.output) == (WHOLE, 10 * WHOLE, 3 * WHOLE)
        found = [report(store, by, now=NOW) for by in get_args(By)]
        assert update(store, roots, PRICES).bytes_read == 0
        assert [report(store, by, now=NOW) for by in get_args(By)] == found
        known = store.files()
    for one in found:
        json.dumps([(row.key, row.cost, row.tokens) for row in one.rows], allow_nan=False).encode()
    audit = Audit(roots)
    dropped = list(audit.rows())
    assert audit.rows_read == len(audit.requests) + sum(1 for row in dropped if row.reason in COUNTED_ONCE)
    _read(roots)
    assert search(roots, known, "where").left == 0
    author_of(roots, Path("/home/u/shop/cart.py"), "x", known)


def _read(roots: list[Root]) -> None:
    for one in transcripts_in(roots):
        for message in messages(one):
            json.dumps([message.role, message.at, message.text, message.tool, message.call, message.given]).encode()
