"""What things are called: titles of pages, ids and paths that are copied, and where the focus is after an action."""

from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.life import Life, busy_server

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def life(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Life]:
    async with busy_server(tmp_path_factory.mktemp("life")) as busy:
        yield busy


async def test_a_title_begins_with_the_name_of_what_is_shown(life: Life, person: OpenPage) -> None:
    paths, one = life.paths, life.queries["/projects/one"]
    async with person(life.central) as page, life.central.http() as http:
        (server, *_) = (await http.get("/api/v1/servers")).json()["servers"]
        folder = server["root"].rpartition("/")[2]
        for path, title in {
            f"/sessions/{paths['session']}": f"claude-code · Session {paths['session']}",
            f"/servers/{paths['server']}": f"ty in {folder} · Language server {paths['server']}",
            f"/projects/one{one}": "shop · Project",
            f"/projects/one/graph{one}": "shop · Graph",
            f"/projects/one/findings{one}": "shop · Findings",
            f"/projects/one/settings{one}": "shop · Settings of a project",
            f"/calls/{paths['call']}": f"Call {paths['call']}",
            f"/edits/{paths['edit']}": f"Edit {paths['edit']}",
            "/tools/find_symbol": "Tool find_symbol",
            "/sessions": "Sessions",
        }.items():
            await page.goto(f"{life.central.url}/dashboard{path}")
            await expect(page).to_have_title(f"{title} · serena-central")


async def test_ids_pids_paths_and_commands_are_copied_by_a_button(life: Life, person: OpenPage) -> None:
    paths, one = life.paths, life.queries["/projects/one"]
    root = one.removeprefix("?root=")
    permissions = ["clipboard-read", "clipboard-write"]
    async with person(life.central, permissions=permissions) as page, life.central.http() as http:
        (server, *_) = (await http.get("/api/v1/servers")).json()["servers"]
        for path, label, value in (
            (f"/sessions/{paths['session']}", "Copy id", paths["session"]),
            (f"/sessions/{paths['session']}", "Copy folder", root),
            (f"/servers/{paths['server']}", "Copy PID of run 1", str(server["pid"])),
            (f"/projects/one{one}", "Copy folder", root),
            (f"/calls/{paths['call']}", "Copy id of the call", paths["call"]),
            (f"/edits/{paths['edit']}", "Copy id of the edit", paths["edit"]),
            (f"/edits/{paths['edit']}", "Copy path cart.py", "cart.py"),
            ("/connect", "Copy: Command for Claude Code", "serena-central connect claude-code"),
        ):
            await page.goto(f"{life.central.url}/dashboard{path}")
            button = page.get_by_role("button", name=label, exact=True).first
            await button.click()
            await expect(page.locator("#said")).to_have_text("Copied.")
            assert await page.evaluate("navigator.clipboard.readText()") == value, path
    async with person(life.central, java_script_enabled=False) as page:
        await page.goto(f"{life.central.url}/dashboard/sessions/{paths['session']}")
        await expect(page.locator(".copy-value").first).to_be_hidden()


async def test_the_focus_stays_where_one_was_after_an_action(life: Life, person: OpenPage) -> None:
    async with life.central.http() as http, person(life.central) as page:
        opened = await http.post("/api/v1/sessions", json={"client_name": "passing"})
        session = opened.json()["session_id"]
        await page.goto(f"{life.central.url}/dashboard/servers/{life.paths['server']}")
        question = page.locator("#restart summary")
        await question.focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#said")).to_contain_text("was restarted")
        await expect(question).to_be_focused()
        # The button is not there any more when this is done.
        await page.goto(f"{life.central.url}/dashboard/sessions/{session}")
        await page.locator("#terminate summary").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#details")).to_contain_text("Terminated by")
        await expect(page.locator("#main")).to_be_focused()
