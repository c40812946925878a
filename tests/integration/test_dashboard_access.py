"""Who may see the dashboard and act by it, over real HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

from serena_central.access.browsers import LOGIN_LIFE_S
from serena_central.access.headers import HEADERS
from tests.support.browser import visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["", "/", "/sessions", "/sign-out", "/nowhere", "/../dashboard"])
async def test_strangers_are_told_how_to_get_in_and_nothing_else(central: RunningCentral, path: str) -> None:
    async with httpx.AsyncClient(base_url=central.url, headers=central.authorized) as stranger:
        for method in ("GET", "POST"):
            response = await stranger.request(method, f"/dashboard{path}")
            assert response.status_code == 401
            assert "serena-central dashboard" in response.text
            assert central.central.token.header() not in response.text


async def test_a_link_lets_one_browser_in_once(central: RunningCentral) -> None:
    link = central.central.dashboard.one_time_link()
    async with httpx.AsyncClient(base_url=central.url) as first, httpx.AsyncClient(base_url=central.url) as second:
        entered = await first.get(link)
        cookie = entered.headers["set-cookie"]
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert parts == {"path=/dashboard", f"max-age={int(LOGIN_LIFE_S)}", "httponly", "samesite=strict"}
        assert (await first.get("/dashboard")).status_code == 200
        assert (await second.get(link)).status_code == 401
        assert (await second.get("/dashboard")).status_code == 401


async def test_the_command_line_gets_a_link_with_the_token(central: RunningCentral) -> None:
    async with central.http() as http, httpx.AsyncClient(base_url=central.url) as browser:
        made = await http.post("/api/v1/dashboard/link")
        assert made.status_code == 201
        assert (await browser.post("/api/v1/dashboard/link")).status_code == 401
        assert (await browser.get(made.json()["path"])).status_code == 200


async def test_the_cookie_opens_nothing_but_the_dashboard(central: RunningCentral) -> None:
    async with visiting(central) as visitor:
        assert (await visitor.http.get("/api/v1/sessions")).status_code == 401
        assert (await visitor.http.post("/mcp")).status_code == 401


async def test_every_answer_below_the_dashboard_keeps_itself_to_itself(central: RunningCentral) -> None:
    async with visiting(central) as visitor, httpx.AsyncClient(base_url=central.url) as stranger:
        for response in (
            await visitor.http.get("/dashboard"),
            await visitor.http.get("/dashboard/nowhere"),
            await visitor.http.get("/dashboard", headers={"host": "evil.example"}),
            await stranger.get("/dashboard"),
            await stranger.get("/dashboard/enter?key=x"),
        ):
            for name, value in HEADERS.items():
                assert response.headers[name.decode()] == value.decode()


async def test_signing_out_takes_the_cookie_back(central: RunningCentral) -> None:
    async with visiting(central) as visitor:
        cookies = dict(visitor.http.cookies)
        assert (await visitor.act("/sign-out", headers={"sec-fetch-site": "same-origin"})).status_code == 303
        assert not visitor.http.cookies
        visitor.http.cookies.update(cookies)
        assert (await visitor.http.get("/dashboard")).status_code == 401


@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"csrf": ""}, {}),
        ({"csrf": "é"}, {}),
        ({"csrf": "0" * 64}, {}),
        ({}, {"origin": "http://localhost:1"}),
        ({}, {"origin": "null"}),
        ({}, {"origin": ""}),
        ({}, {"sec-fetch-site": "cross-site"}),
        ({}, {"sec-fetch-site": "same-site"}),  # another port of this host
        ({}, {"sec-fetch-site": "none"}),
    ],
)
async def test_an_action_needs_its_browsers_token_and_this_very_origin(
    central: RunningCentral, fields: dict[str, str | list[str]], headers: dict[str, str]
) -> None:
    async with visiting(central) as visitor:
        assert (await visitor.act("/sign-out", fields, headers)).status_code == 403
        assert await visitor.see()


async def test_nothing_is_done_by_get(central: RunningCentral) -> None:
    async with visiting(central) as visitor:
        assert (await visitor.http.get("/dashboard/sign-out")).status_code in (404, 405)
        assert await visitor.see()


async def test_who_is_in_stays_in_when_the_server_is_started_again(tmp_path: Path) -> None:
    async with running_central(tmp_path) as first, visiting(first) as visitor:
        cookies = dict(visitor.http.cookies)
    async with running_central(tmp_path) as second, httpx.AsyncClient(base_url=second.url, cookies=cookies) as again:
        assert (await again.get("/dashboard")).status_code == 200


async def test_another_token_signs_everybody_out(tmp_path: Path) -> None:
    async with running_central(tmp_path) as first, visiting(first) as visitor:
        cookies = dict(visitor.http.cookies)
    (tmp_path / "home" / "token").unlink()
    async with running_central(tmp_path) as second:
        name = second.central.dashboard.parts.browsers.cookie_name
        (secret,) = cookies.values()
        async with httpx.AsyncClient(base_url=second.url, cookies={name: secret}) as again:
            assert (await again.get("/dashboard")).status_code == 401


async def test_static_files_are_there_for_strangers_and_stay_in_their_folder(central: RunningCentral) -> None:
    async with visiting(central) as visitor, httpx.AsyncClient(base_url=central.url) as stranger:
        page = await visitor.see()
        address = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
        sheet = await stranger.get(address)
        assert sheet.headers["content-type"].startswith("text/css")
        assert "immutable" in sheet.headers["cache-control"]
        for elsewhere in ("../templates/base.html", "%2e%2e/templates/base.html", "nowhere.css"):
            assert (await visitor.http.get(address.replace("style.css", elsewhere))).status_code == 404


async def test_a_stream_begins_with_all_sections_and_goes_on_with_what_changes(central: RunningCentral) -> None:
    async with (
        visiting(central) as visitor,
        visitor.http.stream("GET", "/dashboard/live") as stream,
        central.http() as http,
    ):
        lines = stream.aiter_lines()
        with anyio.fail_after(60):
            names = [line async for line in _until(lines, "event: events")]
            assert "event: sessions" in names
            await http.post("/api/v1/sessions", json={"client_name": "<b>nightly"})
            told = "".join([line async for line in _until(lines, "nightly")])
    assert "&lt;b&gt;nightly" in told
    assert "<b>nightly" not in told


async def test_a_stream_ends_with_the_server_and_with_the_login(central: RunningCentral) -> None:
    async with visiting(central) as visitor:
        async with visitor.http.stream("GET", "/dashboard/live") as stream:
            with anyio.fail_after(60):
                lines = stream.aiter_lines()
                await anext(lines)
                await visitor.act("/sign-out")
                assert [line async for line in lines]
        told = await visitor.http.get("/dashboard/live")
        assert "event: leave" in told.text
    async with visiting(central) as visitor, visitor.http.stream("GET", "/dashboard/live") as stream:
        with anyio.fail_after(60):
            lines = stream.aiter_lines()
            await anext(lines)
            central.central.dashboard.live.close()
            async for _ in lines:
                pass


async def _until(lines: AsyncIterator[str], words: str) -> AsyncGenerator[str]:
    async for line in lines:
        yield line
        if words in line:
            return
