"""People change settings of the running server, and undo that, in a real browser."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import SHOTS, OpenPage
from tests.browser.test_looks import violations
from tests.support.central import running_central

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_setting_of_the_server_is_changed_and_undone(tmp_path: Path, person: OpenPage, scripts: bool) -> None:
    file = tmp_path / "user.yml"
    file.write_text("# Mine\nsessions:\n  idle_after_s: 60  # a minute\n")
    async with (
        running_central(tmp_path, patience_s=120) as central,
        person(central, java_script_enabled=scripts, bypass_csp=True) as page,
    ):
        await page.goto(f"{central.url}/dashboard/settings")
        form = page.locator('[id="setting-sessions.idle_after_s"]')
        await form.get_by_role("textbox").fill("90")
        await form.get_by_role("button", name="Save").click()
        await expect(form.get_by_role("textbox")).to_have_value("90.0")  # as the server writes it
        assert file.read_text() == "# Mine\nsessions:\n  idle_after_s: 90.0  # a minute\n"
        assert central.central.sessions.policy.idle_after_s == 90
        await page.locator('[id="setting-edit_conflicts"]').get_by_role("combobox").select_option("warn")
        await page.locator('[id="setting-edit_conflicts"]').get_by_role("button", name="Save").click()
        await expect(page.locator('[id^="change-"]')).to_have_count(2)
        if scripts:
            await page.screenshot(path=SHOTS / "settings.png")
            assert await violations(page) == []
        await page.get_by_role("button", name="Undo the change of sessions.idle_after_s").click()
        await expect(form.get_by_role("textbox")).to_have_value("60.0")
        assert file.read_text().startswith("# Mine\nsessions:\n  idle_after_s: 60  # a minute\n")
        assert 'edit_conflicts: "warn"' in file.read_text()
        await form.get_by_role("textbox").fill("soon")
        await form.get_by_role("button", name="Save").click()
        await expect(page.locator("body")).to_contain_text("must be")
        assert len(await (await page.request.get(f"{central.url}/dashboard/settings")).body()) < 50_000
