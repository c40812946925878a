"""Events and statistics in the dashboard, over real HTTP and from a real database."""

import json
import re
import threading
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any
from urllib.parse import quote

import anyio
import msgspec
import pytest

from serena_central.core.event_kinds import StoreFailed
from serena_central.core.events import Severity
from serena_central.store.database import Database
from serena_central.store.query_results import DayTotal
from serena_central.store.rows import Removal, Row
from serena_central.web.pages import events, statistics
from serena_central.web.pages.listing import Option
from serena_central.web.pages.long_lists import LongPager
from serena_central.web.pages.page import Visit
from serena_central.web.pages.references import PageLink
from tests.support.browser import Visitor
from tests.support.central import RunningCentral
from tests.support.events import Happened, call_finished, edit_applied, project_opened, server_moved

pytestmark = pytest.mark.anyio

NOW = 1_790_000_000.0


def visit(central: RunningCentral, **query: str) -> Visit:
    return Visit(central.central.dashboard.parts, {}, query, NOW)


async def recorded(central: RunningCentral) -> None:
    """What was published is in the database."""
    await anyio.wait_all_tasks_blocked()  # the recorder has taken it
    await central.central.store.writer.flush()


async def test_an_event_in_the_table_exactly(central: RunningCentral) -> None:
    event = central.central.bus.publish(
        Happened(message="<b>", severity=Severity.WARNING, session="s-1", project="/src/shop", server="ty")
    )
    await recorded(central)
    (row,) = (shown := await events.table(visit(central, kind="server.happened"))).rows
    assert (shown.note, shown.filtered) == ("", True)
    assert shown.pager == LongPager(more_label="Older ›", first_label="‹ Newest", says=", the newest")
    assert row == events.EventLine(
        id=row.id,
        at=event.at,
        kind="server.happened",
        severity="warning",
        about=[PageLink("ty", ""), PageLink("s-1", ""), PageLink("shop", "")],
        text="<b>",
    )


async def test_events_without_words_tell_their_data_and_long_ones_are_cut(central: RunningCentral) -> None:
    bus = central.central.bus
    bus.publish(call_finished(outcome="error", error="SymbolNotFound", duration_ms=1500))
    bus.publish(project_opened(files=3, root="/src"))
    bus.publish(StoreFailed(message="x" * 10_000))
    await recorded(central)
    texts = [row.text for row in (await events.table(visit(central))).rows]
    assert texts == ["x" * events.MOST_TEXT + "…", "root /src, files 3", "find_symbol error, 1.5 s: SymbolNotFound"]


async def test_a_page_shows_the_newest_event_however_slow_the_disk_is(
    central: RunningCentral, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    turning, write, asked = threading.Event(), Database.write, anyio.Event()

    def slowly(database: Database, rows: Sequence[Row | Removal]) -> int:
        anyio.from_thread.run_sync(asked.set)
        assert turning.wait(30)
        return write(database, rows)

    monkeypatch.setattr(Database, "write", slowly)
    pages: list[str] = []

    async def look() -> None:
        pages.append(await visitor.see("/events?kind=edit"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            central.central.bus.publish(edit_applied(message="the newest"))
            tasks.start_soon(look)
            await asked.wait()
            await anyio.wait_all_tasks_blocked()
            assert pages == []
            turning.set()
    assert "the newest" in pages[0]


async def test_the_form_shows_what_was_chosen(central: RunningCentral) -> None:
    query = {"kind": "server.moved", "severity": "error", "project": "a&b", "range": "day"}
    shown = await events.filters(visit(central, **query, before="7"))
    assert [one.label for one in shown.ranges.links if one.chosen] == ["Last day"]
    assert msgspec.structs.replace(shown, ranges=None) == events.EventsFilters(  # type: ignore[arg-type]  # compared above
        words="",
        kinds=[
            Option("", "any", chosen=False),
            *(Option(kind, kind, chosen=False) for kind in events.SUBJECTS),
            Option("server.moved", "server.moved", chosen=True),
        ],
        severities=[
            Option("", "any", chosen=False),
            Option("info", "info", chosen=False),
            Option("warning", "warning", chosen=False),
            Option("error", "error", chosen=True),
        ],
        session="",
        project="a&b",
        export="/dashboard/events/export?kind=server.moved&project=a%26b&severity=error&range=day",
        log_url="/dashboard/events/log?project=a%26b&severity=error&range=day",
        ranges=None,  # type: ignore[arg-type]  # compared above
        range={"range": "day"},
        sort="",
    )


async def test_events_are_searched_for_words_and_in_a_range_of_time(central: RunningCentral, visitor: Visitor) -> None:
    central.central.bus.publish(edit_applied(message="the Broken pipe", project="shop"))
    central.central.bus.publish(edit_applied(message="a whole pipe", project="billing"))
    await recorded(central)
    found = await visitor.see("/events?q=pipe+BROKEN")
    assert "the Broken pipe" in found
    assert "a whole pipe" not in found
    assert 'value="pipe BROKEN"' in found
    assert "a whole pipe" in await visitor.see("/events?range=hour&kind=edit")
    assert "No event matches" in await visitor.see("/events?since=2020-01-01T00:00&until=2020-01-02T00:00")
    assert "No event matches" in await visitor.see("/events?q=%25")
    async with central.http() as http:
        (one,) = (await http.get("/api/v1/events", params={"q": "whole billing"})).json()["events"] or [None]
        assert one is None  # a project is no word of its event
        (one,) = (await http.get("/api/v1/events", params={"q": "whole"})).json()["events"]
        assert one["message"] == "a whole pipe"
    exported = (await visitor.http.get("/dashboard/events/export?q=whole&range=hour")).text
    assert exported.count("\n") == 1
    assert "a whole pipe" in exported


async def test_events_are_filtered_and_come_fifty_at_a_time(central: RunningCentral, visitor: Visitor) -> None:
    for number in range(120):
        central.central.bus.publish(edit_applied(message=f"number {number}", project="shop", session="s-1"))
    central.central.bus.publish(server_moved(message="elsewhere", severity=Severity.ERROR))
    page, seen = "/events?kind=edit&project=shop&session=s-1", list[int]()
    while page:
        html = await visitor.see(page)
        seen += map(int, re.findall(r'class="what">number (\d+)<', html))
        older = re.search(r'rel="next" href="/dashboard([^"]+)"', html)
        page = older[1].replace("&amp;", "&") if older else ""
    assert seen == list(range(119, -1, -1))
    assert "elsewhere" in await visitor.see("/events?severity=error")
    assert "No event matches" in await visitor.see("/events?session=nobody")


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("-when", lambda at, kind, about: at),
        ("kind", lambda at, kind, about: (kind, -at)),
        ("-kind", lambda at, kind, about: ([-ord(one) for one in kind], -at)),
        ("about", lambda at, kind, about: (about, -at)),
    ],
)
async def test_sorted_events_are_paged_by_their_place_while_others_are_added(
    central: RunningCentral, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, sort: str, order: Callable[..., Any]
) -> None:
    monkeypatch.setattr(events, "ROWS", 7)
    made: list[tuple[int, str, str]] = []

    def publish(number: int, about: str) -> None:
        if number % 3:
            central.central.bus.publish(edit_applied(message=f"number {number}", project=about, session="s-1"))
        else:
            central.central.bus.publish(server_moved(message=f"number {number}", project=about))

    for number in range(40):
        about = f"{'ab'[number % 2]}-{number % 5}"
        publish(number, about)
        kind, full = ("edit.applied", f" {about} s-1") if number % 3 else ("server.moved", f"ty {about} ")
        made.append((number, kind, full))
    page, seen, added = f"/events?severity=info&sort={sort}", list[int](), 1000
    while page:
        html = await visitor.see(page)
        seen += map(int, re.findall(r'class="what">number (\d+)<', html))
        older = re.search(r'rel="next" href="/dashboard([^"]+)"', html)
        page = unescape(older[1]) if older else ""
        if sort != "-when":  # those would follow at the end
            publish(added := added + 1, "c")
    assert seen == [number for number, *_ in sorted(made, key=lambda one: order(*one))]
    for nonsense in ("x", "[]", '["a",1,"",1e400]', "[1,2,3,4]", '["edit.applied",1,"",2]', "[[]]", "9" * 4000):
        await visitor.see(f"/events?sort={sort}&after={quote(nonsense)}")


async def test_sorted_events_come_from_memory_where_the_database_fails(
    central: RunningCentral, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        central.central.bus.publish(server_moved(message=f"number {number}"))
        central.central.bus.publish(edit_applied(message=f"number {3 + number}"))
    await recorded(central)
    monkeypatch.setattr(central.central.store.writer, "problem", "the disk is full")
    html = await visitor.see("/events?sort=kind")
    assert "only the newest: the disk is full" in html
    assert re.findall(r'class="what">number (\d+)<', html) == ["5", "4", "3", "2", "1", "0"]


async def test_the_export_has_every_event_that_matches_as_json_lines(
    central: RunningCentral, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PART", 7)
    for number in range(30):
        central.central.bus.publish(edit_applied(message=f"number {number}", project="<b>"))
    answer = await visitor.http.get("/dashboard/events/export?kind=edit&project=%3Cb%3E&severity=")
    assert "attachment" in answer.headers["content-disposition"]
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["message"] for line in lines] == [f"number {number}" for number in range(29, -1, -1)]
    monkeypatch.setattr(events, "MOST_EXPORTED", 10)
    *lines, last = (await visitor.http.get("/dashboard/events/export?kind=edit")).text.splitlines()
    assert len(lines) == 10
    assert "only the newest 10" in json.loads(last)["note"]
    visitor.http.cookies.clear()
    assert (await visitor.http.get("/dashboard/events/export")).status_code == 401


async def test_tools_are_counted_in_the_chosen_time_and_by_the_day(central: RunningCentral, visitor: Visitor) -> None:
    assert "No tool calls" in await visitor.see("/statistics")
    async with central.http() as http:
        for _ in range(3):
            await http.post("/api/v1/tools/list_projects", json={})
        await http.post("/api/v1/tools/read_file", json={"arguments": {"relative_path": "none"}})
    with anyio.fail_after(60):
        while "4</b> calls since" not in await visitor.see("/statistics"):  # it waits half a second for the database
            await anyio.sleep(0.1)
    for query in ("range=hour", "range=day", "range=week", "range=nonsense", "since=x&until=1e999"):
        html = (await visitor.see(f"/statistics?{query}")).replace("<wbr>", "")
        assert re.search(r">list_projects</a></th><td class=\"number\">3<", html)
        assert re.search(r"(?s)>read_file</a></th>.*<td class=\"number bad\">1<", html)


def test_totals_are_of_all_days_and_the_plot_of_the_newest() -> None:
    old = DayTotal(day="2020-01-01", calls=5, errors=1, answer_chars=10)
    today = DayTotal(day="2026-09-21", calls=2, errors=0, answer_chars=3)
    shown = statistics.totalled([old, today], NOW)
    assert (shown.calls, shown.errors, shown.chars, shown.since) == (7, 1, 13, "2020-01-01")
    assert [mark.says for mark in shown.by_day.marks] == ["2 calls, 0 failed"]
    assert statistics.totalled([], NOW).by_day.empty
