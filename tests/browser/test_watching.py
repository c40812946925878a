"""People watch sessions and end them, in a real browser, with real MCP clients on the other side."""

from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest
from playwright.async_api import Page, Route, expect

from serena_central.web.pages.actions import BY
from tests.browser.conftest import OpenPage
from tests.browser.life import busy_server
from tests.support.central import RunningCentral, running_central
from tests.support.example_project import CART
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"execute_shell": True}, patience_s=120) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    pass\n")
    return root


async def test_a_session_appears_by_itself_is_watched_and_killed_before_all_eyes(
    central: RunningCentral, person: OpenPage, project: Path
) -> None:
    async with person(central) as page, person(central) as other:
        await expect(page.get_by_text("No agent is connected")).to_be_visible()
        async with central.raw("handshake", X_Serena_Project=str(project)) as client:
            await page.get_by_role("link", name="raw 1").first.click()
            await page.wait_for_url("**/sessions/*")
            await other.goto(page.url)
            assert "cart.py" in text_of(await client.call("list_dir", relative_path="."))
            await expect(page.locator(".log")).to_contain_text("list_dir shop ok")

            answers: list[str] = []

            async def work() -> None:
                answers.append(text_of(await client.call("execute_shell_command", command="sleep 60")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work)
                await expect(page.locator("#running")).to_contain_text("execute_shell_command")
                await page.get_by_text("Terminate…").click()
                await page.get_by_role("button", name="Terminate").click()
            assert BY in answers[0]
            await expect(page.locator("#said")).to_contain_text("Terminated 1 session")
            for eyes in (page, other):
                await expect(eyes.locator("#details")).to_contain_text(f"Terminated by {BY}")
                await expect(eyes.locator("#running")).to_contain_text("No running calls")
            refused = await client.ask("tools/call", {"name": "list_dir", "arguments": {"relative_path": "."}})
            assert f"terminated by {BY}" in str(refused)


async def test_sessions_are_filtered_while_one_types_and_killed_in_bulk(
    central: RunningCentral, person: OpenPage
) -> None:
    async with central.http() as http, person(central) as page, person(central) as other:
        for name in ("wild", "wild", "tame"):
            await http.post("/api/v1/sessions", json={"client_name": name})
        await page.get_by_role("link", name="Sessions", exact=True).click()
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(3)
        await other.goto(f"{central.url}/dashboard/sessions?state=terminated")
        await expect(other.get_by_text("None of 3 sessions matches")).to_be_visible()
        await page.get_by_label("Search").fill("wild")
        await expect(rows).to_have_count(2)
        await page.wait_for_url("**q=wild**")
        await http.post("/api/v1/sessions", json={"client_name": "wild"})
        await expect(rows).to_have_count(3)
        await page.get_by_label("Select all on this page").check()
        await page.get_by_text("Terminate selected…").click()
        await page.get_by_role("button", name="Terminate").click()
        await expect(page.locator("#said")).to_contain_text("Terminated 3 sessions")
        for eyes in (page, other):
            await expect(eyes.locator("tbody tr.terminated")).to_have_count(3)
        await page.get_by_label("State").select_option("terminated")
        await page.wait_for_url("**state=terminated**")
        await expect(rows).to_have_count(3)
        await page.go_back()
        await expect(page.get_by_label("State")).to_have_value("")
        await page.wait_for_load_state()
        await page.go_back()
        await expect(rows).to_have_count(4)
        await expect(page.get_by_label("Search")).to_have_value("")


async def test_what_one_has_ticked_stays_ticked_while_the_table_changes(
    central: RunningCentral, person: OpenPage
) -> None:
    async with central.http() as http, person(central) as page:
        first = (await http.post("/api/v1/sessions", json={"client_name": "one"})).json()["session_id"]
        await page.goto(f"{central.url}/dashboard/sessions")
        await page.locator(f"#row-{first} input").check()
        await page.get_by_text("Terminate selected…").click()
        await http.post("/api/v1/sessions", json={"client_name": "two"})
        await expect(page.locator("tbody tr")).to_have_count(2)
        await expect(page.locator(f"#row-{first} input")).to_be_checked()
        await expect(page.get_by_role("button", name="Terminate")).to_be_visible()


async def test_without_a_script_people_read_and_kill(central: RunningCentral, person: OpenPage) -> None:
    async with central.http() as http, person(central, java_script_enabled=False) as page:
        session = (await http.post("/api/v1/sessions", json={"client_name": "wild"})).json()["session_id"]
        await page.goto(f"{central.url}/dashboard/sessions")
        await page.get_by_role("link", name="wild").click()
        await page.get_by_text("Terminate…").click()
        await page.get_by_role("button", name="Terminate").click()
        await page.wait_for_url(f"**/dashboard/sessions/{session}")
        await expect(page.locator("#details")).to_contain_text(f"Terminated by {BY}")
        await expect(page.locator("#details")).to_contain_text("UTC")
        for name in ("one", "two", "spared"):
            await http.post("/api/v1/sessions", json={"client_name": name})
        await page.goto(f"{central.url}/dashboard/sessions?sort=client")
        for name in ("one", "two"):
            await page.get_by_label(f"Select {name}", exact=True).check()
        await page.get_by_text("Terminate selected…").click()
        await page.get_by_role("button", name="Terminate").click()
        await page.wait_for_url("**/dashboard/sessions?sort=client")
        await expect(page.locator("tbody tr.terminated")).to_have_count(3)


async def test_an_action_that_the_server_does_not_answer_is_not_passed_over(
    central: RunningCentral, person: OpenPage
) -> None:
    async with person(central) as page, central.raw("handshake"):
        await page.get_by_role("link", name="raw 1").first.click()
        await page.route("**/dashboard/terminate", lambda route: route.abort())
        await page.get_by_text("Terminate…").click()
        await page.get_by_role("button", name="Terminate").click()
        await expect(page.locator("#said")).to_contain_text("did not answer")
        await page.unroute("**/dashboard/terminate")
        await page.get_by_text("Terminate…").click()
        await page.get_by_role("button", name="Terminate").click()
        await expect(page.locator("#said")).to_contain_text("Terminated 1 session")


async def test_one_running_call_is_cancelled_by_its_button_and_its_session_goes_on(
    central: RunningCentral, person: OpenPage, project: Path
) -> None:
    async with person(central) as page, central.raw("handshake", X_Serena_Project=str(project)) as client:
        await page.get_by_role("link", name="raw 1").first.click()
        answers: list[str] = []

        async def work() -> None:
            answers.append(text_of(await client.call("execute_shell_command", command="sleep 60")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await page.get_by_role("button", name="Cancel execute_shell_command").click()
        assert f"cancelled by {BY}" in answers[0]
        await expect(page.locator("#running")).to_contain_text("No running calls")
        assert "cart.py" in text_of(await client.call("list_dir", relative_path="."))


async def test_what_one_types_stays_while_the_table_is_fetched_and_news_follow_the_filter(
    central: RunningCentral, person: OpenPage
) -> None:
    held = anyio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    async with central.http() as http, person(central) as page:
        for name in ("wild", "wind", "tame"):
            await http.post("/api/v1/sessions", json={"client_name": name})
        await page.goto(f"{central.url}/dashboard/sessions?sort=client")
        search, rows = page.get_by_label("Search"), page.locator("tbody tr")
        await page.route("**/dashboard/sessions?*", hold)
        async with page.expect_request("**/dashboard/sessions?q=wi**"):
            await search.press_sequentially("wi")
        held.set()
        await search.press_sequentially("ld")
        await page.wait_for_url("**/dashboard/sessions?q=wild&sort=client")
        await expect(search).to_have_value("wild")
        await expect(search).to_be_focused()
        await expect(rows).to_have_count(1)
        for name in ("tame", "wild"):
            await http.post("/api/v1/sessions", json={"client_name": name})
        await expect(rows).to_have_count(2)
        await expect(page.locator("#table")).not_to_contain_text("tame")


async def test_what_one_marked_opened_and_scrolled_to_stays_while_news_come(
    central: RunningCentral, person: OpenPage, project: Path
) -> None:
    async with central.http() as http, person(central) as page:
        session = (await http.post("/api/v1/sessions", json={"client_name": "busy"})).json()["session_id"]
        for number in range(80):
            central.central.sessions.get(session).note(f"line {number}", at=1_000_000.0 + number)
        await page.goto(f"{central.url}/dashboard/sessions/{session}")
        await page.get_by_text("Terminate…").click()
        place = await page.evaluate(
            """() => {
                const log = document.querySelector(".log");
                log.scrollTop = 45;
                const own = [...log.children].find((one) => one.textContent.includes("line 70"));
                const line = own.querySelector(".text");
                getSelection().selectAllChildren(line);
                return line.getBoundingClientRect().top - log.getBoundingClientRect().top;
            }"""
        )
        asked = {"session": session, "arguments": {"relative_path": ".", "project": str(project)}}
        assert (await http.post("/api/v1/tools/list_dir", json=asked)).status_code == 200
        await expect(page.locator(".log li").first).to_contain_text("list_dir shop ok")
        marked, now = await page.evaluate(
            """() => {
                const line = getSelection().anchorNode, log = document.querySelector(".log");
                const top = (line.getBoundingClientRect ? line : line.parentElement).getBoundingClientRect().top;
                return [getSelection().toString(), top - log.getBoundingClientRect().top];
            }"""
        )
        assert marked == "line 70"
        assert abs(now - place) < 2
        await expect(page.get_by_role("button", name="Terminate")).to_be_visible()


async def test_a_page_comes_back_by_itself_when_the_server_was_started_again(tmp_path: Path, person: OpenPage) -> None:
    async with running_central(tmp_path) as first:
        port = urlsplit(first.url).port or 0
        page_of = person(first)
        page = await page_of.__aenter__()
        await expect(page.get_by_text("No agent is connected")).to_be_visible()
    try:
        await expect(page.get_by_text("Reconnecting…")).to_be_visible()
        async with running_central(tmp_path, port=port) as second, second.http() as http:
            await expect(page.get_by_text("Reconnecting…")).to_be_hidden()
            await http.post("/api/v1/sessions", json={"client_name": "after"})
            await expect(page.locator("#sessions").get_by_role("link", name="after")).to_be_visible()
    finally:
        await page_of.__aexit__(None, None, None)


async def test_a_page_says_that_it_hears_nothing_and_recovers_by_itself(
    central: RunningCentral, person: OpenPage
) -> None:
    """A network that breaks closes no connection, and a server that hangs neither."""
    async with person(central) as page:
        await page.add_init_script("delete window.SharedWorker")  # whose clock can't be set
        await page.clock.install()
        lost = page.get_by_text("Reconnecting…")
        silent = anyio.Event()

        async def stay(_route: Route) -> None:
            await silent.wait()

        await page.route("**/dashboard/live*", stay)
        await page.reload()
        await page.clock.fast_forward(60_000)
        await expect(lost).to_be_hidden()
        await page.clock.fast_forward(60_000)
        await expect(lost).to_be_visible()
        await page.unroute("**/dashboard/live*", stay)
        silent.set()
        await page.clock.run_for(5000)
        await expect(lost).to_be_hidden()


async def test_a_hidden_tab_holds_no_stream_and_is_up_to_date_when_it_is_seen(
    central: RunningCentral, person: OpenPage
) -> None:
    live = central.central.dashboard.live
    async with central.http() as http, person(central) as page:
        with anyio.fail_after(60):
            await _until(lambda: live.count == 1)
            await _set_hidden(page, True)
            await _until(lambda: live.count == 0)
        await http.post("/api/v1/sessions", json={"client_name": "meanwhile"})
        await expect(page.locator("#sessions").get_by_role("link", name="meanwhile")).to_have_count(0)
        await _set_hidden(page, False)
        await expect(page.locator("#sessions").get_by_role("link", name="meanwhile")).to_be_visible()


async def test_ten_visible_pages_of_a_browser_share_one_stream_and_all_are_kept_up_to_date(
    central: RunningCentral, person: OpenPage
) -> None:
    live = central.central.dashboard.live
    async with central.http() as http, person(central) as page:
        first = (await http.post("/api/v1/sessions", json={"client_name": "first"})).json()["session_id"]
        pages = [page]
        for path in ("/sessions", "", "/sessions?q=late", "/events", "/servers", "/projects", "/about", "/sessions"):
            pages.append(await page.context.new_page())
            await pages[-1].goto(f"{central.url}/dashboard{path}")
        own = await page.context.new_page()
        await own.goto(f"{central.url}/dashboard/sessions/{first}")
        with anyio.fail_after(60):
            await _until(lambda: live.count == 1)
        await http.post("/api/v1/sessions", json={"client_name": "latest"})
        for number in (0, 1, 2, 3, 8):
            await expect(pages[number].get_by_role("link", name="latest").first).to_be_visible()
        central.central.sessions.terminate(first, "somebody")
        await expect(own.locator("#details")).to_contain_text("Terminated by somebody")
        for one in pages[1:]:
            await one.close()
        await http.post("/api/v1/sessions", json={"client_name": "newest"})
        await expect(page.get_by_role("link", name="newest").first).to_be_visible()
        with anyio.fail_after(60):
            await _until(lambda: live.count == 1)


async def test_an_edit_is_read_line_by_line_and_taken_back(tmp_path: Path, person: OpenPage) -> None:
    async with busy_server(tmp_path) as life, person(life.central) as page:
        await page.goto(f"{life.central.url}/dashboard/sessions/{life.paths['session']}")
        await page.locator("#edits").get_by_role("link", name="cart.py").click()
        await expect(page.locator("tr.removed")).to_contain_text(["return sum(line.price for line in self.lines)"])
        await expect(page.locator("tr.added")).to_have_count(2)
        await page.get_by_text("Undo…").click()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator("#said")).to_contain_text("Undone as e-")
        assert (tmp_path / "src" / "shop" / "cart.py").read_text() == CART


async def test_who_signs_out_is_out_in_every_tab(central: RunningCentral, person: OpenPage) -> None:
    async with person(central) as page:
        tab = await page.context.new_page()
        await tab.goto(f"{central.url}/dashboard/sessions")
        await page.get_by_role("button", name="Sign out").click()
        for seen in (page, tab):
            await expect(seen.get_by_role("heading", name="You are not signed in")).to_be_visible()


async def test_all_is_reached_by_keyboard(central: RunningCentral, person: OpenPage) -> None:
    async with central.http() as http, person(central) as page:
        session = (await http.post("/api/v1/sessions", json={"client_name": "wild"})).json()["session_id"]
        await page.goto(f"{central.url}/dashboard/sessions/{session}")
        await page.keyboard.press("Tab")
        await expect(page.get_by_text("Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        for _ in range(20):
            await page.keyboard.press("Tab")
            if await page.evaluate("document.activeElement.textContent") == "Terminate…":
                break
        await page.keyboard.press("Enter")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name="Terminate")).to_be_hidden()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#details")).to_contain_text("Terminated by")


async def _set_hidden(page: Page, hidden: bool) -> None:
    await page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


async def _until(holds: object) -> None:
    assert callable(holds)
    while not holds():
        await anyio.sleep(0.01)
