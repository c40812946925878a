"""People try a tool of an upstream, from the upstream's page on. In a real browser, with scripts and without."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_looks import violations
from tests.support.central import RunningCentral, running_central
from tests.support.upstreams import QUICK, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[RunningCentral]:
    user = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user))
    settings_of_user(user, {"one": scripted(log=str(tmp_path / "log.jsonl"))})
    async with running_central(tmp_path, QUICK, patience_s=120) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_tool_of_an_upstream_asks_then_answers(
    central: RunningCentral, person: OpenPage, tmp_path: Path, scripts: bool
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    async with (
        person(central, java_script_enabled=scripts, bypass_csp=True) as page,
        central.raw("handshake", X_Serena_Project=str(root)) as client,
    ):
        await client.call("list_dir", relative_path=".")
        await page.goto(f"{central.url}/dashboard/upstreams/one")
        await page.get_by_role("link", name="one__echo").click()
        await page.get_by_label("text").fill("hello")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator("#answer")).to_contain_text("may make changes")
        if scripts:
            assert await violations(page) == []
        assert events_in(tmp_path / "log.jsonl", "tools/call") == []
        await page.get_by_role("button", name="Call one__echo").click()
        await expect(page.locator("#answer pre")).to_have_text("hello")
        assert len(events_in(tmp_path / "log.jsonl", "tools/call")) == 1
        if scripts:
            assert await violations(page) == []
        await page.locator("#answer").get_by_role("link", name="call").click()
        await page.wait_for_url("**/calls/c-*")
