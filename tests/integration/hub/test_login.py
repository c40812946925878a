"""Logins at remote upstreams, against a real authorization server on loopback."""

import json
import secrets
import stat
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from anyio.streams.text import TextReceiveStream
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from tests.support.central import running_central
from tests.support.child import PROGRAM, environment, free_port, run_command
from tests.support.mcp import text_of
from tests.support.serving import serving
from tests.support.upstreams import QUICK, settings_of_user

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


class Authorities:
    """An authorization server that lets everybody in who asks; the methods are the SDK's."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.refreshed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        assert client.client_id
        code = secrets.token_urlsafe()
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            **params.model_dump(include={"code_challenge", "redirect_uri", "redirect_uri_provided_explicitly"}),
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issued(client.client_id)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: Any) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.refreshed += 1
        return self._issued(client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None: ...

    def _issued(self, client: str) -> OAuthToken:
        access, refresh = f"canary-access-{secrets.token_hex()}", f"canary-refresh-{secrets.token_hex()}"
        self.access[access] = AccessToken(token=access, client_id=client, scopes=[])
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)


@asynccontextmanager
async def closed_server(authorities: Authorities, kind: str) -> AsyncGenerator[str]:
    """An MCP server that answers to nobody without a token; the URL."""
    port = free_port()
    url, path = f"http://127.0.0.1:{port}", "/mcp" if kind == "http" else "/sse"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(url),
        resource_server_url=AnyHttpUrl(url + path),
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    server = MCPServer("closed", auth_server_provider=authorities, auth=settings)

    @server.tool()
    async def echo(text: str) -> str:
        """Echoes."""
        return text

    app = server.streamable_http_app() if kind == "http" else server.sse_app()
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, port=port)
    async with serving(uvicorn.Server(config), port):
        yield url + path


def project(folder: Path) -> Path:
    root = folder / "shop"
    (root / ".git").mkdir(parents=True, exist_ok=True)
    return root


async def logged_in(folder: Path, user: Path) -> str:
    """Runs `serena-central mcp login far`, and does what a browser would do; what it printed."""
    command = [str(PROGRAM), "mcp", "login", "far", "--no-browser", "--project", str(project(folder))]
    variables = environment(folder, CLAUDE_CONFIG_DIR=str(user))
    async with await anyio.open_process(command, cwd=folder, env=variables, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        said = ""
        async for text in TextReceiveStream(process.stdout):
            said += text
            if "Log in here: " in text:
                address = said.partition("Log in here: ")[2].splitlines()[0]
                async with httpx.AsyncClient(follow_redirects=True, timeout=60) as browser:
                    page = await browser.get(address)
                assert "You are logged in" in page.text
        assert await process.wait() == 0, said
    return said


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_person_logs_in_once_and_the_server_refreshes_the_tokens(tmp_path: Path, user: Path, kind: str) -> None:
    authorities = Authorities()
    async with closed_server(authorities, kind) as url:
        settings_of_user(user, {"far": {"type": kind, "url": url}})
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            await client.call("far__echo", text="x")
            hub = await running.central.upstreams.hub()
            with anyio.fail_after(30):
                while "run `serena-central mcp login far`" not in hub.upstreams()[0].why:
                    await anyio.sleep(0.01)
        said = await logged_in(tmp_path, user)
        assert "Logged in at far" in said
        (kept,) = (tmp_path / "home" / "logins").glob("*.json")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert "canary" not in said
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            assert text_of(await client.call("far__echo", text="1")) == "1"
        assert authorities.refreshed == 0
        before = json.loads(kept.read_bytes())
        kept.write_text(json.dumps(before | {"expires_at": 1.0}))
        authorities.access.clear()
        async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
            assert text_of(await client.call("far__echo", text="2")) == "2"
        assert authorities.refreshed == 1
        assert json.loads(kept.read_bytes())["tokens"] != before["tokens"]
        for file in [*(tmp_path / "home" / "logs").rglob("*"), *(tmp_path / "home" / "upstreams").iterdir()]:
            assert file.is_dir() or "canary" not in file.read_text()
        there = ("--project", str(project(tmp_path)))
        ended = await run_command(tmp_path, "mcp", "logout", "far", *there, CLAUDE_CONFIG_DIR=str(user))
        assert (ended.code, kept.exists()) == (0, False)
        again = await run_command(tmp_path, "mcp", "logout", "far", *there, CLAUDE_CONFIG_DIR=str(user))
        assert "There is no login at far" in again.out


async def test_a_login_where_there_is_none_says_so(tmp_path: Path, user: Path) -> None:
    settings_of_user(user, {"own": {"command": "true"}, "gone": {"url": f"http://127.0.0.1:{free_port()}/mcp"}})
    for name, expected in (("own", "not a remote server"), ("gone", "failed"), ("none", "No file has")):
        asked = ("mcp", "login", name, "--project", str(project(tmp_path)), "--no-browser")
        ended = await run_command(tmp_path, *asked, CLAUDE_CONFIG_DIR=str(user))
        assert ended.code != 0
        assert expected in ended.err
        assert "Traceback" not in ended.err
