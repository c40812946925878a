"""Logins at remote upstreams by OAuth 2.1, the MCP SDK's client of it: a person logs in once by `serena-central mcp
login`, the server uses and refreshes the tokens. They are kept in a file per URL, readable by the user alone. Several
connections and processes use the same file: each goes by what it holds then, and none brings back what another ended.
"""

import hashlib
import html
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.abc
import anyio.to_thread
import httpx2
import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl, ValidationError

from serena_central.core.decoding import from_json
from serena_central.core.errors import SerenaCentralError
from serena_central.core.groups import only_cause
from serena_central.core.peers import Address, is_another_users
from serena_central.files.atomic import write_whole
from serena_central.standalone.lock import lock_at_once, locked, open_lock

CALLBACK = "/callback"

EARLY_S = 60
"""A token is refreshed this long before it expires; a short-lived one in the second half of its life."""

REQUEST_S = 30
"""For one request to the server, and for another connection or process to refresh a token."""

REFRESH_POLL_S = 0.05

MAX_REQUEST_BYTES = 16_384

_ENDS = anyio.abc.SocketAttribute.remote_address, anyio.abc.SocketAttribute.local_address


class _Kept(msgspec.Struct, kw_only=True):
    """The file. `expires_at` in Unix seconds; the others as the SDK dumps them."""

    url: str
    tokens: dict[str, Any]
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None
    expires_at: float | None = None

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and time.time() > self.expires_at

    @property
    def secrets(self) -> list[str]:
        found = [self.tokens.get(name) for name in ("access_token", "refresh_token")]
        return [one for one in (*found, (self.client or {}).get("client_secret")) if one]


def _is_over(kept: _Kept | None, refused: _Kept | None) -> bool:
    """Whether only a refresh makes a login good for another request."""
    return kept is not None and (kept.has_expired or kept == refused)


class TokenFile:
    """The tokens for one URL; the SDK's TokenStorage, for one that knows nothing at first. Reads and writes a small
    file, which others may change at any time."""

    def __init__(self, folder: Path, url: str) -> None:
        digest = hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self.path = folder / f"{digest}.json"
        self._url = url
        self._lock = self.path.with_suffix(".lock")
        self._client: OAuthClientInformationFull | None = None
        self.refreshed: _Kept | None = None
        """The login that new tokens are for: nothing else is replaced by them. None where a person logs in."""
        self.server: Callable[[], OAuthMetadata | None] = lambda: None

    def kept(self) -> _Kept | None:
        try:
            found = from_json(self.path.read_bytes(), _Kept)
        except (OSError, msgspec.MsgspecError):
            return None
        return found if found.url == self._url else None

    def remove(self) -> bool:
        """Whether there was one.

        Raises:
            OSError
        """
        try:
            with locked(self._lock):
                self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    @asynccontextmanager
    async def refreshing(self) -> AsyncGenerator[None]:
        """For one connection at a time, of all processes: a refresh token may be used once. A lock of its own, so that
        nobody waits for the network to log in or out.

        Raises:
            OAuthFlowError: another one does not come to an end.
            OSError
        """
        descriptor = open_lock(self.path.with_suffix(".refresh.lock"))
        try:
            with anyio.move_on_after(REQUEST_S) as limit:
                while not lock_at_once(descriptor):  # noqa: ASYNC110 - locks of files have no events
                    await anyio.sleep(REFRESH_POLL_S)
            if limit.cancelled_caught:
                raise OAuthFlowError("another process has been refreshing the login for too long; try again")
            yield
        finally:
            os.close(descriptor)

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info

    async def set_tokens(self, tokens: OAuthToken) -> None:
        client, server, life = self._client, self.server(), tokens.expires_in
        kept = _Kept(
            url=self._url,
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            client=client.model_dump(mode="json", exclude_none=True) if client else None,
            server=server.model_dump(mode="json", exclude_none=True) if server else None,
            expires_at=time.time() + life - min(EARLY_S, life / 2) if life else None,
        )
        # Shielded: the refresh token is used up, and these are what came for it.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write, kept)

    def _write(self, kept: _Kept) -> None:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        with locked(self._lock):
            if self.refreshed in (None, self.kept()):
                write_whole(self.path, msgspec.json.encode(kept))


def token_login(tokens: TokenFile, learn: Callable[[list[str]], None]) -> OAuthClientProvider | None:
    """Authorizes requests by kept tokens, and refreshes them; None where nobody has logged in. `learn` is called with
    the secrets of each login before they are used."""
    found = tokens.kept()
    return None if found is None else _KeptLogin(found.url, tokens, learn)


class _KeptLogin(OAuthClientProvider):
    """Authorizes each request by the login that the file holds then. The SDK's client, for refreshing that; where the
    server does not take it, only a person can do more."""

    def __init__(self, url: str, tokens: TokenFile, learn: Callable[[list[str]], None]) -> None:
        super().__init__(url, _metadata("http://127.0.0.1" + CALLBACK), tokens)
        self._tokens = tokens
        self._learn = learn
        tokens.server = lambda: self.context.oauth_metadata

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        refused: _Kept | None = None
        while True:
            kept = self._tokens.kept()
            if _is_over(kept, refused):
                async with self._tokens.refreshing():
                    kept = self._tokens.kept()  # by now another one may have refreshed it
                    if kept is not None and _is_over(kept, refused) and await self._can_refresh(kept):
                        self.context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
                        refresh = await self._refresh_token()
                        refresh.extensions["timeout"] = httpx2.Timeout(REQUEST_S).as_dict()
                        response = yield refresh
                        await self._handle_refresh_response(response)
                        kept = self._tokens.kept()
            if refused is not None and kept in (None, refused):
                break
            if kept is not None:
                self._learn(kept.secrets)
                request.headers["Authorization"] = f"Bearer {kept.tokens.get('access_token')}"
            response = yield request
            if extract_field_from_www_auth(response, "error") == "insufficient_scope":
                break
            if response.status_code != 401:
                return
            if kept is None or refused is not None:
                break
            # The server may end a token early, and a clock that was set back makes an old one seem young.
            refused = kept
        raise OAuthFlowError("the login is over; a person has to log in again")

    async def _can_refresh(self, kept: _Kept) -> bool:
        """Whether the SDK's client can: it takes this login over for that, and no other one is replaced."""
        context, self._tokens.refreshed = self.context, kept
        with suppress(ValidationError):
            context.current_tokens = OAuthToken.model_validate(kept.tokens)
            context.client_info = OAuthClientInformationFull.model_validate(kept.client) if kept.client else None
            context.oauth_metadata = OAuthMetadata.model_validate(kept.server) if kept.server else None
            if context.client_info is not None:
                await self._tokens.set_client_info(context.client_info)
            return context.can_refresh_token()
        return False


def _metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="serena-central",
        redirect_uris=[AnyUrl(redirect)],
        token_endpoint_auth_method="none",  # noqa: S106 - a public client
    )


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
        metadata = _metadata(f"http://127.0.0.1:{port}{CALLBACK}")
        provider = OAuthClientProvider(self._url, metadata, self._tokens, self._redirect, self._answered.receive)
        self._tokens.server = lambda: provider.context.oauth_metadata
        async with self._answers, self._answered, listener, anyio.create_task_group() as tasks:
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
            # The login's address stands in the browser's command line: others could log in there as themselves.
            peer, own = (cast("Address", stream.extra(end)) for end in _ENDS)  # noqa: S610 - no Django
            is_foreign = await anyio.to_thread.run_sync(is_another_users, peer, own)
            said = "You are logged in, and can close this page." if "code" in query else "The login failed: "
            said += "" if "code" in query else query.get("error_description", query.get("error", "not found"))
            if is_foreign:
                said = "The login failed: it belongs to another user of this machine."
            body = f"<!doctype html><title>serena-central</title><p>{html.escape(said)}</p>".encode()
            status = "403 Forbidden" if is_foreign else "200 OK" if wanted else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
            with suppress(anyio.BrokenResourceError):
                await stream.send(head.encode() + b"connection: close\r\n\r\n" + body)
            if wanted and not is_foreign:
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
