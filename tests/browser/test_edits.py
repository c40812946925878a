"""People find an edit, undo it, and undo what a session did in the last hour, in a real browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

TEXT = (
    "class Cart:\n    def total(self) -> int:\n        return 0\n"
    + "".join(f"\n    def other_{number}(self) -> None: ...\n" for number in range(6))
    + "\n    def count(self) -> int:\n        return 0\n"
)


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}, patience_s=120) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
async def test_edits_are_found_read_and_undone(
    central: RunningCentral, person: OpenPage, tmp_path: Path, scripts: bool
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text(TEXT)
    async with (
        person(central, java_script_enabled=scripts) as page,
        central.raw("handshake", X_Serena_Project=str(root)) as client,
    ):
        for name in ("total", "count"):
            body = f"def {name}(self) -> int:\n        return 1"
            await client.call("replace_symbol_body", name_path=f"Cart/{name}", relative_path="cart.py", body=body)
        await client.call("create_text_file", relative_path="new.py", content="x = 1\n")
        await page.get_by_role("link", name="Edits", exact=True).click()
        rows = page.locator("#table tbody tr")
        await expect(rows).to_have_count(3)
        await page.get_by_label("Symbol").fill("total")
        if not scripts:
            await page.get_by_role("button", name="Search").click()
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Cart/total")
        await rows.get_by_text("Undo…").click()
        await rows.get_by_role("button", name="Undo").click()
        await expect(rows.first).to_contain_text("undo")
        assert "return 0" in (root / "cart.py").read_text().partition("def count")[0]
        await page.goto(f"{central.url}/dashboard")
        await page.get_by_role("link", name="raw 1").first.click()
        await page.get_by_text("Undo the last hour…").click()
        await page.locator("#undo-hour").get_by_role("button").click()
        if scripts:
            await expect(page.locator("#said")).to_contain_text("Undone: 2 edits")
        await expect(page.locator("#edits")).to_contain_text("undone by")
        assert (root / "cart.py").read_text() == TEXT
        assert not (root / "new.py").exists()
