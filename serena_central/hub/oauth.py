"""Logins at remote upstreams by OAuth 2.1, the MCP SDK's client of it: a person logs in once by `serena-central mcp
login`, the server uses and refreshes the tokens. They are kept in a file per URL, readable by the user alone.
"""

import hashlib
import html
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.abc
import httpx2
import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp.shared.exceptions import MCPError
from pydantic import AnyUrl, ValidationError

from serena_central.core.decoding import from_json
from serena_central.core.errors import SerenaCentralError
from serena_central.core.groups import only_cause

logger = logging.getLogger(__name__)

CALLBACK = "/callback"

EARLY_S = 60
"""A token is refreshed this long before it expires."""

REQUEST_S = 30
"""For one request to the server."""

MAX_REQUEST_BYTES = 16_384


class _Kept(msgspec.Struct, kw_only=True):
    """The file. `expires_at` in Unix seconds; the others as the SDK dumps them."""

    url: str
    tokens: dict[str, Any]
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None
    expires_at: float | None = None


class TokenFile:
    """The tokens for one URL; the SDK's TokenStorage. Reads and writes a small file."""

    def __init__(self, folder: Path, url: str) -> None:
        digest = hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self.path = folder / f"{digest}.json"
        self._url = url
        self._client: OAuthClientInformationFull | None = None
        self.starts_over = False
        """With it no client and no token is known at first: a person logs in."""
        self.server: Callable[[], OAuthMetadata | None] = lambda: None

    def kept(self) -> _Kept | None:
        try:
            found = from_json(self.path.read_bytes(), _Kept)
        except (OSError, msgspec.MsgspecError):
            return None
        return found if found.url == self._url else None

    def secrets(self) -> list[str]:
        found = self.kept()
        names = ("access_token", "refresh_token")
        client = [found.client.get("client_secret")] if found and found.client else []
        return [one for one in [*(found.tokens.get(name) for name in names), *client] if one] if found else []

    def remove(self) -> bool:
        """Whether there was one."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    async def get_tokens(self) -> OAuthToken | None:
        found = None if self.starts_over else self.kept()
        with suppress(ValidationError):
            return OAuthToken.model_validate(found.tokens) if found else None
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        found = None if self.starts_over else self.kept()
        with suppress(ValidationError):
            return OAuthClientInformationFull.model_validate(found.client) if found and found.client else self._client
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def set_tokens(self, tokens: OAuthToken) -> None:
        client, server = self._client or await self.get_client_info(), self.server()
        kept = _Kept(
            url=self._url,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            client=client.model_dump(mode="json", exclude_none=True) if client else None,
            server=server.model_dump(mode="json", exclude_none=True) if server else None,
            expires_at=time.time() + tokens.expires_in - EARLY_S if tokens.expires_in else None,
        )
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        made = self.path.with_suffix(f".{os.getpid()}.new")
        with suppress(FileNotFoundError):
            made.unlink()
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(kept))
        made.replace(self.path)


async def _nobody(_url: str = "") -> AuthorizationCodeResult:
    raise OAuthFlowError("the login is over; a person has to log in again")


def token_login(tokens: TokenFile) -> OAuthClientProvider | None:
    """Authorizes requests by kept tokens, and refreshes them; None where nobody has logged in."""
    found = tokens.kept()
    if found is None:
        return None
    provider = _provider(found.url, tokens, "http://127.0.0.1" + CALLBACK, _no_redirect, _nobody)
    provider.context.token_expiry_time = found.expires_at
    with suppress(ValidationError):
        provider.context.oauth_metadata = OAuthMetadata.model_validate(found.server) if found.server else None
    return provider


async def _no_redirect(_url: str) -> None:
    await _nobody()


def _provider(
    url: str,
    tokens: TokenFile,
    redirect: str,
    show: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="serena-central",
        redirect_uris=[AnyUrl(redirect)],
        token_endpoint_auth_method="none",  # noqa: S106 - a public client
    )
    provider = OAuthClientProvider(url, metadata, tokens, redirect_handler=show, callback_handler=answer)
    tokens.server = lambda: provider.context.oauth_metadata
    return provider


class PersonalLogin:
    """A login by a person's browser, which comes back to a port of this machine. Used as an async context."""

    def __init__(self, url: str, tokens: TokenFile, show: Callable[[str], None]) -> None:
        """`show` is called with the address that the person has to open."""
        self._url = url
        self._tokens = tokens
        self._show = show
        self._answers, self._answered = anyio.create_memory_object_stream[AuthorizationCodeResult](1)

    async def run(self, use: Callable[[OAuthClientProvider], Awaitable[None]]) -> None:
        """Calls `use` with what authorizes its requests; the browser's answer is awaited while it runs."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - no Django
        self._tokens.starts_over = True
        provider = _provider(
            self._url, self._tokens, f"http://127.0.0.1:{port}{CALLBACK}", self._redirect, self._answered.receive
        )
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._come_back)
            try:
                await use(provider)
            finally:
                tasks.cancel_scope.cancel()

    async def _redirect(self, url: str) -> None:
        self._show(url)

    async def _come_back(self, stream: anyio.abc.SocketStream) -> None:
        """One request of the browser."""
        data = b""
        async with stream:
            with anyio.move_on_after(10), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while b"\r\n\r\n" not in data and len(data) < MAX_REQUEST_BYTES:
                    data += await stream.receive()
            target = urlsplit([*data.split(b" ", 2), b"", b""][1].decode("ascii", "replace"))
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            wanted = target.path == CALLBACK and ("code" in query or "error" in query)
            said = "You are logged in, and can close this page." if "code" in query else "The login failed: "
            said += "" if "code" in query else query.get("error_description", query.get("error", "not found"))
            body = f"<!doctype html><title>serena-central</title><p>{html.escape(said)}</p>".encode()
            status = "200 OK" if wanted else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
            with suppress(anyio.BrokenResourceError):
                await stream.send(head.encode() + b"connection: close\r\n\r\n" + body)
            if wanted:
                with suppress(anyio.WouldBlock):
                    self._answers.send_nowait(
                        AuthorizationCodeResult(
                            code=query.get("code", ""), state=query.get("state"), iss=query.get("iss")
                        )
                    )


async def log_in_at(
    name: str, url: str, kind: str, tokens: TokenFile, show: Callable[[str], None], timeout_s: float
) -> None:
    """Connects to a server (`kind` is `http` or `sse`), and has a person log in where it wants that. The tokens are
    kept then.

    Raises:
        SerenaCentralError: nobody logged in, or the server refused it.
    """

    async def use(provider: OAuthClientProvider) -> None:
        async with AsyncExitStack() as stack:
            if kind == "sse":
                streams = await stack.enter_async_context(sse_client(url, timeout=REQUEST_S, auth=provider))
            else:
                http = await stack.enter_async_context(httpx2.AsyncClient(auth=provider, timeout=REQUEST_S))
                streams = await stack.enter_async_context(streamable_http_client(url, http_client=http))
            session = await stack.enter_async_context(ClientSession(*streams[:2]))
            await session.initialize()

    try:
        with anyio.fail_after(timeout_s):
            await PersonalLogin(url, tokens, show).run(use)
    except TimeoutError as error:
        raise SerenaCentralError(f"Nobody logged in at {name} within {timeout_s:.0f} s.") from error
    except (ExceptionGroup, MCPError, OAuthFlowError, httpx2.HTTPError, OSError) as error:
        raise SerenaCentralError(f"The login at {name} failed: {only_cause(error)}.") from error
