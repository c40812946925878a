"""Language servers and what projects need: a server's plots over time, one that is installed, one that trust allows."""

import re
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import expect

from serena_central.core.errors import LanguageServerError
from serena_central.pool.key_history import Measured
from tests.browser.conftest import OpenPage
from tests.browser.test_looks import unreadable
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

FOLDER = "shop"


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    root = tmp_path / FOLDER
    (root / ".git").mkdir(parents=True)
    (root / "main.sh").write_text("greet() { echo hi; }\n")
    (root / "cart.py").write_text("class Cart:\n    pass\n")
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text('language_servers: {go: {command: "theirs"}}\n')
    settings = {"projects": [str(root)], "trusted_roots": []}
    async with running_central(tmp_path, settings, patience_s=120) as running, running.http() as http:
        for path in ("main.sh", "cart.py"):
            asked = {"arguments": {"project": str(root), "relative_path": path}}
            assert (await http.post("/api/v1/tools/get_symbols_overview", json=asked)).status_code == 200
        yield running


async def test_the_plots_of_a_server_have_a_true_axis_and_a_gap_where_it_did_not_run(
    central: RunningCentral, person: OpenPage
) -> None:
    pool, now = central.central.dashboard.parts.pool, time.time()
    (key,) = [one.key for one in pool.snapshot() if one.key.server == "ty"]
    measured = pool.history(key).measured
    measured.clear()
    for ago in (*range(800, 600, -5), *range(300, 100, -5)):  # seconds: five minutes without a process
        measured.append(Measured(now - ago, 1 << 27, 40.0))
    async with person(central) as page:
        await page.get_by_role("link", name="Servers", exact=True).click()
        await page.locator("#table").get_by_role("link", name="ty").click()
        for title in ("Memory", "CPU"):
            plot = page.locator("#load figure", has_text=title)
            line = await plot.locator("path").first.get_attribute("d")
            assert line is not None
            pieces = ([float(x) for x in re.findall(r"[ML]([\d.]+) ", piece)] for piece in re.split("(?=M)", line))
            spells = [piece for piece in pieces if len(piece) > 10]
            assert len(spells) == 2, title
            # The axis is 500 wide and 900 s long.
            assert spells[1][0] - spells[0][-1] == pytest.approx(500 * 305 / 900, abs=6)
        await expect(page.locator("#load .x").first).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_missing_server_is_installed_by_a_button_that_shows_progress_and_failure(
    central: RunningCentral, person: OpenPage, monkeypatch: pytest.MonkeyPatch, scripts: bool
) -> None:
    over = anyio.Event()

    async def install(_spec: object, _places: object, *, methods: tuple[str, ...], tell: object) -> None:
        await over.wait()
        raise LanguageServerError("bash", "the registry is out of reach")

    monkeypatch.setattr(central.central.installer, "_install", install)
    async with person(central, java_script_enabled=scripts) as page:
        await page.get_by_role("link", name="Projects", exact=True).click()
        await page.get_by_role("link", name=FOLDER, exact=True).click()
        missing = page.locator("#missing")
        await missing.get_by_role("button", name="Install bash").click()
        await expect(missing.get_by_role("status")).to_contain_text("installing bash")
        await expect(missing.get_by_role("button", name="Install bash")).to_have_count(0)
        over.set()
        if not scripts:
            with anyio.fail_after(20):
                while await missing.get_by_role("status").count():
                    await page.reload()
        await expect(missing).to_contain_text("the registry is out of reach")
        await expect(missing.get_by_role("button", name="Install bash")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
async def test_what_a_project_brings_is_read_trusted_and_revoked(
    central: RunningCentral, person: OpenPage, scripts: bool
) -> None:
    async with person(central, java_script_enabled=scripts, bypass_csp=True) as page:
        await page.get_by_role("link", name="Projects", exact=True).click()
        await page.get_by_role("link", name=FOLDER, exact=True).click()
        trust = page.get_by_role("region", name="Trust")
        await expect(trust).to_contain_text("not trusted")
        await expect(trust).to_contain_text("command: theirs")
        if scripts:
            assert await unreadable(page, "untrusted") == {}
        await trust.locator("#trust summary").click()
        await trust.get_by_role("button", name="Trust", exact=True).click()
        await expect(trust).to_contain_text("trusted")
        await expect(trust).to_contain_text("by a user in the dashboard")
        await trust.locator("#revoke summary").click()
        await trust.get_by_role("button", name="Revoke", exact=True).click()
        await expect(trust).to_contain_text("not trusted")
