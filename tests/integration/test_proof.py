"""The token goes to nobody but the server: what a stranger gets who listens where it was, or stands in between."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from serena_central.standalone.proof import address_endpoint, name_endpoint, proof_of
from tests.support.central import running_central
from tests.support.child import Child, environment, run_command, serving_child
from tests.support.proxy import proxying
from tests.support.stranger import Stranger, a_stranger

pytestmark = pytest.mark.anyio

NONCE = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Child]:
    async with serving_child(tmp_path_factory.mktemp("serving")) as child:
        yield child


@asynccontextmanager
async def instead_of(child: Child, folder: Path, *, relaying: bool) -> AsyncGenerator[tuple[Stranger, str]]:
    """A stranger at the port that a home's `server.json` names, and the token that belongs there."""
    home = folder / "home"
    home.mkdir()
    token = (child.folder / "home" / "token").read_text().strip()
    (home / "token").write_text(token)
    (home / "token").chmod(0o600)
    async with a_stranger(relays_to=int(child.url.rpartition(":")[2]) if relaying else None) as stranger:
        # Of a process of ours that runs, as another one may be that has the dead server's id by now.
        said = {"url": f"http://127.0.0.1:{stranger.port}/mcp", "pid": child.process.pid, "version": "0.1.0"}
        (home / "server.json").write_text(json.dumps(said))
        yield stranger, token


@pytest.mark.parametrize("relaying", [False, True], ids=["answers itself", "asks the real server"])
class TestWhoListensAtTheServersOldPort:
    async def test_gets_no_token_from_the_command_line(self, serving: Child, tmp_path: Path, *, relaying: bool) -> None:
        async with instead_of(serving, tmp_path, relaying=relaying) as (stranger, token):
            ended = await run_command(tmp_path, "status")
            stopped = await run_command(tmp_path, "stop")
            doctor = await run_command(tmp_path, "doctor", "--json")
        assert (ended.code, stopped.code) == (3, 3)
        assert "could not prove that it is this user's server" in ended.err
        assert "https://" in ended.err
        (server,) = [check for check in doctor.json if check["name"] == "server"]
        assert server["state"] == "failed"
        assert stranger.answered >= 3
        assert_nothing_given_away(stranger, token)

    async def test_gets_no_token_from_a_proxy(self, serving: Child, tmp_path: Path, *, relaying: bool) -> None:
        async with (
            instead_of(serving, tmp_path, relaying=relaying) as (stranger, token),
            proxying(tmp_path, "modern", "--no-start") as client,
        ):
            await client.begin("tools/list")
            with anyio.fail_after(60):
                while stranger.answered < 3:
                    await anyio.sleep(0.01)
        assert_nothing_given_away(stranger, token)

    async def test_gets_no_token_from_a_hook(self, serving: Child, tmp_path: Path, *, relaying: bool) -> None:
        said = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "PreToolUse", "tool_name": "Grep"}
        (tmp_path / "a.py").write_text("class Cart: ...\n")
        async with instead_of(serving, tmp_path, relaying=relaying) as (stranger, token):
            with anyio.fail_after(60):
                ended = await anyio.run_process(
                    [sys.executable, "-I", "-m", "serena_central.hook", "enforce"],
                    input=json.dumps(said | {"tool_input": {"pattern": "class Cart", "path": str(tmp_path)}}).encode(),
                    env=environment(tmp_path, SERENA_HOOK_WAIT_MS="5000"),
                )
        assert ended.stdout == b""  # the search runs
        assert stranger.answered >= 1
        assert_nothing_given_away(stranger, token)


async def test_a_proxy_with_the_token_of_another_says_so_instead_of_waiting(serving: Child, tmp_path: Path) -> None:
    """Such as that of a team's user, over plain HTTP: the server can prove itself by its own token alone."""
    async with instead_of(serving, tmp_path, relaying=True) as (stranger, _token):
        file = tmp_path / "users-token"
        file.write_text("u" * 43)
        file.chmod(0o600)
        url = f"http://127.0.0.1:{stranger.port}/mcp"
        async with proxying(tmp_path, "modern", "--url", url, "--token-file", str(file)) as client:
            failed = await client.ask("tools/list")
        assert "the URL has to begin with https://" in failed["error"]["message"]
        assert stranger.answered == 2  # the file was read again
        assert_nothing_given_away(stranger, "u" * 43)


def assert_nothing_given_away(stranger: Stranger, token: str) -> None:
    received = stranger.received.lower()
    assert b"get /health?nonce=" in received
    assert token.lower().encode() not in received
    for header in (b"authorization", b"x-serena", b"cookie"):
        assert header not in received


async def test_a_proof_is_for_the_servers_own_address_or_a_name_with_its_port_that_its_settings_have(
    tmp_path: Path,
) -> None:
    settings = {
        "central_server_names": ["box.example", "127.0.0.1:9000", "Dev.example:8443"],
        "central_server_url": "https://front.example/mcp",
    }
    async with running_central(tmp_path, settings) as central, httpx.AsyncClient(base_url=central.url) as http:
        token = central.central.token.header().removeprefix("Bearer ")
        own = address_endpoint(("127.0.0.1", int(central.url.rpartition(":")[2])))
        expected = {
            central.url.removeprefix("http://"): own,
            "box.example": own,
            "box.example:7": own,
            "127.0.0.1:9000": name_endpoint("127.0.0.1:9000"),
            "dev.example:8443": name_endpoint("dev.example:8443"),
            "front.example": own,
            "front.example:443": name_endpoint("front.example:443"),
        }
        for host, endpoint in expected.items():
            said = (await http.get(f"/health?nonce={NONCE}", headers={"host": host})).json()
            assert said["proof"] == proof_of(token, NONCE, endpoint), host
        assert "proof" not in (await http.get("/health")).json()
        for wrong in ("", "x", NONCE.upper(), NONCE + "0", "%00"):
            assert (await http.get(f"/health?nonce={wrong}")).status_code == 400


async def test_a_name_without_a_port_is_no_endpoint(tmp_path: Path) -> None:
    """A stranger at another port of the same name would have the real server's proof for it."""
    async with running_central(tmp_path, {"central_server_names": ["localhost", "127.0.0.1"]}) as central:
        async with a_stranger(relays_to=int(central.url.rpartition(":")[2])) as stranger:
            (tmp_path / "home" / "server.json").write_text(
                json.dumps({"url": f"http://127.0.0.1:{stranger.port}/mcp", "pid": 1})
            )
            ended = await run_command(tmp_path, "status")
        token = central.central.token.header().removeprefix("Bearer ")
    assert ended.code == 3
    assert_nothing_given_away(stranger, token)
