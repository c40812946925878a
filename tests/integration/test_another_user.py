"""A second user of the machine, who reads the command lines of the first one's browser and listens on old ports."""

import os
import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import httpx
import pytest
from mcp.client.auth import OAuthClientProvider

from serena_central.hub.oauth import PersonalLogin, TokenFile
from serena_central.standalone.private import NotPrivate, secure
from tests.support.central import RunningCentral

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs another user's processes"),
]

STRANGER = 65534
"""The uid of nobody."""

_ASK = """
import http.client, sys
host, port, path, cookie = sys.argv[1:]
http = http.client.HTTPConnection(host, int(port), timeout=10)
http.request("GET", path, headers={"Host": "127.0.0.1:" + port, "Cookie": cookie})
print(http.getresponse().status)
"""


def status_for_stranger(url: str, path: str, cookie: str = "", host: str = "127.0.0.1") -> int:
    command = ["/usr/bin/env", "python3", "-I", "-S", "-c", _ASK, host, str(httpx.URL(url).port), path, cookie]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        command,
        user=STRANGER,
        group=STRANGER,
        extra_groups=[],
        cwd="/",
        env=environment,
        capture_output=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
async def test_a_link_read_from_a_command_line_lets_another_user_not_in(central: RunningCentral, host: str) -> None:
    link = central.central.dashboard.one_time_link(here_alone=True)
    assert await anyio.to_thread.run_sync(status_for_stranger, central.url, link, "", host) == 401
    async with httpx.AsyncClient(base_url=central.url) as browser:
        assert (await browser.get(link)).status_code == 200


async def test_a_cookie_that_another_users_program_was_sent_lets_it_not_in(central: RunningCentral) -> None:
    link = central.central.dashboard.one_time_link(here_alone=True)
    async with httpx.AsyncClient(base_url=central.url) as browser:
        entered = await browser.get(link)
        cookie = entered.headers["set-cookie"].split(";")[0]
        assert await anyio.to_thread.run_sync(status_for_stranger, central.url, "/dashboard", cookie) == 401
        assert (await browser.get("/dashboard")).status_code == 200


async def test_a_printed_link_is_for_any_browser(central: RunningCentral) -> None:
    async with central.http() as http:
        link = (await http.post("/api/v1/dashboard/link")).json()["path"]
    assert await anyio.to_thread.run_sync(status_for_stranger, central.url, link) == 200


async def test_a_login_elsewhere_is_not_completed_by_another_user(tmp_path: Path) -> None:
    async def use(provider: OAuthClientProvider) -> None:
        (back, *_) = provider.context.client_metadata.redirect_uris or ()
        path = "/callback?code=theirs&state=read"
        assert await anyio.to_thread.run_sync(status_for_stranger, str(back), path) == 403
        async with httpx.AsyncClient() as browser:
            assert (await browser.get(f"{back}?code=ours&state=read")).status_code == 200

    url = "http://127.0.0.1:1/mcp"
    await PersonalLogin(url, TokenFile(tmp_path, url), print).run(use)


def test_sudo_makes_no_server_folder_in_its_callers_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(tmp_path, STRANGER, STRANGER)
    folder = str(tmp_path / ".local" / "share" / "serena-central")
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    with pytest.raises(NotPrivate, match="Run this without sudo"):
        secure(folder)
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv("SUDO_UID")  # root in a container, with a home that was mounted
    secure(folder)
    assert Path(folder).is_dir()
