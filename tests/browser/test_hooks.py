"""A person sees in a real browser that a hook has halted a session, and resumes it."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_looks import violations
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".claude").mkdir(parents=True)
    line = "echo the disk is full >&2; exit 1"
    group = {"matcher": "Write", "hooks": [{"type": "command", "command": line, "if": "path(*.txt)"}]}
    (root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    return root


@pytest.fixture
async def central(tmp_path: Path, root: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"projects": [str(root)]}, patience_s=120) as running:
        yield running


async def test_a_halted_session_appears_by_itself_and_is_resumed(
    central: RunningCentral, person: OpenPage, root: Path
) -> None:
    async with person(central, bypass_csp=True) as page, central.http() as http:
        await page.goto(f"{central.url}/dashboard/hooks")
        await page.get_by_role("navigation", name="Project").get_by_role("link", name="shop").click()
        await page.wait_for_url(f"**/hooks?root={quote(str(root), safe='')}")
        await expect(page.locator("#hooks")).to_contain_text("if path(*.txt)")
        await expect(page.locator("#halted")).to_contain_text("No session is halted")
        asked = {"project": str(root), "relative_path": "a.txt", "content": "a"}
        await http.post("/api/v1/tools/create_text_file", json={"arguments": asked})
        await expect(page.locator("#halted")).to_contain_text("the disk is full")
        await expect(page.locator("#runs")).to_contain_text("halted")
        assert await violations(page) == []
        await page.locator("#halted").get_by_role("button", name="Resume").click()
        await expect(page.locator("#said")).to_contain_text("was resumed")
        await expect(page.locator("#halted")).to_contain_text("No session is halted")
