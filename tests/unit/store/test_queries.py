"""What the store answers: pages, filters, statistics, totals, and what it forgets."""

from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine

from serena_central.config.policies import RetentionPolicy
from serena_central.store.database import Database
from serena_central.store.queries import DAY_S, SWEEP_ROWS, Queries
from serena_central.store.query_results import CallFilter, DayTotal, EditFilter, EventFilter, TaskFilter, ToolStatistics
from serena_central.store.rows import (
    EditRow,
    EventRow,
    MemoryTotalRow,
    PlanRow,
    ServerRunRow,
    SessionRow,
    SymbolViewRow,
    ToolCallRow,
)
from serena_central.store.spans import MOST_BINS, SPANS_S, TimeRange, time_range
from serena_central.store.tables import METADATA
from tests.support.postgresql import url_for

QUARTER_S = 900

TOTALS_OF_A_CALL = 4
"""Of each span: of its tool or all, in its project or all; and as many of calls that took as long."""


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    path = tmp_path / "store.db"
    database = Database(path, url_for(path))
    yield database
    database.close()


def call(
    number: int, *, at: float = 0.0, tool: str = "find_symbol", ms: float = 1.0, outcome: str = "ok"
) -> ToolCallRow:
    return ToolCallRow(
        id=f"c-{number}", at=at, session="s", project="/p", tool=tool, duration_ms=ms, outcome=outcome, answer_chars=10
    )


def tool_statistics(queries: Queries, wanted: TimeRange, project: str = "") -> list[ToolStatistics]:
    totals = queries.tool_totals(wanted, project=project)
    return queries.with_percentiles_of_tools(wanted, totals, project=project)


def session(name: str, last_activity: float) -> SessionRow:
    return SessionRow(
        id=name,
        credential="d",
        era="modern",
        client_name="x",
        created_at=0.0,
        last_activity=last_activity,
        state="idle",
    )


def test_pages_of_events_follow_each_other_without_gap_or_repetition(database: Database) -> None:
    database.write([EventRow(seq=n, at=float(n), kind="a.b") for n in range(25)])
    queries = Queries(database)
    seen: list[int] = []
    before: int | None = None
    while True:
        page = queries.events(EventFilter(before=before, limit=10))
        seen += [event.seq for event in page.events]
        database.write([EventRow(seq=99, at=99.0, kind="a.b")])  # what comes meanwhile moves no page
        before = page.next_id
        if before is None:
            break
    assert seen == list(range(24, -1, -1))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (EventFilter(kind="session"), [1, 0]),
        (EventFilter(kind="session.ended"), [1]),
        (EventFilter(kind="sess"), []),
        (EventFilter(session="s-1"), [2, 0]),
        (EventFilter(project="/p", severity="error"), [3]),
    ],
)
def test_events_are_filtered(database: Database, wanted: EventFilter, found: list[int]) -> None:
    database.write(
        [
            EventRow(seq=0, at=0.0, kind="session.created", session="s-1"),
            EventRow(seq=1, at=0.0, kind="session.ended", session="s-2"),
            EventRow(seq=2, at=0.0, kind="sessions.other", session="s-1", project="/p"),
            EventRow(seq=3, at=0.0, kind="server.moved", project="/p", severity="error"),
        ]
    )
    assert [event.seq for event in Queries(database).events(wanted).events] == found


def test_statistics_of_a_tool_cover_the_range_alone(database: Database) -> None:
    at = 2.0 * QUARTER_S
    calls = [call(n, at=at, ms=float(n)) for n in range(1, 101)]
    for batch in (calls[:70], calls[70:]):
        database.write(batch)
    database.write([call(0, at=at - 1, ms=9999.0), call(200, at=at + 1, ms=0.0, tool="read_file", outcome="error")])
    day = TimeRange(at + 60, at + DAY_S, QUARTER_S, QUARTER_S)
    first, second = tool_statistics(Queries(database), day)
    assert (first.tool, first.calls, first.errors, first.answer_chars) == ("find_symbol", 100, 0, 1000)
    assert (first.average_ms, first.max_ms) == (50.5, 100.0)
    assert (first.p50_ms, first.p95_ms) == (pytest.approx(50, rel=0.1), pytest.approx(95, rel=0.1))
    assert (second.tool, second.calls, second.errors, second.p50_ms) == ("read_file", 1, 1, 0.0)
    assert len(tool_statistics(Queries(database), day._replace(since=0.0))) == 2
    assert tool_statistics(Queries(database), day._replace(since=at + QUARTER_S)) == []


@pytest.mark.parametrize("length_s", [3600.0, float(DAY_S), 7.0 * DAY_S])
def test_a_range_of_any_length_has_the_same_calls_by_time_tool_and_project(database: Database, length_s: float) -> None:
    now = 100.0 * DAY_S
    rows = [
        call(
            n,
            at=now - length_s * (n + 0.5) / 60,
            tool=("find_symbol", "read_file")[n % 2],
            outcome="error" if n % 3 else "ok",
        )
        for n in range(60)
    ]
    for row in rows[::4]:
        row.project = None
    database.write(rows)
    wanted, queries = time_range(now - length_s, now, now), Queries(database)
    for tool, project in (("", ""), ("find_symbol", ""), ("", "/p"), ("read_file", "/p"), ("find_symbol", "/p")):
        chosen = [row for row in rows if tool in ("", row.tool) and project in ("", row.project)]
        bins = queries.calls_over_time(wanted, tool=tool, project=project)
        assert sum(one.calls for one in bins) == len(chosen)
        assert sum(one.errors for one in bins) == sum(row.outcome == "error" for row in chosen)
        assert {one.at for one in bins} <= set(wanted.bins())
        assert len(wanted.bins()) <= MOST_BINS + 1
        found = tool_statistics(queries, wanted, project=project)
        assert sum(one.calls for one in found if tool in ("", one.tool)) == len(chosen)
    totals = queries.project_totals(wanted, tool="read_file")
    (project,) = queries.with_percentiles_of_projects(wanted, totals, tool="read_file")
    assert (project.tool, project.calls) == ("/p", sum(row.project == "/p" and row.tool == "read_file" for row in rows))


def test_memory_and_edits_of_a_range_are_by_its_bins_and_have_gaps(database: Database) -> None:
    now = 100.0 * DAY_S
    for ago, taken in ((30, 5), (40, 9), (50, 2), (600, 7)):
        since = int((now - ago) // 60) * 60
        database.write([MemoryTotalRow(span=60, root=root, since=since, memory_bytes=taken) for root in ("", "/p")])
    edits = [
        EditRow(id=f"e-{ago}", at=now - ago, call="c", tool="t", session="s", project_root="/p") for ago in (5, 6, 900)
    ]
    database.write(edits)
    wanted, queries = time_range(now - 2400, now, now), Queries(database)
    assert queries.memory_over_time(wanted) == [(now - 600, 7), (now - 60, 9)]
    assert queries.memory_over_time(wanted, root="/other") == []
    assert queries.edits_over_time(wanted) == [(now - 900, 1), (now - 60, 2)]
    assert queries.edits_over_time(wanted, tool="t", root="/p") == [(now - 900, 1), (now - 60, 2)]
    assert queries.edits_over_time(wanted, tool="other") == []


def test_totals_of_minutes_are_deleted_before_the_others(database: Database) -> None:
    now = 100.0 * DAY_S
    database.write([call(1, at=now - 3 * DAY_S), call(2, at=now - 60)])
    Queries(database).sweep(RetentionPolicy(), now=now)
    minutes = TimeRange(now - 4 * DAY_S, now, 60, 60)
    assert [one.calls for one in Queries(database).calls_over_time(minutes)] == [1]
    assert [one.calls for one in Queries(database).calls_over_time(minutes._replace(span_s=900, bin_s=900))] == [1, 1]


def test_totals_of_days_add_up_over_batches_and_outlive_their_calls(database: Database) -> None:
    database.write([call(1, at=10.0, ms=2.0), call(2, at=20.0, ms=3.0, outcome="error")])
    database.write([call(3, at=30.0, ms=4.0, tool="read_file"), call(4, at=DAY_S + 1.0)])
    queries = Queries(database)
    queries.sweep(RetentionPolicy(), now=100.0 * DAY_S)
    assert queries.totals_by_day() == [
        DayTotal(day="1970-01-01", calls=3, errors=1, answer_chars=30),
        DayTotal(day="1970-01-02", calls=1, errors=0, answer_chars=10),
    ]
    # Nothing else is left, by which a range of that time would be counted in part.
    assert (queries.tools_on_record(), queries.projects_on_record()) == ([], [])
    assert tool_statistics(queries, TimeRange(0.0, 2.0 * DAY_S, 3600, 3600)) == []


def test_sessions_are_taken_back_the_latest_first(database: Database) -> None:
    database.write([session("old", 1.0), session("a", 10.0), session("b", 20.0)])
    assert [row.id for row in Queries(database).sessions_since(5.0)] == ["b", "a"]
    assert Queries(database).session_of_conversation("none") is None


def test_calls_edits_and_views_are_found_by_their_session(database: Database) -> None:
    view = SymbolViewRow(
        session="s", project_root="/p", relative_path="a.py", name_path="A", body_hash="1", seen_at=1.0
    )
    edit = EditRow(id="e", at=1.0, call="c", tool="t", session="s", project_root="/p", files=[{"path": "a.py"}])
    database.write([call(1, at=1.0), call(2, at=2.0), view, edit])
    queries = Queries(database)
    assert [row.id for row in queries.calls_of_session("s", limit=1)] == ["c-2"]
    assert (queries.edits(EditFilter(session="s")), queries.symbol_views("s")) == ([edit], [view])


def test_a_sweep_deletes_what_is_old_and_nothing_else(database: Database) -> None:
    now = 100.0 * DAY_S
    old, fresh = now - 8 * DAY_S, now - 6 * DAY_S
    many = [EventRow(seq=n, at=now - 15 * DAY_S, kind="a.b") for n in range(SWEEP_ROWS + 1)]
    database.write([*many, EventRow(seq=-1, at=old, kind="a.b"), call(1, at=old), call(2, at=fresh)])
    run = {"server": "ty", "project_root": "/p", "started_at": old}
    database.write([session("old", old), session("fresh", fresh), ServerRunRow(id="on", **run)])
    database.write([ServerRunRow(id="over", ended_at=old, **run)])
    queries = Queries(database)
    # Those of minutes of both calls, and the others of the old one but for those of its day, which is not over.
    totals = 2 * TOTALS_OF_A_CALL * (2 + len(SPANS_S) - 2)
    assert queries.sweep(RetentionPolicy(), now) == SWEEP_ROWS + 1 + 3 + totals
    assert [event.seq for event in queries.events(EventFilter()).events] == [-1]
    assert [row.id for row in queries.calls_of_session("s")] == ["c-2"]
    assert [row.id for row in queries.sessions_since(0.0)] == ["fresh"]
    runs = select(METADATA.tables[ServerRunRow.table].columns.id)
    assert database.read(lambda connection: connection.execute(runs).scalars().all()) == ["on"]


def test_patches_that_undo_nothing_any_more_are_deleted_in_parts(database: Database) -> None:
    now = 100.0 * DAY_S
    times = [now - 2 * DAY_S + number for number in range(SWEEP_ROWS + 5)]
    rows = [
        EditRow(id=f"e-{at}", at=at, call="c", tool="t", session="s", project_root="/p", patches=b"x")
        for at in (*times, now - 60.0)
    ]
    database.write(rows)
    queries, asked = Queries(database), iter([True])
    columns = METADATA.tables[EditRow.table].columns
    kept = select(columns.at).where(columns.patches.is_not(None)).order_by(columns.at)
    queries.sweep(RetentionPolicy(), now, goes_on=lambda: next(asked, False))
    assert database.read(lambda connection: connection.execute(kept).scalars().all()) == [*times[-5:], now - 60.0]
    queries.sweep(RetentionPolicy(), now)
    assert database.read(lambda connection: connection.execute(kept).scalars().all()) == [now - 60.0]


def test_a_plan_that_waits_for_a_person_is_kept_however_long_it_waits(database: Database) -> None:
    plan = {"at": 1.0, "name": "p", "project_root": "/p"}
    over = PlanRow(id="p-over", state="done", ended_at=2.0, **plan)
    database.write([PlanRow(id="p-waits", state="waiting", **plan), over])
    queries = Queries(database)
    queries.sweep(RetentionPolicy(), now=100.0 * DAY_S)
    assert [one.id for one in queries.plans(TaskFilter())] == ["p-waits"]


@pytest.mark.sqlite
def test_a_sweep_looks_for_old_rows_while_others_can_write(database: Database) -> None:
    old = {"session": "s", "project_root": "/p"}
    database.write([call(1, at=1.0), EventRow(seq=1, at=1.0, kind="a.b"), session("old", 1.0)])
    database.write([EditRow(id="e", at=1.0, call="c", tool="t", patches=b"x", **old)])
    database.write([MemoryTotalRow(span=SPANS_S[0], root="/p", since=0, memory_bytes=1)])
    holding, held = False, list[str]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal holding
        if statement.startswith("BEGIN"):
            holding = statement == "BEGIN IMMEDIATE"
        elif holding:
            held.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        Queries(database).sweep(RetentionPolicy(), now=100.0 * DAY_S)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert {statement.split()[0] for statement in held} == {"UPDATE", "DELETE"}
    assert [statement for statement in held if "SELECT" in statement] == []


@pytest.mark.sqlite
def test_a_sweep_gives_space_back(database: Database, tmp_path: Path) -> None:
    database.write([EventRow(seq=n, at=0.0, kind="a.b", message="x" * 2000) for n in range(1000)])
    Queries(database).sweep(RetentionPolicy(), now=100.0 * DAY_S)
    database.close()
    assert (tmp_path / "store.db").stat().st_size < 500_000


@pytest.mark.sqlite
def test_what_undid_an_edit_is_found_by_an_index(database: Database) -> None:
    undoings = (("e-1", None), ("e-2", "e-1"), ("e-3", "e-2"))
    database.write(
        [EditRow(id=n, at=1.0, call="c", tool="t", session="s", project_root="/p", undoes=of) for n, of in undoings]
    )
    assert Queries(database).undoings(["e-1"]) == [("e-1", "e-2"), ("e-2", "e-3")]
    plan = database.read(
        lambda connection: connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT id FROM edit WHERE undoes IN ('e-1', 'e-2')"
        ).all()
    )
    assert "ix_edit_undoes" in str(plan)


@pytest.mark.parametrize("length_s", [300.0, 3600.0, 5 * 3600.0, float(DAY_S), 3.0 * DAY_S, 7.0 * DAY_S, 30.0 * DAY_S])
def test_stretches_cover_a_range_once_and_by_the_longest_spans_that_fit(length_s: float) -> None:
    now = 100.0 * DAY_S + 12_345.0
    wanted = time_range(now - length_s, now, now)
    stretches = wanted.stretches()
    assert stretches[0][1] == int(wanted.since // wanted.span_s) * wanted.span_s
    assert stretches[-1][2] >= wanted.until > stretches[-1][2] - wanted.span_s
    assert all(before[2] == after[1] for before, after in pairwise(stretches))
    for span, start, end in stretches:
        assert start % span == end % span == 0 < end - start
        assert all(longer % span == 0 for longer in SPANS_S if longer > span)
        # No longer span, from which on ranges are read by it, would have fit in.
        assert not any(-(-start // longer) * longer + longer <= end for longer in SPANS_S if longer > span)


def test_a_sweep_ends_when_it_is_stopped_and_the_next_one_deletes_the_rest(database: Database) -> None:
    now = 100.0 * DAY_S
    database.write([call(number, at=1000.0 * number) for number in range(20)])
    queries, asked = Queries(database), iter([True] * 3)
    assert queries.sweep(RetentionPolicy(), now=now, goes_on=lambda: next(asked, False)) == 20  # the calls alone
    everything = TimeRange(0.0, now, SPANS_S[3], SPANS_S[3])
    assert sum(one.calls for one in queries.calls_over_time(everything)) == 20
    queries.sweep(RetentionPolicy(), now=now)
    assert queries.calls_over_time(everything) == []


def test_events_are_searched_for_words_in_a_range_of_time_page_by_page(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.store.list_queries.EVENTS_SEARCHED", 10)
    texts = {3: "Broken PIPE", 28: "Broken PIPE"}
    database.write(
        [
            EventRow(seq=n, at=float(n), kind="call.finished", message=texts.get(n, ""), data={"n": f"x{n}"})
            for n in range(30)
        ]
    )
    queries = Queries(database)
    first = queries.events(EventFilter(words="broken  pipe"))
    assert ([one.seq for one in first.events], first.searched_to) == ([28], 20.0)
    second = queries.events(EventFilter(words="broken pipe", before=first.next_id))
    assert (second.events, second.searched_to) == ([], 10.0)
    third = queries.events(EventFilter(words="broken pipe", before=second.next_id))
    assert ([one.seq for one in third.events], third.next_id, third.searched_to) == ([3], None, None)
    assert [one.seq for one in queries.events(EventFilter(words="x2_")).events] == []  # no wildcards
    assert [one.seq for one in queries.events(EventFilter(words="finished X27")).events] == [27]
    database.write([EventRow(seq=30, at=4.5, kind="server.moved", server="ty", project="/src/shop", message="idle")])
    assert [one.seq for one in queries.events(EventFilter(words="TY")).events] == [30]
    inside = queries.events(EventFilter(since=5.0, until=8.0))
    assert ([one.seq for one in inside.events], inside.next_id) == ([7, 6, 5], None)
    assert queries.events(EventFilter(since=100.0)).events == []
    assert queries.events(EventFilter(until=0.0)).events == []


def test_what_happened_in_a_session_belongs_to_whose_it_was_then(database: Database) -> None:
    """An id may be taken by another one, when the first session is forgotten."""
    mine = session("main", 9.0)
    mine.credential, mine.created_at = "user:bob:1", 5.0
    database.write([mine])
    database.write([call(1, at=1.0), call(2, at=6.0)])
    for at in (1.0, 6.0):
        own = ToolCallRow(id=f"m-{at}", at=at, session="main", project="/p", tool="t", duration_ms=1.0)
        edit = EditRow(id=f"e-{at}", at=at, call="c", tool="t", session="main", project_root="/p")
        database.write([own, edit, EventRow(seq=1, at=at, kind="a.b", session="main")])
    queries = Queries(database)
    for owner, times in (("user:bob:1", [6.0]), ("user:ada:1", []), (None, [6.0, 1.0])):
        calls = [one.call.at for one in queries.calls(CallFilter(owner=owner)) if one.call.session == "main"]
        edits = [one.at for one in queries.edits(EditFilter(owner=owner))]
        events = [one.at for one in queries.events(EventFilter(owner=owner)).events]
        assert (calls, edits, events) == (times, times, times)
    assert queries.is_owner("user:bob:1", "main", 6.0)
    assert not queries.is_owner("user:bob:1", "main", 1.0)
    assert not queries.is_owner("user:ada:1", "main", 6.0)
