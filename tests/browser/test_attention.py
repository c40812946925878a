"""The overview says what needs attention, the worst first, and leads to where it is solved; also after a restart."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import running_central
from tests.support.scripted import SYMBOLS, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio


async def test_failures_come_first_missing_servers_stay_and_sessions_that_may_return_are_no_alarm(
    tmp_path: Path, person: OpenPage
) -> None:
    scripted_ty(tmp_path)
    shop = scripted_project(tmp_path, exit_at_start=3)
    slow = scripted_project(tmp_path, "slow", hang_on=[SYMBOLS])
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "main.zig").write_text("pub fn main() void {}\n")
    given = {"pool.breaker_failures": 2, "pool.read_retries": 0, "pool.restart_delay_s": 0.01}
    async with running_central(tmp_path, given) as central, central.http() as http, person(central) as page:
        facts = {"client_name": "codex", "working_folder": str(slow)}
        session = (await http.post("/api/v1/sessions", json=facts)).json()["session_id"]
        asked = {"session": session, "arguments": {"relative_path": ".", "project": str(slow)}}
        assert (await http.post("/api/v1/tools/list_dir", json=asked)).status_code == 200
        await expect(page.locator("#sessions")).to_contain_text("codex")
        # An index that is being filled is progress, which the projects' page shows.
        await expect(page.locator("#attention")).to_contain_text("No problems.")
        await page.goto(f"{central.url}/dashboard/projects")
        await expect(page.locator("tr", has_text="slow")).to_contain_text("1 wait")
        await page.goto(f"{central.url}/dashboard")
        elsewhere = {"arguments": {"relative_path": ".", "project": str(tools)}}
        assert (await http.post("/api/v1/tools/list_dir", json=elsewhere)).status_code == 200
        problems = page.locator("#attention li")
        await expect(problems.first).to_contain_text("zls, the language server for zig, is not installed")
        failing = {"name_path": "Cart/total", "relative_path": "cart.py", "project": str(shop)}
        for _ in range(2):
            await http.post("/api/v1/tools/find_referencing_symbols", json={"arguments": failing})
        await expect(problems.first).to_contain_text("failed 2 times", timeout=20_000)
        severities = [await one.get_attribute("class") for one in await problems.all()]
        assert severities == sorted(severities, key=["error", "warning"].index)
        assert len(set(severities)) == 2
        await problems.first.get_by_role("link").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("ty in shop")
        await expect(page.get_by_role("button", name="Close breaker")).to_be_visible()
    async with running_central(tmp_path, given) as central, person(central) as page:
        missing = page.locator("#attention li", has_text="zls")
        await expect(missing).to_be_visible()
        await expect(page.locator("#sessions .state.awaited").first).to_be_visible()
        await expect(page.locator("#sessions .state.disconnected")).to_have_count(0)
        await missing.get_by_role("link").click()
        await expect(page.locator("#missing")).to_contain_text("zls")
        await page.goto(f"{central.url}/dashboard/sessions/{session}")
        await expect(page.locator(".log")).to_contain_text("list_dir slow ok")
