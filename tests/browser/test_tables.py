"""Tables and plots with thirty live sessions: their order, their project, time that is as long as it was."""

import re
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import expect

from serena_central.store.rows import MemoryTotalRow, ToolCallRow
from serena_central.web.pages.table import PAGES
from tests.browser.conftest import OpenPage
from tests.browser.life import busy_server
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

SESSIONS = 30


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, patience_s=120) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    pass\n")
    return root


async def test_thirty_sessions_that_activated_nothing_have_their_project_on_every_page(
    central: RunningCentral, person: OpenPage, project: Path
) -> None:
    async with central.http() as http, person(central) as page:
        for number in range(SESSIONS):
            facts = {"client_name": f"agent-{number:02}", "working_folder": str(project)}
            session = (await http.post("/api/v1/sessions", json=facts)).json()["session_id"]
            asked = {"session": session, "arguments": {"relative_path": "."}}
            assert (await http.post("/api/v1/tools/list_dir", json=asked)).status_code == 200
        await expect(page.locator("#sessions tbody tr").first).to_contain_text("shop")
        assert "No project" not in await page.locator("#sessions").inner_text()
        await page.goto(f"{central.url}/dashboard/sessions?project=shop")
        await expect(page.locator("tbody tr")).to_have_count(SESSIONS)
        await page.get_by_role("link", name="agent-07").click()
        await expect(page.locator("#details dd").first).to_contain_text("shop")
        await page.goto(f"{central.url}/dashboard/projects/one?root={quote(str(project))}")
        count = page.locator("dt", has_text=re.compile("^Sessions$")).locator("xpath=following-sibling::dd")
        await expect(count).to_have_text(str(SESSIONS))


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_table_is_sorted_by_its_headings(
    central: RunningCentral, person: OpenPage, project: Path, scripts: bool
) -> None:
    async with central.http() as http, person(central, java_script_enabled=scripts) as page:
        for number, calls in enumerate((1, 3, 2)):
            session = (await http.post("/api/v1/sessions", json={"client_name": f"agent-{number}"})).json()[
                "session_id"
            ]
            for _ in range(calls):
                asked = {"session": session, "arguments": {"relative_path": ".", "project": str(project)}}
                assert (await http.post("/api/v1/tools/list_dir", json=asked)).status_code == 200
        await page.goto(f"{central.url}/dashboard/sessions?q=agent")
        names = page.locator("tbody th a")
        for heading, order, wanted in (
            ("Calls", "descending", ["agent-1", "agent-2", "agent-0"]),
            ("Calls", "ascending", ["agent-0", "agent-2", "agent-1"]),
            ("Client", "ascending", ["agent-0", "agent-1", "agent-2"]),
            ("Client", "descending", ["agent-2", "agent-1", "agent-0"]),
        ):
            await page.locator("thead").get_by_role("link", name=heading).click()
            column = page.get_by_role("columnheader", name=heading)
            await expect(column).to_have_attribute("aria-sort", order)
            await expect(names).to_have_text(wanted)
        assert "q=agent" in page.url
        await page.goto(f"{central.url}/dashboard/tools")
        await page.locator("thead").get_by_role("link", name="Effect").click()
        await page.wait_for_url("**/tools?sort=effect")
        effects = await page.locator("tbody td:nth-child(3)").all_inner_texts()
        assert effects == sorted(effects)
        assert len(set(effects)) > 1


async def test_time_without_values_is_as_long_as_it_was_and_durations_have_units(
    central: RunningCentral, person: OpenPage
) -> None:
    now, writer = time.time(), central.central.store.writer
    for ago in (*range(50, 45, -1), *range(8, 3, -1)):  # minutes
        since = int((now - 60 * ago) // 60) * 60
        writer.put(MemoryTotalRow(span=60, root="", since=since, memory_bytes=1 << 30))
        writer.put(ToolCallRow(id=f"c-{ago}", at=now - 60 * ago, session="s", tool="find_symbol", duration_ms=2345.0))
    await writer.flush()
    async with person(central) as page:
        await page.goto(f"{central.url}/dashboard/statistics")
        plot = page.locator("#plots figure", has_text="Memory of language servers")
        line = await plot.locator("path").first.get_attribute("d")
        assert line is not None
        begins = [float(x) for x in re.findall(r"M([\d.]+) ", line)]
        assert len(begins) == 2
        # The axis is 500 wide and an hour long: 42 minutes lie between the first moments of both.
        assert begins[1] - begins[0] == pytest.approx(500 * 42 / 60, abs=12)
        assert len(await plot.locator(".marks rect").all()) == 6  # five minutes are in three bins of two
        durations = await page.locator("#plots figure", has_text="Duration of calls").inner_text()
        assert re.search(r"\b4 s\b", durations)
        shown = await page.locator("#plots").inner_html()
        assert re.search(r"p50 2\.3\d s, p95 2\.3\d s", shown)
        assert "e+0" not in shown


async def test_every_table_of_every_page_is_sorted_by_links(tmp_path: Path, person: OpenPage) -> None:
    async with busy_server(tmp_path) as life, person(life.central, java_script_enabled=False) as page:
        log = life.central.central.dashboard.parts.places.log_file
        log.write_text("2026-09-21T12:00:00.000Z WARNING serena_central.pool: a slow disk [session=s-1]\n")
        sorted_tables: dict[str, int] = {}
        fixed: dict[str, list[str]] = {}
        for one in PAGES:
            await page.goto(life.address(one))
            tables = page.locator("main table:has(thead:not(.unseen))")
            for number in range(await tables.count()):
                table = tables.nth(number)
                if await table.locator("thead a[href]").count():
                    sorted_tables[one.path] = sorted_tables.get(one.path, 0) + 1
                else:
                    fixed.setdefault(one.path, []).append(await table.locator("thead").inner_text())
        assert fixed == {}
        new = {
            "/upstreams",
            "/usage",
            "/settings",
            "/tasks",
            "/plans",
            "/plans/{plan}",
            "/edits",
            "/events",
            "/usage/transcripts",
            "/configuration",
            "/events/log",
        }
        assert new <= sorted_tables.keys()
        await page.goto(f"{life.central.url}/dashboard/settings")
        await page.locator("thead a", has_text="From").first.click()
        await page.wait_for_url("**/settings?sort=from")
        origins = await page.locator("tbody td.origin").all_inner_texts()
        assert origins == sorted(origins, key=lambda origin: (origin == "default", origin))
        assert len(set(origins)) > 1
        # A search over events has what the server's log has, too.
        await page.goto(f"{life.central.url}/dashboard/events?q=slow+disk")
        await expect(page.locator("#log")).to_contain_text("a slow disk")
        await page.get_by_role("link", name="Search the server log").click()
        await expect(page.locator("#table tbody tr")).to_have_count(1)
        await page.get_by_label("Session").fill("s-2")
        await page.get_by_role("button", name="Search").click()
        await expect(page.locator("#table")).to_contain_text("No record matches")
