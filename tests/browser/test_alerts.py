"""People switch alerts on in the settings, and hear of a language server that keeps failing, in a real browser."""

from pathlib import Path

import anyio
import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import running_central
from tests.support.scripted import scripted_project, scripted_ty
from tests.support.webhook import listening

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_failure_reaches_the_webhook_and_the_desktop_which_was_chosen_on_the_page(
    tmp_path: Path, person: OpenPage, monkeypatch: pytest.MonkeyPatch, scripts: bool
) -> None:
    shown = tmp_path / "shown"
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {shown}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, exit_at_start=3)
    quick = {"pool.breaker_failures": 2, "pool.read_retries": 0, "pool.restart_delay_s": 0.01}
    with listening() as webhook:
        given = {**quick, "alerts.webhook": f"{webhook.url}?token=hunter22"}
        async with (
            running_central(tmp_path, given, patience_s=120) as central,
            central.http() as http,
            person(central, java_script_enabled=scripts) as page,
        ):
            await page.goto(f"{central.url}/dashboard/settings")
            desktop = page.locator('[id="setting-alerts.desktop"]')
            await desktop.get_by_role("combobox").select_option("true")
            await desktop.get_by_role("button", name="Save").click()
            await expect(page.locator('[id^="change-"]')).to_have_count(1)
            # The address may hold a token: it is set in the file alone, and not shown.
            await expect(page.locator("tr", has_text="alerts.webhook")).to_contain_text("hidden")
            assert "hunter22" not in await page.content()
            asked = {"name_path": "Cart/total", "relative_path": "cart.py", "project": str(root)}
            for _ in range(2):
                await http.post("/api/v1/tools/find_referencing_symbols", json={"arguments": asked})
            with anyio.fail_after(60):
                while not (webhook.got and shown.exists() and shown.read_text().endswith("\n")):
                    await anyio.sleep(0.05)
    assert (webhook.got[0]["kind"], webhook.got[0]["server"]) == ("server.breaker", "ty")
    assert "ty in shop" in webhook.got[0]["text"]
    title, text = shown.read_text().splitlines()[2:4]
    assert title == "serena-central"
    assert text.startswith("server.breaker: ")
