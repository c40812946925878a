"""What a person typed into a form stays while the server is away, refuses it or fails, and the page says so."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}, patience_s=120) as running:
        yield running


@pytest.mark.parametrize("status", [None, 401, 403, 429, 500])
async def test_what_was_typed_stays_where_it_was_not_taken_and_the_page_says_why(
    central: RunningCentral, person: OpenPage, tmp_path: Path, status: int | None
) -> None:
    """Whoever answers in the server's place: a proxy in front of it has words of its own."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)

    async def refuse(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
        elif status is None:
            await route.abort()
        else:
            await route.fulfill(status=status, json={"error": {"message": f"<no> {status}"}})

    async with person(central) as page, central.raw("handshake", X_Serena_Project=str(root)) as client:
        await client.call("list_dir", relative_path=".")
        for path, field, button in (
            (f"projects/one/memory?root={root}&name=notes", "textarea[name=content]", "Save"),
            ("settings", '[id="setting-sessions.idle_after_s"] input[name=value]', "Save"),
            (f"projects/one/settings?root={root}", "#setting-max_answer_chars input[name=value]", "Save"),
            ("tools/find_symbol", "input[name=arg-name_path_pattern]", "Call"),
        ):
            address = f"{central.url}/dashboard/{path}"
            await page.goto(address)
            typed = page.locator(field)
            await typed.fill("4321")
            await page.route("**/*", refuse)
            await typed.locator("xpath=ancestor::form").get_by_role("button", name=button).click()
            await expect(page.locator("#said .failed")).to_contain_text(
                "did not answer. Copy what you typed" if status is None else f"<no> {status}"
            )
            await expect(typed).to_have_value("4321")
            assert page.url == address
            await page.unroute("**/*", refuse)
            await typed.locator("xpath=ancestor::form").get_by_role("button", name=button).click()
            await expect(page.locator("#said .failed")).to_have_count(0)
            assert not page.url.endswith(("/write", "/change", "/change-setting"))


async def test_of_two_tabs_that_change_one_memory_the_second_keeps_its_text_and_reads_why(
    central: RunningCentral, person: OpenPage, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)

    async def save(tab: Page, text: str) -> None:
        await tab.get_by_label("Markdown").fill(text)
        await tab.get_by_role("button", name="Save").click()

    async with person(central) as page, central.raw("handshake", X_Serena_Project=str(root)) as client:
        await client.call("write_memory", memory_name="notes", content="at first\n")
        address = f"{central.url}/dashboard/projects/one/memory?root={root}&name=notes"
        other = await page.context.new_page()
        for tab in (page, other):
            await tab.goto(address)
        await save(page, "of one\n")
        await expect(page.locator(".edits li")).to_have_count(2)
        await save(other, "of the other\n")
        await expect(other.locator("#said .failed")).to_contain_text("of one")
        await expect(other.get_by_label("Markdown")).to_have_value("of the other\n")
        await other.close()
