"""What templates get of language servers, exactly: made from a real pool over scripted servers."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from serena_central.app import Application
from serena_central.core.errors import LanguageServerError
from serena_central.pool.key_history import Measured
from serena_central.pool.snapshot import ServerSnapshot
from serena_central.web.pages import server, servers
from serena_central.web.pages.listing import ROWS, Option, Pager, paged
from serena_central.web.pages.page import Frame, Visit
from serena_central.web.pages.rendering import render
from serena_central.web.responses import NotFound
from serena_central.web.views import server_id
from tests.support.pools import PoolBox, hover, pool_box

pytestmark = pytest.mark.anyio

NOW = 2_000_000.0
BUDGET = 1000 << 20


@pytest.fixture
async def box(tmp_path: Path) -> AsyncGenerator[PoolBox]:
    async with pool_box(tmp_path / "pool", memory_budget_mb=1000) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()


def visit(central: Application, box: PoolBox, path: dict[str, str] | None = None, **query: str) -> Visit:
    return Visit(replace(central.dashboard.parts, pool=box.pool), path or {}, query, NOW)


def row_of(shown: ServerSnapshot) -> servers.ServerRow:
    """The row of an idle run that was measured."""
    name = server_id(shown.key)
    return servers.ServerRow(
        id=f"{name}-1",
        url=f"/dashboard/servers/{name}",
        name="fake",
        languages=", ".join(shown.languages),
        version=shown.version,
        project=shown.root.name,
        root=str(shown.root),
        state="idle",
        draining=False,
        reason="lease returned",
        run=1,
        pid=shown.pid,
        memory_bytes=shown.memory_bytes,
        share=round(100 * shown.memory_bytes / BUDGET, 1),
        cpu_percent=shown.cpu_percent,
        attached=0,
        leases=0,
        calls=1,
        restarts=0,
        started_at=round(NOW - 10),
        breaker=servers.Breaker("closed", 0, None, ""),
        holders=[],
        open_documents=1,
        processes=list(shown.processes),
    )


async def run_one(box: PoolBox, name: str = "a") -> ServerSnapshot:
    wanted = box.wanted(name)
    async with box.pool.lease(wanted) as one:
        await hover(one)
    box.clock.advance(10)
    await box.pool.sweep()
    return box.shown(wanted)


async def test_the_table_of_an_empty_pool(central: Application, box: PoolBox) -> None:
    assert await servers.table(visit(central, box)) == servers.ServersTable(
        servers.COLUMNS.headings(visit(central, box), "/servers"), [], Pager(0, 0, 0, "", ""), 0, 0, 0, BUDGET, 0.0
    )


async def test_a_server_in_the_table_and_on_its_page(central: Application, box: PoolBox) -> None:
    shown = await run_one(box)
    row = row_of(shown)
    share = row.share
    headings = servers.COLUMNS.headings(visit(central, box), "/servers")
    assert await servers.table(visit(central, box)) == servers.ServersTable(
        headings, [row], Pager(1, 1, 1, "", ""), 1, 1, shown.memory_bytes, BUDGET, share
    )
    at = {"server": server_id(shown.key)}
    assert await server.state(visit(central, box, at)) == server.State(at["server"], [row], runs_now=True)
    steps = (await server.history(visit(central, box, at))).steps
    assert [(step.run, step.source, step.to, step.reason) for step in steps] == [
        (1, "connecting", "idle", "initialized"),
        (1, "disconnected", "connecting", "lease asked"),
    ]
    measured = box.pool.history(shown.key).measured
    assert await server.load(visit(central, box, at)) == server.plots(list(measured), NOW)
    assert measured[-1].memory_bytes > 1_000_000


async def test_a_server_whose_start_fails_again_and_again_is_shown_as_given_up(
    central: Application, box: PoolBox
) -> None:
    wanted = box.wanted("a")
    box.scripts["a"] = {"exit_at_start": 3}
    for _ in range(box.pool.policy.give_up_after):
        with pytest.raises(LanguageServerError):
            async with box.pool.lease(wanted):
                pass
    (row,) = (await servers.table(visit(central, box))).rows
    assert (row.breaker.state, row.breaker.failures) == ("given up", box.pool.policy.give_up_after)
    assert row.breaker.opens_until is None


async def test_servers_are_chosen_by_state_language_and_words(central: Application, box: PoolBox) -> None:
    await run_one(box, "one")
    two = await run_one(box, "two")
    await box.pool.stop(two.key, "for this test")

    async def seen(**query: str) -> list[str]:
        return [row.project for row in (await servers.table(visit(central, box, **query))).rows]

    assert await seen() == ["one", "two"]
    assert await seen(state="idle") == ["one"]
    assert await seen(q="TWO fake") == ["two"]
    assert await seen(language=two.languages[0]) == ["one", "two"]
    assert await seen(language="cobol") == []
    assert (await servers.filters(visit(central, box, q="x", language="cobol"))).languages == [
        Option("", "any", chosen=False),
        *(Option(language, language, chosen=False) for language in sorted(two.languages)),
        Option("cobol", "cobol", chosen=True),
    ]


async def test_a_server_that_nobody_knows_has_no_page(central: Application, box: PoolBox) -> None:
    for make in (server.state, server.load, server.history, server.last_words):
        with pytest.raises(NotFound, match="no longer shown"):
            await make(visit(central, box, {"server": "none"}))


def test_plots_of_nothing_and_of_little_say_so() -> None:
    assert server.plots([], NOW).memory.empty
    one = server.plots([Measured(NOW - 60, 3 << 20, 50.0)], NOW)
    assert one.memory.says == "Memory: newest memory 3 MiB; at most 3 MiB"
    assert one.cpu.says == "CPU (percent of one core): newest CPU 50; at most 50"


def test_the_minutes_that_a_server_was_stopped_are_a_gap_in_its_plots() -> None:
    ran = [*range(600, 300, -5), *range(60, 0, -5)]
    shown = server.plots([Measured(NOW - ago, 3 << 20, 50.0) for ago in ran], NOW)
    assert shown.memory.lines[0].path.count("M") == 2
    before, after = (mark.x for mark in shown.memory.marks[59:61])
    assert after - before == pytest.approx(500 * 245 / 900, abs=1)


async def test_long_tables_come_in_pages_that_keep_the_filters(central: Application, box: PoolBox) -> None:
    rows, pager = paged(range(120), visit(central, box, q="x", page="2"), "/servers")
    assert list(rows) == list(range(50, 100))
    assert pager == Pager(51, 100, 120, "/dashboard/servers?q=x&page=1", "/dashboard/servers?q=x&page=3")
    rows, pager = paged(range(120), visit(central, box, page="99"), "/servers")
    assert (len(rows), pager.after) == (20, "")
    for nonsense in ("x", "-1", "0", "9" * 99, "²"):
        assert paged(range(120), visit(central, box, page=nonsense), "/servers")[1].first == 1


async def test_a_full_table_of_servers_leaves_room_for_the_rest_of_a_small_page(
    central: Application, box: PoolBox
) -> None:
    one = msgspec.structs.replace(
        row_of(await run_one(box)),
        name="typescript-language-server",
        languages="typescript, javascript",
        project="some-project-of-ours",
        root="/home/developer/src" + "/company" * 100,
        memory_bytes=1000 << 20,
        calls=123_456,
    )
    headings = servers.COLUMNS.headings(visit(central, box), "/servers")
    table = servers.ServersTable(
        headings, [one] * ROWS, Pager(1, ROWS, ROWS, "", ""), ROWS, ROWS, 1 << 30, 8 << 30, 12.0
    )
    frame = Frame("", "", "", "", live=True, assets="", navigation=[])
    assert len(render("servers/_table.html", page=frame, section=table).encode()) <= 42_000
