"""The dashboard of a team's users and of a cluster: who signs in by a token, and what runs on other machines."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from serena_central.app.build import Cluster
from tests.browser.conftest import OpenPage
from tests.browser.test_links import click_boosted
from tests.browser.test_looks import unreadable
from tests.integration.test_cluster_pages import Described
from tests.support.central import running_central
from tests.support.team import Team, running_team

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Team]:
    async with running_team(tmp_path_factory.mktemp("team")) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_user_signs_in_by_a_token_and_finds_own_sessions_and_edits_alone(
    team: Team, chromium: Browser, scripts: bool
) -> None:
    if not (await team.ada.get("/api/v1/edits")).json()["edits"]:
        await team.edited()
    await team.bob.post("/api/v1/sessions", json={"client_name": "of-bob", "working_folder": str(team.bank)})
    context = await chromium.new_context(java_script_enabled=scripts)
    page = await context.new_page()
    dashboard = f"{team.central.url}/dashboard"
    await page.goto(dashboard)
    for token in ("x" * 10_000, "nobody's"):
        await page.get_by_label("Token").fill(token)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_have_text("No user has this token.")
    await page.get_by_label("Token").fill(team.ada.headers["authorization"].partition(" ")[2])
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/dashboard/sessions")
    await expect(page.locator("header nav a")).to_have_text(["Sessions", "Edits"])
    await expect(page.locator("#table tbody tr")).to_have_count(1)
    await expect(page.locator("#table")).not_to_contain_text("of-bob")
    await page.locator("header").get_by_role("link", name="Edits").click()
    await expect(page.locator("#table")).to_contain_text("cart.py")
    for path in ("/settings", "/sessions/nothing", "/edits/nothing", "/servers"):
        answer = await page.goto(dashboard + path)
        assert answer is not None
        assert answer.status in (403, 404), path
        await expect(page.locator("main")).to_have_count(1)
        await expect(page.locator("h1")).to_have_text("Request failed")
    await context.close()


async def test_the_pages_of_a_user_are_readable_by_everybody_and_their_links_leave_one_main(
    team: Team, chromium: Browser
) -> None:
    found: dict[str, list[str]] = {}
    if not (await team.ada.get("/api/v1/edits")).json()["edits"]:
        await team.edited()
    context = await chromium.new_context(color_scheme="light", bypass_csp=True)
    page = await context.new_page()
    await page.goto(f"{team.central.url}/dashboard")
    found |= await unreadable(page, "sign-in")
    await page.get_by_label("Token").fill(team.ada.headers["authorization"].partition(" ")[2])
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/dashboard/sessions")
    for name in ("sessions", "edits"):
        await page.goto(f"{team.central.url}/dashboard/{name}")
        assert await click_boosted(page) > 0, name
        found |= await unreadable(page, f"user-{name}")
    await context.close()
    assert found == {}


async def test_the_nodes_of_a_cluster_are_found_read_and_kept_up_to_date(tmp_path: Path, person: OpenPage) -> None:
    described, found = Described(), dict[str, list[str]]()
    cluster = Cluster(lambda _services, local: local, described)
    async with running_central(tmp_path, cluster=cluster) as central:
        async with person(central, bypass_csp=True) as page:
            await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Nodes").click()
            silent = page.locator(".card", has_text="does not answer")
            await expect(silent.locator("h2")).to_contain_text("silent")
            row = page.get_by_role("region", name="Project hosts on <b>a").locator("tbody tr")
            await expect(row).to_contain_text("ty (ready)")
            await page.locator("summary").click()
            await expect(page.get_by_text("/src/bank")).to_be_visible()
            assert await click_boosted(page) == 0
            found |= await unreadable(page, "nodes")
        async with person(central, java_script_enabled=False) as page:
            await page.goto(f"{central.url}/dashboard/nodes")
            await expect(page.locator("main")).to_contain_text("39 of 40")
    assert found == {}
