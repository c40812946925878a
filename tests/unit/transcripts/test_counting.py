"""The rules of counting, each on transcripts in the clients' own form."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.audit import STREAMED, Audit
from serena_central.transcripts.counting import update
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import UsageRow, report, session_usage
from serena_central.transcripts.requests import MALFORMED, NO_TIME, REPEATED, TOO_LONG, UNKNOWN
from serena_central.transcripts.roots import roots_of
from tests.support.transcripts import claude, codex, codex_meta, codex_turn, failed, gemini, written

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


class User:
    """A home folder with transcripts, and the usage store that they are read into."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        self.claude = home / ".claude" / "projects" / "-home-u-shop"
        self.codex = home / ".codex" / "sessions" / "2026" / "11" / "01"
        self.gemini = home / ".gemini" / "tmp" / "shop"
        self.store = UsageStore(home / "usage.db")

    def read(self) -> int:
        """Reads what is new; how many bytes that were."""
        return update(self.store, roots_of(self.home, {}), Prices()).bytes_read

    def total(self) -> UsageRow:
        self.read()
        return report(self.store, "day", zone=UTC, now=NOW).total

    def by(self, key: Any) -> dict[str, UsageRow]:
        self.read()
        return {row.key: row for row in report(self.store, key, zone=UTC, now=NOW).rows}

    def dropped(self) -> list[tuple[int, str]]:
        return [(row.line, row.reason) for row in Audit(roots_of(self.home, {})).rows()]


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    one = User(tmp_path)
    yield one
    one.store.close()


def test_the_rates_of_the_document(user: User) -> None:
    """REQ-JSONL-005: Sonnet 4.5, for a million tokens: input $3, output $15, cache writes $3.75, reads $0.30."""
    written(user.claude / "s-1.jsonl", claude("m", input=100_000, output=50_000, write=40_000, read=50_000))
    assert round(user.total().cost, 4) == round(0.1 * 3 + 0.05 * 15 + 0.04 * 3.75 + 0.05 * 0.3, 4) == 1.215


def test_what_is_cached_for_an_hour_costs_twice_the_input(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("m", input=0, output=0, write=100_000, hour=60_000))
    assert round(user.total().cost, 4) == round(0.04 * 3.75 + 0.06 * 6, 4)


def test_rows_of_one_answer_count_once_and_the_last_one_wins(user: User) -> None:
    rows = [claude("m", output=size, at=f"2026-11-01T10:00:0{size % 7}.000Z") for size in (1, 3, 120)]
    written(user.claude / "s-1.jsonl", *rows)
    total = user.total()
    assert (total.requests, total.input, total.output) == (1, 10, 120)
    assert user.dropped() == [(2, STREAMED), (3, STREAMED)]


def test_a_row_that_lacks_counts_does_not_take_them_away(user: User) -> None:
    whole, partial = claude("m", read=500), claude("m", output=200, at="2026-11-01T10:00:05.000Z")
    del partial["message"]["usage"]["cache_read_input_tokens"]
    written(user.claude / "s-1.jsonl", whole, partial)
    total = user.total()
    assert (total.output, total.cache_read) == (200, 500)


@pytest.mark.parametrize("apart", [False, True], ids=["in one reading", "in two"])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("whole", "hour"), [(100_000, 100_000), (100_000, 60_000), (120_000, 0)])
def test_a_row_that_does_not_tell_how_long_the_cache_keeps_what_it_wrote_adds_nothing(
    user: User, apart: bool, order: int, whole: int, hour: int
) -> None:
    rough, exact = claude("m", input=0, output=1, write=100_000), claude("m", input=0, output=1, write=whole, hour=hour)
    del rough["message"]["usage"]["cache_creation"]
    for row in [rough, exact][::order]:
        written(user.claude / "s-1.jsonl", row)
        if apart:
            user.read()
    total = user.total()
    assert total.cache_write == whole
    assert round(total.cost, 4) == round((whole - hour) / 1e6 * 3.75 + hour / 1e6 * 6 + 15 / 1e6, 4)


def test_the_same_message_of_two_requests_counts_twice(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("msg_1", request="req_1"), claude("msg_1", request="req_2"))
    assert user.total().requests == 2


def test_without_request_ids_a_message_is_known_by_its_session(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("msg_0", request=None), claude("msg_0", request=None))
    written(user.claude / "s-2.jsonl", claude("msg_0", request=None, session="s-2"))
    assert user.total().requests == 2


def test_what_a_resumed_session_copies_counts_once(user: User) -> None:
    rows = [claude("msg_1"), claude("msg_2", request="req_2")]
    written(user.claude / "s-1.jsonl", *rows)
    copies = [dict(row, sessionId="s-2") for row in rows]
    written(user.claude / "s-2.jsonl", *copies, claude("msg_3", request="req_3", session="s-2"))
    assert user.total().requests == 3
    assert [reason for _, reason in user.dropped()] == [REPEATED, REPEATED]


def test_sub_agents_count_and_what_they_replay_of_their_parent_does_not(user: User) -> None:
    parent = claude("msg_01ABCDEFGHIJKLMNOPQRSTUV")
    written(user.claude / "s-1.jsonl", parent)
    replayed = dict(parent, isSidechain=True, agentId="a1", requestId="req_9")
    own = claude("msg_01ZZZZZZZZZZZZZZZZZZZZZZ", agent="a1", request="req_2", attributionAgent="Explore")
    written(user.claude / "s-1" / "subagents" / "agent-a1.jsonl", replayed, own)
    assert {key: row.requests for key, row in user.by("agent").items()} == {"(main conversation)": 1, "Explore": 1}


def test_a_replay_that_is_read_first_leaves_the_request_to_its_own_conversation(user: User) -> None:
    parent = claude("msg_01ABCDEFGHIJKLMNOPQRSTUV", session="s-9")
    written(user.claude / "a" / "subagents" / "agent-a1.jsonl", dict(parent, isSidechain=True, agentId="a1"))
    user.read()
    written(user.claude / "s-9.jsonl", parent)
    assert {key: row.requests for key, row in user.by("agent").items()} == {"(main conversation)": 1}


def test_older_versions_wrote_what_sub_agents_do_into_their_parents_transcript(user: User) -> None:
    inner = claude("msg_1")
    progress = {"type": "progress", "sessionId": "s-1", "cwd": "/home/u/shop", "data": {"type": "agent_progress"}}
    progress["data"] |= {"agentId": "a1", "message": {key: inner[key] for key in ("message", "timestamp", "requestId")}}
    written(user.claude / "s-1.jsonl", progress)
    assert user.by("agent")["a1"].output == 100


@pytest.mark.parametrize("first", ["/home/u/shop", "/home/u/shop/frontend"])
def test_a_session_is_of_the_project_that_its_transcript_is_filed_under_wherever_its_shell_is(
    user: User, first: str
) -> None:
    folders = [first, "/home/u/shop/frontend", "/home/u/shop/.claude/worktrees/a"]
    rows = [claude(f"m{n}", request=f"req_{n}", cwd=cwd) for n, cwd in enumerate(folders)]
    written(user.claude / "s-1.jsonl", *rows)
    assert {key: row.requests for key, row in user.by("project").items()} == {"/home/u/shop": 3}


@pytest.mark.parametrize("order", [1, -1])
def test_a_session_is_of_the_project_in_which_it_began(user: User, order: int) -> None:
    """Where the folders of transcripts do not tell: its shell went elsewhere, or the client is another one."""
    times = ["2026-11-01T10:00:00.000Z", "2026-11-01T11:00:00.000Z", "2026-11-02T11:00:00.000Z"]
    folders = ["/home/u/shop", "/home/u/tmp", "/home/u/shop/frontend"]
    rows = [claude(f"m{n}", request=f"req_{n}", at=at, cwd=folders[n]) for n, at in enumerate(times)]
    written(user.claude.parent / "p" / "s-1.jsonl", *rows[::order])
    turns = [codex_turn(), codex((1000, 0, 50)), codex_turn(cwd="/home/u/shop/api"), codex((2000, 0, 70))]
    written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), *turns)
    assert {key: row.requests for key, row in user.by("project").items()} == {"/home/u/shop": 5}
    later = report(
        user.store, "project", since=datetime(2026, 11, 2, tzinfo=UTC), now=datetime(2026, 11, 3, tzinfo=UTC)
    )
    assert [(row.key, row.requests) for row in later.rows] == [("/home/u/shop", 1)]
    assert {one.project for one in session_usage(user.store)} == {"/home/u/shop"}


def test_codexs_counts_are_cumulative_and_repeated(user: User) -> None:
    counts = [codex((1000, 400, 50)), codex((1000, 400, 50)), codex((3000, 1400, 80))]
    written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), codex_turn(), *counts)
    total = user.total()
    assert (total.requests, total.input, total.cache_read, total.output) == (2, 1600, 1400, 80)
    assert round(total.cost, 4) == round((1600 * 1.25 + 1400 * 0.125 + 80 * 10) / 1e6, 4)


def test_codex_counts_again_from_the_start_after_a_compaction(user: User) -> None:
    counts = [codex((5000, 0, 100)), codex((700, 0, 10), last=(700, 0, 10)), codex((900, 0, 15))]
    written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), codex_turn(), *counts)
    total = user.total()
    assert (total.input, total.output) == (5900, 115)


def test_codex_counts_again_from_the_start_past_where_it_was(user: User) -> None:
    again = codex((3000, 200, 90), last=(3000, 200, 90))
    counts = [codex((1000, 0, 50), last=(1000, 0, 50)), again, again, codex((3500, 200, 99), last=(500, 0, 9))]
    written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), codex_turn(), *counts)
    total = user.total()
    assert (total.requests, total.input, total.cache_read, total.output) == (3, 4300, 200, 149)


def test_a_forked_rollout_counts_what_it_adds(user: User) -> None:
    first = [codex((1000, 0, 50)), codex((2000, 0, 70))]
    written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), codex_turn(), *first)
    copied = [dict(one, timestamp="2026-11-01T15:00:00.000Z") for one in first]
    fork = [codex_meta("c-2", forked_from_id="c-1"), codex_meta("c-1"), codex_turn(), *copied, codex((2600, 0, 90))]
    written(user.codex / "rollout-2.jsonl", *fork)
    total = user.total()
    assert (total.requests, total.input, total.output) == (3, 2600, 90)


def test_a_model_without_known_prices_is_reported_and_never_free(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("m", model="homemade-1"), claude("n", request="req_2"))
    user.read()
    found = report(user.store, "model", zone=UTC, now=NOW)
    assert found.unknown_models == {"homemade-1": 1}
    assert {row.key: (row.unpriced, row.cost > 0) for row in found.rows} == {
        "homemade-1": (1, False),
        "claude-sonnet-4-5-20250929": (0, True),
    }


def test_a_second_run_reads_only_what_was_appended(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", claude("m"))
    assert user.read() == file.stat().st_size
    assert user.read() == 0
    before = file.stat().st_size
    written(file, claude("n", request="req_2"))
    assert user.read() == file.stat().st_size - before
    assert user.total().requests == 2


def test_codex_goes_on_where_it_was(user: User) -> None:
    file = written(user.codex / "rollout-1.jsonl", codex_meta("c-1"), codex_turn(), codex((1000, 0, 50)))
    user.read()
    written(file, codex((1500, 0, 60)))
    rows = user.by("model")
    assert rows["gpt-5-codex"].input == 1500
    assert rows["gpt-5-codex"].requests == 2


def test_a_line_that_is_half_written_is_read_when_it_is_whole(user: User) -> None:
    line = json.dumps(claude("m")).encode() + b"\n"
    file = written(user.claude / "s-1.jsonl", line[:200])
    assert user.total().requests == 0
    written(file, line[200:])
    assert user.total().requests == 1


def test_a_last_line_without_an_end_counts_once(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", json.dumps(claude("m"), separators=(",", ":")).encode())
    assert user.total().requests == 1
    written(file, b"\n", claude("n", request="req_2"))
    assert user.total().requests == 2


def test_a_file_that_another_one_replaced_is_read_from_its_start(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", claude("m"), claude("n", request="req_2"))
    user.read()
    file.unlink()
    written(file, b" " * 70 + b"\n", *(claude(f"o{n}", request=f"req_{n}o") for n in range(4)))
    assert user.total().requests == 6  # what was read stays


def test_a_file_that_was_rewritten_and_has_grown_is_read_from_its_start(user: User) -> None:
    """A line is removed from a session by hand, which goes on: its first bytes are as before, and it is longer."""
    file = written(user.claude / "s-1.jsonl", *(claude(f"m{n}", request=f"req_{n}") for n in range(10)))
    assert user.total().requests == 10
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[5:]))
    written(file, *(claude(f"m{n}", request=f"req_{n}") for n in range(10, 20)))
    assert user.total().requests == 20


def test_a_transcript_whose_first_bytes_are_those_of_the_one_it_replaced_is_read_from_its_start(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", *(claude(f"m{n}", request=f"req_{n}") for n in range(3)))
    user.read()
    size = file.stat().st_size
    file.unlink()
    written(file, *(claude(f"other{n}", request=f"req_o{n}") for n in range(5)))
    assert file.stat().st_size > size
    assert user.total().requests == 8  # what was read stays


def test_what_was_only_added_is_all_that_is_read(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", *(claude(f"m{n}", request=f"req_{n}") for n in range(100)))
    user.read()
    before = file.stat().st_size
    written(file, claude("n", request="req_n"))
    assert user.read() == file.stat().st_size - before


def test_pipes_and_deep_folders_among_transcripts_hold_nobody_up(user: User) -> None:
    chats = user.gemini / "chats"
    deep = chats.joinpath(*["d"] * 400)
    deep.mkdir(parents=True)
    for number, folder in enumerate((chats, deep)):
        message = gemini(f"m{number}", input=1, output=1)
        written(folder / f"session-{number}.jsonl", {"sessionId": f"gs-{number}"}, message)
    os.mkfifo(user.gemini / ".project_root")
    os.mkfifo(chats / "session-2.jsonl")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        found = user.by("project")
    finally:
        sys.setrecursionlimit(before)
    assert {name: row.requests for name, row in found.items()} == {"shop": 2}


def test_what_was_read_stays_when_the_client_deletes_it(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", claude("m"))
    before = user.total()
    file.unlink()
    assert user.total() == before


def test_faulty_lines_are_skipped_and_all_others_count(user: User) -> None:
    faulty = [
        b'{"message":{"usage":{"input_tokens": 1,\n',
        b'{"message":{"usage":{"input_tokens": "many"}}}\n',
        b"\x00" * 5000 + b'"usage":\x00\n',
        json.dumps(claude("w", request="req_w")).encode("utf-16") + b"\n",
        b'{"usage":\xff\xfe}\n',
        b"[" * 100_000 + b'"usage":\n',
    ]
    lines = [part for n, bad in enumerate(faulty) for part in (bad, claude(f"m{n}", request=f"req_{n}"))]
    written(user.claude / "s-1.jsonl", *lines)
    assert user.total().requests == len(faulty)
    assert {reason for _, reason in user.dropped()} == {MALFORMED, UNKNOWN}
    assert (1, MALFORMED) in user.dropped()
    assert (3, UNKNOWN) in user.dropped()


@pytest.mark.parametrize("number", [-1, 2**62, 2**63, 2**64, 10**400, 0.5, 1e308])
def test_a_number_that_can_only_be_damage_is_no_count(user: User, number: float) -> None:
    tokens = {"input": number, "output": 1}
    written(user.claude / "s-1.jsonl", claude("m"), claude("bad", request="req_2", input=number))  # type: ignore[arg-type]
    written(user.codex / "rollout-1.jsonl", codex_turn(), codex((number, 0, 1)), codex((10, 0, 100), (10, 0, 100)))  # type: ignore[arg-type]
    damaged = gemini("bad", input=1, output=1) | {"tokens": tokens}
    written(user.gemini / "chats" / "session-1.jsonl", gemini("g", input=10, output=100), damaged)
    assert [(row.requests, row.input, row.output) for row in user.by("client").values()] == [(1, 10, 100)] * 3
    assert user.dropped() == [(2, UNKNOWN)] * 3


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T23:59:59Z"])
def test_a_time_that_no_calendar_has_is_none(user: User, at: str) -> None:
    written(user.claude / "s-1.jsonl", claude("m"), claude("bad", request="req_2", at=at))
    assert user.total().requests == 1
    assert user.dropped() == [(2, NO_TIME)]


def test_faulty_lines_without_usage_are_counted_where_they_end_too_early(user: User) -> None:
    prompt = {"type": "user", "message": {"role": "user", "content": "Where is the cart?"}}
    file = user.claude / "s-1.jsonl"
    written(
        file, b"{broken\n", b"\n", b"  \r\n", prompt, b"\x00\x00\n", claude("m"), json.dumps(prompt).encode() + b" \r\n"
    )
    assert user.dropped() == [(1, MALFORMED), (5, MALFORMED)]
    done = update(user.store, roots_of(user.home, {}), Prices())
    assert (done.dropped, user.total().requests) == (2, 1)


def test_a_line_that_is_still_written_is_no_faulty_one(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", claude("m"), b'{"type":"user","mess')
    assert update(user.store, roots_of(user.home, {}), Prices()).dropped == 0
    written(file, b'age":"x"}\n', claude("n", request="req_2"))
    assert update(user.store, roots_of(user.home, {}), Prices()).dropped == 0
    assert (user.total().requests, user.dropped()) == (2, [])


@pytest.mark.slow
def test_a_line_of_100_mb_is_skipped_in_little_memory(user: User) -> None:
    huge = b'{"usage":"' + b"x" * 100_000_000 + b'"}\n'
    written(user.claude / "s-1.jsonl", claude("m"), huge, claude("n", request="req_2"))
    assert user.total().requests == 2
    assert user.dropped() == [(2, TOO_LONG)]


def test_tools_are_counted_with_their_failures_and_their_part_of_the_cost(user: User) -> None:
    rows = [
        claude("m", tools={"toolu_1": "Bash"}, output=1),
        claude("m", tools={"toolu_2": "mcp__github__search"}, output=200),
        failed("toolu_2"),
    ]
    written(user.claude / "s-1.jsonl", *rows)
    tools = user.by("tool")
    assert {key: (row.calls, row.failed) for key, row in tools.items()} == {
        "Bash": (1, 0),
        "mcp__github__search": (1, 1),
    }
    assert tools["Bash"].cost == pytest.approx(user.total().cost / 2)
    assert {key: row.calls for key, row in user.by("upstream").items()} == {"github": 1, "(client's own tools)": 1}


def test_a_tools_cost_says_that_it_lacks_calls_without_prices(user: User) -> None:
    rows = [
        claude("m", tools={"toolu_1": "Bash"}),
        claude("n", tools={"toolu_2": "Read"}, request="req_2", model="homemade"),
    ]
    written(user.claude / "s-1.jsonl", *rows)
    assert {key: row.unpriced for key, row in user.by("tool").items()} == {"Bash": 0, "Read": 1}


def test_lines_that_could_not_be_read_are_counted_in_later_runs_too(user: User) -> None:
    written(user.claude / "s-1.jsonl", b"{broken\n", claude("m"))
    user.read()
    written(user.claude / "s-2.jsonl", b"{broken\n")
    user.read()
    user.read()
    assert user.store.dropped() == 2


def test_a_failure_that_is_read_later_is_counted(user: User) -> None:
    file = written(user.claude / "s-1.jsonl", claude("m", tools={"toolu_1": "Bash"}))
    assert user.by("tool")["Bash"].failed == 0
    written(file, failed("toolu_1"))
    assert user.by("tool")["Bash"].failed == 1


def test_geminis_messages_are_written_again_and_count_once(user: User) -> None:
    tokens = {"input": 1000, "output": 20, "cached": 300, "thoughts": 5, "tool": 10, "total": 1035}
    message = {"id": "g-1", "timestamp": "2026-11-01T10:00:00.000Z", "type": "gemini", "tokens": tokens}
    message["model"] = "gemini-2.5-pro"
    call = {"id": "t-1", "name": "run_shell_command", "status": "error"}
    written(user.gemini / ".project_root", b"/home/u/shop")
    head = {"sessionId": "gs-1", "startTime": "2026-11-01T10:00:00.000Z"}
    written(user.gemini / "chats" / "session-1.jsonl", head, message, message | {"toolCalls": [call]})
    row = user.by("project")["/home/u/shop"]
    assert (row.requests, row.input, row.cache_read, row.output) == (1, 710, 300, 25)
    assert user.by("tool")["run_shell_command"].failed == 1


def test_older_chats_of_gemini_are_one_document(user: User) -> None:
    message = {"id": "g-1", "timestamp": "2026-11-01T10:00:00.000Z", "type": "gemini", "model": "gemini-2.5-pro"}
    message["tokens"] = {"input": 10, "output": 2}
    document = {"sessionId": "gs-1", "messages": [{"type": "user", "id": "u"}, message]}
    written(user.gemini / "chats" / "session-1.json", document)
    assert user.total().input == 10
    assert list(user.by("session")) == ["gs-1"]


def test_a_files_order_changes_no_total(user: User, tmp_path: Path) -> None:
    """The same rows, in files that are read in the opposite order, and in two runs."""
    rows = [claude("m", output=1), claude("m", output=90, at="2026-11-01T10:20:00.000Z")]
    written(user.claude / "a.jsonl", rows[0])
    written(user.claude / "b.jsonl", rows[1])
    other = User(tmp_path / "other")
    written(other.claude / "b.jsonl", rows[0])
    other.read()
    written(other.claude / "a.jsonl", rows[1])
    try:
        assert user.total() == other.total()
    finally:
        other.store.close()


def test_a_folder_whose_name_is_no_text_is_left_out_and_named(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("m"))
    written(user.claude.with_name(os.fsdecode(b"p-\xff")) / "s-2.jsonl", claude("n", request="req_2"))
    done = update(user.store, roots_of(user.home, {}), Prices())
    assert [one.endswith("its name is not UTF-8") for one in done.unreadable] == [True]
    assert user.total().requests == 1
    audit = Audit(roots_of(user.home, {}))
    assert (list(audit.rows()), audit.unreadable) == ([], done.unreadable)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(user: User) -> None:
    written(user.claude / "s-1.jsonl", claude("m"))
    closed = user.claude.with_name("closed")
    closed.mkdir(mode=0)
    done = update(user.store, roots_of(user.home, {}), Prices())
    closed.chmod(0o700)
    assert done.unreadable == [f"{closed}: Permission denied"]


def test_links_are_not_followed(user: User, tmp_path: Path) -> None:
    written(tmp_path / "elsewhere" / "s-1.jsonl", claude("m"))
    user.claude.mkdir(parents=True)
    (user.claude / "linked").symlink_to(tmp_path / "elsewhere")
    (user.claude / "s-1.jsonl").symlink_to(tmp_path / "elsewhere" / "s-1.jsonl")
    assert user.total().requests == 0


def test_several_folders_of_claude_code_are_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        written(tmp_path / name / "projects" / "p" / "s.jsonl", claude(name, request=f"req_{name}", session=name))
    listed = {"CLAUDE_CONFIG_DIR": f"{tmp_path / 'one'}, {tmp_path / 'two'}"}
    with UsageStore(tmp_path / "usage.db") as store:
        update(store, roots_of(tmp_path / "nobody", listed), Prices())
        assert report(store, "day", now=NOW).total.requests == 2
