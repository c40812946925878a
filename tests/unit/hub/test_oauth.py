"""The tokens of a login are used, refreshed and removed by several connections and processes at once."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from serena_central.hub.masks import Masks
from serena_central.hub.oauth import TokenFile, token_login

pytestmark = pytest.mark.anyio

URL = "https://far.example/mcp"


class Authority:
    """Refresh tokens are good for one use; whoever uses one again ends the whole login (RFC 9700, 4.14.2)."""

    def __init__(self) -> None:
        self.valid: int | None = 1
        self.refreshed = 0
        self.used: list[str | None] = []
        """What requests were authorized by."""
        self.refreshing: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path != "/token":
            self.used.append(request.headers.get("authorization"))
            return httpx2.Response(200 if self.used[-1] in (f"Bearer a{self.valid}", "Bearer bob") else 401)
        self.refreshed += 1
        given = parse_qs(request.content.decode())["refresh_token"][0]
        if given != f"r{self.valid}":
            self.valid = None
            return httpx2.Response(400, json={"error": "invalid_grant"})
        self.valid = int(given[1:]) + 1
        await self.refreshing()
        return httpx2.Response(200, json=tokens(f"a{self.valid}", f"r{self.valid}").model_dump())


def tokens(access: str, refresh: str) -> OAuthToken:
    return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)


async def log_in(folder: Path, access: str, refresh: str, *, expired: bool = False) -> TokenFile:
    file = TokenFile(folder, URL)
    await file.set_client_info(
        OAuthClientInformationFull(
            client_id="c",
            redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
            token_endpoint_auth_method="none",
        )
    )
    await file.set_tokens(tokens(access, refresh))
    if expired:
        expire(file)
    return file


def expire(file: TokenFile) -> None:
    file.path.write_text(json.dumps(json.loads(file.path.read_bytes()) | {"expires_at": 1.0}))


def connection(folder: Path, authority: Authority, masks: Masks | None = None) -> httpx2.AsyncClient:
    login = token_login(TokenFile(folder, URL), (masks or Masks()).add)
    return httpx2.AsyncClient(auth=login, transport=httpx2.MockTransport(authority))


async def test_tokens_that_came_by_a_refresh_are_secret_too(tmp_path: Path) -> None:
    authority, masks = Authority(), Masks()
    await log_in(tmp_path, "a1", "r1", expired=True)
    authority.valid = 12345678
    file = TokenFile(tmp_path, URL)
    kept = json.loads(file.path.read_bytes())
    kept["tokens"]["refresh_token"] = "r12345678"
    file.path.write_text(json.dumps(kept))
    async with connection(tmp_path, authority, masks) as one:
        assert (await one.get(URL)).status_code == 200
    assert authority.used == ["Bearer a12345679"]
    assert "12345679" not in masks.masked("it said a12345679 and r12345679")


async def test_two_connections_that_refresh_at_once_use_a_refresh_token_up_once(tmp_path: Path) -> None:
    authority = Authority()
    file = await log_in(tmp_path, "a1", "r1")
    async with connection(tmp_path, authority) as one, connection(tmp_path, authority) as two:
        for each in (one, two):
            assert (await each.get(URL)).status_code == 200
        expire(file)
        authority.refreshing = anyio.wait_all_tasks_blocked  # the other one goes as far as it can
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.get, URL)
            tasks.start_soon(two.get, URL)
        assert (authority.refreshed, authority.used[-2:]) == (1, ["Bearer a2", "Bearer a2"])
        expire(file)
        assert [(await each.get(URL)).status_code for each in (one, two, one)] == [200, 200, 200]
        assert (authority.refreshed, authority.valid) == (2, 3)


async def test_a_login_that_ended_while_it_was_refreshed_stays_ended(tmp_path: Path) -> None:
    authority = Authority()
    file = await log_in(tmp_path, "a1", "r1", expired=True)

    async def log_out() -> None:
        assert file.remove()

    authority.refreshing = log_out
    async with connection(tmp_path, authority) as client:
        with pytest.raises(Exception, match="a person has to log in again"):
            await client.get(URL)
    assert not file.path.exists()
    assert authority.used == [None]


async def test_a_login_as_somebody_else_is_never_replaced_by_a_refreshed_one(tmp_path: Path) -> None:
    authority = Authority()
    file = await log_in(tmp_path, "a1", "r1", expired=True)

    async def log_in_as_bob() -> None:
        await log_in(tmp_path, "bob", "r-bob")

    authority.refreshing = log_in_as_bob
    async with connection(tmp_path, authority) as client:
        assert (await client.get(URL)).status_code == 200
    kept = file.kept()
    assert kept
    assert kept.tokens["access_token"] == "bob"
    assert authority.used == ["Bearer bob"]


async def test_a_connection_goes_by_what_people_did_since_it_was_opened(tmp_path: Path) -> None:
    authority = Authority()
    file = await log_in(tmp_path, "a1", "r1")
    async with connection(tmp_path, authority) as client:
        await client.get(URL)
        await log_in(tmp_path, "bob", "r-bob")
        await client.get(URL)
        file.remove()
        with pytest.raises(Exception, match="a person has to log in again"):
            await client.get(URL)
    assert authority.used == ["Bearer a1", "Bearer bob", None]


async def test_a_token_that_is_refused_before_its_time_is_refreshed_once(tmp_path: Path) -> None:
    """The server ended it, or the clock was ahead when it came, and was set back."""
    authority = Authority()
    file = await log_in(tmp_path, "a0", "r1")
    async with connection(tmp_path, authority) as one, connection(tmp_path, authority) as two:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.get, URL)
            tasks.start_soon(two.get, URL)
        assert authority.refreshed == 1
        assert (await one.post(URL, content=b"x")).status_code == 200
        kept = file.kept()
        assert kept
        assert kept.tokens["access_token"] == authority.used[-1].removeprefix("Bearer ") == "a2"  # type: ignore[union-attr]
        authority.valid = None
        with pytest.raises(Exception, match="a person has to log in again"):
            await one.get(URL)
        assert authority.refreshed == 2


async def test_a_refused_token_without_a_refresh_token_is_not_sent_again(tmp_path: Path) -> None:
    authority = Authority()
    file = await log_in(tmp_path, "a0", "r1")
    said = json.loads(file.path.read_bytes())
    del said["tokens"]["refresh_token"]
    file.path.write_text(json.dumps(said))
    async with connection(tmp_path, authority) as client:
        with pytest.raises(Exception, match="a person has to log in again"):
            await client.get(URL)
    assert (authority.refreshed, authority.used) == (0, ["Bearer a0"])
