"""People read what a plan did and cost, and undo one of its waves, in a real browser."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import running_central
from tests.support.tasks import over_plan, scripted, start_plan

pytestmark = pytest.mark.anyio


async def test_the_edits_of_a_wave_are_undone_and_those_of_the_others_stay(tmp_path: Path, person: OpenPage) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("x = 1\n")
    steps = {
        name: [{"call": "create_text_file", "arguments": {"relative_path": f"{name}.py", "content": "x = 1\n"}}]
        for name in ("first", "second", "third")
    }
    async with (
        running_central(tmp_path, scripted(tmp_path, steps), patience_s=120) as central,
        central.http() as http,
        person(central) as page,
    ):
        named = [{"name": name, "instruction": name} for name in steps]
        plan = {"name": "build", "waves": [{"tasks": named[:2]}, {"tasks": named[2:]}]}
        found = await over_plan(http, await start_plan(http, plan, root))
        assert found["state"] == "done"
        await page.get_by_role("link", name="Plans", exact=True).click()
        await page.get_by_role("link", name="build", exact=True).click()
        wave = page.get_by_role("region", name="Wave 1", exact=True)
        column = wave.get_by_role("columnheader", name="Task")
        for order in ("ascending", "descending"):
            await column.get_by_role("link").click()
            await expect(column).to_have_attribute("aria-sort", order)
        await expect(wave.locator("tbody th")).to_have_text(["second", "first"])
        await wave.get_by_text("Undo wave 1…").click()
        await wave.get_by_role("button", name="Undo wave 1").click()
        await expect(page.locator("#said")).to_contain_text("Undone: e-")
        await expect(wave.get_by_text("Undo wave 1…")).to_have_count(0)
        assert not (root / "first.py").exists()
        assert not (root / "second.py").exists()
        assert (root / "third.py").exists()
        await page.goto(f"{central.url}/dashboard/edits")
        await expect(page.get_by_text("undone by")).to_have_count(2)
