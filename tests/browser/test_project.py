"""People see on a project's page what happens in it, and read and change its memories, in a real browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}, patience_s=120) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_project_shows_its_life_and_its_memories_are_edited(
    central: RunningCentral, person: OpenPage, tmp_path: Path, scripts: bool
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "main.sh").write_text("greet() { echo hi; }\n")
    async with (
        person(central, java_script_enabled=scripts) as page,
        central.raw("handshake", X_Serena_Project=str(root)) as client,
    ):
        await client.call("create_text_file", relative_path="new.txt", content="x\n")
        await client.ask("tools/call", {"name": "read_file", "arguments": {"relative_path": "gone.sh"}})
        await client.call("get_symbols_overview", relative_path="main.sh")
        await page.get_by_role("link", name="Projects", exact=True).click()
        await page.get_by_role("link", name="shop", exact=True).click()
        activity = page.locator("#activity")
        await expect(activity).to_contain_text("raw")
        await expect(activity).to_contain_text("new.txt")
        await expect(activity).to_contain_text("gone.sh")
        await expect(page.locator("#missing").get_by_role("button", name="Install")).to_be_visible()
        await page.get_by_role("link", name="New memory").click()
        await page.get_by_label("Name").fill("build")
        await page.get_by_label("Markdown").fill("Run make.\n")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("link", name="build", exact=True).click()
        await expect(page.get_by_label("Markdown")).to_have_value("Run make.\n")
        await page.get_by_label("Markdown").fill("Run make test.\n")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator(".edits li")).to_have_count(2)
        assert (root / ".serena" / "memories" / "build.md").read_text() == "Run make test.\n"


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_setting_of_a_project_is_changed_and_undone(
    central: RunningCentral, person: OpenPage, tmp_path: Path, scripts: bool
) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".serena").mkdir()
    file = root / ".serena" / "project.yml"
    file.write_text("# Ours\nmax_answer_chars: 4321  # enough\n")
    async with (
        person(central, java_script_enabled=scripts) as page,
        central.raw("handshake", X_Serena_Project=str(root)) as client,
    ):
        await client.call("list_dir", relative_path=".")
        await page.goto(f"{central.url}/dashboard/projects/one?root={root}")
        await page.get_by_role("link", name="Change settings").click()
        one = page.locator("#setting-max_answer_chars")
        await one.get_by_role("textbox").fill("5000")
        await one.get_by_role("button", name="Save").click()
        if scripts:
            await expect(page.locator("#said")).to_contain_text("Done.")
        await expect(one.get_by_role("textbox")).to_have_value("5000")
        assert file.read_text() == "# Ours\nmax_answer_chars: 5000  # enough\n"
        await page.get_by_role("main").get_by_role("link", name="Edits").click()
        await page.get_by_text("Undo…").first.click()
        await page.locator("#table").get_by_role("button", name="Undo").first.click()
        await expect(page.locator("#table")).to_contain_text("undone by")
        assert file.read_text() == "# Ours\nmax_answer_chars: 4321  # enough\n"
