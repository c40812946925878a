"""People try tools: those that read at once, those that change something after they saw what. In a real browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_looks import violations
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}, patience_s=120) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_tool_that_edits_shows_its_diff_first(
    central: RunningCentral, person: OpenPage, tmp_path: Path, scripts: bool
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    async with (
        person(central, java_script_enabled=scripts, bypass_csp=True) as page,
        central.raw("handshake", X_Serena_Project=str(root)) as client,
    ):
        await client.call("list_dir", relative_path=".")
        await page.goto(f"{central.url}/dashboard/tools/find_symbol")
        await page.get_by_label("name_path_pattern").fill("Cart/total")
        await page.get_by_label("project", exact=False).first.select_option(str(root))
        await page.get_by_role("button", name="Call").click()
        await expect(page.locator("#answer")).to_contain_text("cart.py")
        await page.locator("#answer").get_by_role("link", name="call").click()
        await page.wait_for_url("**/calls/c-*")
        await page.goto(f"{central.url}/dashboard/tools/replace_content")
        for name, text in (("relative_path", "cart.py"), ("needle", "return 0"), ("repl", "return 1")):
            await page.locator(f"[name=arg-{name}]").fill(text)
        await page.locator("[name=arg-mode]").select_option("literal")
        await page.locator("[name=arg-project]").select_option(str(root))
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("#answer .added")).to_contain_text("return 1")
        assert "return 0" in (root / "cart.py").read_text()
        if scripts:
            assert await violations(page) == []
        await page.get_by_role("button", name="Call replace_content").click()
        await expect(page.locator("#answer")).to_contain_text("lines_added")
        assert "return 1" in (root / "cart.py").read_text()
