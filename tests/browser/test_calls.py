"""People follow a call from where they see it, in a real browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"execute_shell": True}, patience_s=120) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


async def test_log_bars_and_events_lead_to_the_call(central: RunningCentral, person: OpenPage, project: Path) -> None:
    async with person(central) as page, central.raw("handshake", X_Serena_Project=str(project)) as client:
        await client.call("find_symbol", name_path_pattern="Cart/total", include_body=True)
        await page.get_by_role("link", name="raw 1").first.click()
        await page.locator(".log a").first.click()
        await page.wait_for_url("**/calls/c-*")
        call = page.locator("#call")
        await expect(call).to_contain_text("Cart/total")
        await expect(call).to_contain_text("return 0")
        await expect(call).to_contain_text("Answers of language servers")
        url = page.url
        await page.go_back()
        await page.locator(".timeline a").first.click()
        await page.wait_for_url(url)
        await page.get_by_role("link", name="Events", exact=True).click()
        await page.locator("#table tr", has_text="find_symbol").get_by_role("link", name="call", exact=True).click()
        await page.wait_for_url(url)


async def test_a_running_call_shows_its_main_argument_and_its_page_shows_its_end_by_itself(
    central: RunningCentral, person: OpenPage, project: Path
) -> None:
    async with person(central) as page, central.raw("handshake", X_Serena_Project=str(project)) as client:
        answers: list[str] = []

        async def work() -> None:
            answers.append(text_of(await client.call("execute_shell_command", command="sleep 60")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await expect(page.locator("#sessions")).to_contain_text("execute_shell_command sleep 60", timeout=20_000)
            await page.get_by_role("link", name="raw 1").first.click()
            await expect(page.locator("#running")).to_contain_text("sleep 60")
            await page.locator("#running").get_by_role("link", name="execute_shell_command").click()
            await expect(page.locator("#call .outcome")).to_have_text("running")
            await page.get_by_role("button", name="Cancel execute_shell_command").click()
        assert "cancelled by" in answers[0]
        await expect(page.locator("#call .outcome")).to_have_text("cancelled")
        await expect(page.locator("#call")).to_contain_text("Time by phase")


async def test_an_error_is_read_where_it_stands(central: RunningCentral, person: OpenPage, project: Path) -> None:
    async with person(central, java_script_enabled=False) as page:
        async with central.raw("handshake", X_Serena_Project=str(project)) as client:
            await client.ask("tools/call", {"name": "find_symbol", "arguments": {"depth": "deep"}})
        await page.goto(f"{central.url}/dashboard/events?kind=call&severity=warning")
        await expect(page.locator("#table")).to_contain_text("depth")
        await page.locator("#table").get_by_role("link", name="call", exact=True).first.click()
        await expect(page.get_by_role("region", name="Error")).to_contain_text("depth")
