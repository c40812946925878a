"""The access check in front of every route: Host, Origin, token and sizes, before any application code runs.

Plain ASGI on raw header bytes: it costs some microseconds per request. It knows routes only by the list of open paths,
and hands on who called in the ASGI scope: as a credential (`credential_of`), behind the browsers' door as a login.
"""

import ipaddress
import logging
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serena_central.access.browsers import Browsers, Login
from serena_central.access.connections import MOST_HEADERS, authenticate_connection, comes_from_another_user
from serena_central.access.headers import with_safe_headers
from serena_central.access.token import Token
from serena_central.core.errors import ConfigError
from serena_central.sessions.users import User, Users

logger = logging.getLogger(__name__)

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

MAX_BODY_BYTES = 8 * 1024 * 1024
"""A request may carry a whole file to write; nothing that a client sends is larger."""

_CREDENTIAL = "serena_central.credential"
_LOGIN = "serena_central.login"
_USER = "serena_central.user"
_FROM_OWN_PAGE = "serena_central.from_own_page"
_OVER_TLS = "serena_central.over_tls"
_BEARER = b"bearer "
_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}


def credential_of(scope: Scope) -> str:
    """Who sent this request. Only meaningful behind a `AuthGate`."""
    return scope[_CREDENTIAL]


def login_of(scope: Scope) -> Login | None:
    """The browser that sent this request; None in front of the door, and where no browser is asked who it is."""
    return scope.get(_LOGIN)


def is_from_own_page(scope: Scope) -> bool:
    """Whether a browser says that a page of this server sent this request; False in front of the door."""
    return scope.get(_FROM_OWN_PAGE, False)


def is_over_tls(scope: Scope) -> bool:
    """Whether the browser is known to have sent this request over TLS, which ends in front of this server."""
    return scope.get(_OVER_TLS, False)


def user_of(scope: Scope) -> User | None:
    """The user of a team who sent this request; None: whoever holds the server's own token."""
    return scope.get(_USER)


def restricted_user(scope: Scope) -> User | None:
    """The user who sent this request and sees only own things; None for administrators."""
    user: User | None = scope.get(_USER)
    return None if user is None or user.admin else user


def lend_credential(scope: Scope, credential: str) -> None:
    """Marks a request that the server itself makes in a client's name."""
    scope[_CREDENTIAL] = credential


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` (name or address) can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refuse_open_binding(host: str, token: Token | None, allowed_roots: Collection[str]) -> None:
    """Stops a server that would serve a network without asking who calls, or with every folder of its user.

    Raises:
        ConfigError: `host` is not a loopback address, and no token is asked for or no folders are named.
    """
    if is_loopback(host):
        return
    if token is None:
        raise ConfigError("central_server_host", f"{host!r} is reachable from other machines, which requires a token")
    if not allowed_roots:
        raise ConfigError(
            "allowed_roots", f"must name the folders of projects, because {host!r} is reachable from other machines"
        )


class BrowserAccess(NamedTuple):
    """Below `path` the cookie authenticates, not the token. `open_paths` need no authentication; those that end with /
    include all paths below. `strangers` answers requests that are refused."""

    path: str
    open_paths: tuple[str, ...]
    browsers: Browsers
    strangers: ASGIApp

    def leads_to(self, path: str) -> bool:
        return path.startswith(self.path) and path[len(self.path) : len(self.path) + 1] in ("", "/")

    def lets_in(self, path: str, login: Login | None) -> bool:
        return login is not None or any(
            path == one or (one.endswith("/") and path.startswith(one)) for one in self.open_paths
        )


class AuthGate:
    """ASGI middleware. `hosts` are further names that this server may be called by: `name` (any port) or `name:port`;
    `origins` are those of pages that something in front of it serves from it (`https://name`).

    Loopback names are accepted with the port of the listening socket. Pages may call if they come from this server:
    from the very name and port by which they call it, or another one that names the port. Without a token (loopback
    only), everybody who can connect is the credential "anybody".
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: Token | None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        open_paths: Collection[str] = (),
        door: BrowserAccess | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        users: Users | None = None,
    ) -> None:
        """`users` are a team's, beside the holder of the token."""
        self._users = users
        self._app = app
        self._token = token
        self._credential = token.credential if token else "anybody"
        self._open_paths = frozenset(open_paths)
        self._door = door
        self._max_body_bytes = max_body_bytes
        self._hosts = frozenset(host.lower().encode("latin-1") for host in hosts)
        self._hosts_with_port = frozenset(host for host in self._hosts if _without_port(host) != host)
        self._origins = frozenset(origin.lower().encode("latin-1") for origin in origins)
        self._loopback_by_port: dict[int, frozenset[bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        door = self._door if self._door is not None and self._door.leads_to(scope["path"]) else None
        if door is not None:
            send = with_safe_headers(send)
        facts = _facts(scope)
        user = self._user(facts.authorization)
        known = user is not None or self._token_fits(facts.authorization)
        refusal = self._refusal(facts, scope, needs_token=not known and door is None)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        if door is not None:
            scope[_FROM_OWN_PAGE] = bool(facts.origin) and self._is_own_page(facts.origin, facts.host, scope)
            scope[_OVER_TLS] = facts.origin.startswith(b"https:") or b"https://" + facts.host in self._origins
            login = door.browsers.login(facts.cookie)
            if login is not None and login.here_alone and await comes_from_another_user(scope):
                logger.warning("another user of this machine has a cookie of the dashboard; it was refused")
                login = None
            user = (
                self._users.of_login(login.user)
                if login is not None and login.user and self._users and self._users.present
                else None
            )
            if login is not None and login.user and user is None:
                login = None  # the user was revoked or has another token, or is not known yet
            scope[_LOGIN] = login
            if not door.lets_in(scope["path"], login):
                await door.strangers(scope, receive, send)
                return
            known = known or login is not None
        scope[_USER] = user
        scope[_CREDENTIAL] = self._credential if user is None else user.credential
        if known:
            authenticate_connection(scope)
        await self._admit(scope, receive, send, facts.length)

    def _refusal(self, facts: "_Facts", scope: Scope, *, needs_token: bool) -> "_Refusal | None":
        """Why this request may not come in, or None when it may. `needs_token`: it carries none, and the door for
        browsers, which asks for something else, is not where it leads."""
        if len(scope["headers"]) > MOST_HEADERS:
            return _Refusal(431, "too_large", f"The limit is {MOST_HEADERS} headers per request.")
        if not self._host_fits(facts.host, scope["server"]):
            return _Refusal(403, "forbidden", "Host header not allowed. The setting central_server_names adds names.")
        if facts.origin and not self._origin_fits(facts.origin, facts.host, scope):
            return _Refusal(403, "forbidden", "Origin not allowed.")
        if not needs_token or scope["path"] in self._open_paths:
            return None
        return _NO_OAUTH if _asks_for_oauth(scope["path"]) else _UNKNOWN_CALLER

    def _host_fits(self, host: bytes, server: tuple[str, int] | None) -> bool:
        return host in self._loopback(server) or host in self._hosts or _without_port(host) in self._hosts

    def _loopback(self, server: tuple[str, int] | None) -> frozenset[bytes]:
        """This machine's own names for the socket that the request came in by."""
        port = server[1] if server else 0
        found = self._loopback_by_port.get(port)
        if found is None:
            names = [f"{name}:{port}" for name in LOOPBACK_NAMES] + (list(LOOPBACK_NAMES) if port == 80 else [])
            found = self._loopback_by_port[port] = frozenset(name.encode("ascii") for name in names)
        return found

    def _origin_fits(self, origin: bytes, host: bytes, scope: Scope) -> bool:
        """Whether it is an origin whose pages may call this server. `host` has been found to be ours."""
        scheme, _, authority = origin.partition(b"://")
        is_loopback_page = scheme == scope["scheme"].encode("ascii") and authority in self._loopback(scope["server"])
        return is_loopback_page or self._is_own_page(origin, host, scope)

    def _is_own_page(self, origin: bytes, host: bytes, scope: Scope) -> bool:
        """Whether it is the origin of this server's own pages, by the name that they are called by now or one from the
        settings. Another loopback name does not count: somebody else may listen on the same port of ::1."""
        if origin in self._origins:
            return True
        scheme, separator, authority = origin.partition(b"://")
        if not separator or scheme not in _DEFAULT_PORTS:
            return False  # "null", extensions, files
        if authority in self._hosts_with_port:
            return True
        # Where TLS ends in front of us, a page's scheme is another one than that of its requests.
        scheme_fits = scheme == scope["scheme"].encode("ascii") or host not in self._loopback(scope["server"])
        return scheme_fits and _with_port(authority, scheme) == _with_port(host, scheme)

    def _token_fits(self, authorization: bytes) -> bool:
        if self._token is None:
            return True
        return authorization[:7].lower() == _BEARER and self._token.matches(authorization[7:].strip())

    def _user(self, authorization: bytes) -> User | None:
        if self._users is None or not self._users.present or authorization[:7].lower() != _BEARER:
            return None
        return self._users.of_token(authorization[7:].strip())

    async def _admit(self, scope: Scope, receive: Receive, send: Send, length: bytes) -> None:
        if length:
            # The HTTP parser has refused what is not a number, and holds the body to its declared length.
            if int(length) > self._max_body_bytes:
                await self._refuse_body(send)
                return
        elif any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            buffered = await self._read_undeclared(receive)
            if buffered is None:
                await self._refuse_body(send)
                return
            receive = _replay(buffered, receive)
        await self._app(scope, receive, send)

    async def _read_undeclared(self, receive: Receive) -> list[Message] | None:
        """Reads a body of unknown length; None when it is too large."""
        messages: list[Message] = []
        size = 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self._max_body_bytes:
                return None
            if not message.get("more_body", False):
                return messages

    async def _refuse_body(self, send: Send) -> None:
        # The connection stays open: closing it while the client still sends would lose this answer.
        await _refuse(send, 413, "too_large", f"The limit for a request body is {self._max_body_bytes} bytes.")


def _asks_for_oauth(path: str) -> bool:
    """Where clients look for an authorization server (RFC 8414, RFC 9728), and its routes at the places of old."""
    return "/.well-known/" in path or path in ("/register", "/authorize", "/token")


class _Facts(NamedTuple):
    """What of a request's headers decides; names are lower case, absent ones empty."""

    host: bytes
    origin: bytes
    authorization: bytes
    cookie: bytes
    length: bytes


class _Refusal(NamedTuple):
    status: int
    kind: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


_UNKNOWN_CALLER = _Refusal(
    401,
    "unauthorized",
    "A token is required (Authorization: Bearer ...). `serena-central connect` writes client configurations "
    "with the token.",
    ((b"www-authenticate", b'Bearer realm="serena-central"'),),
)

_NO_OAUTH = _Refusal(
    404, "not_found", "This server has no OAuth. It needs its token in a header: `serena-central connect` sets that up."
)
"""What clients that look for an authorization server understand: 401 would send them looking elsewhere."""

_AMBIGUOUS = b"\0"
"""Stands for a header that came twice: it fits nothing."""


def _facts(scope: Scope) -> _Facts:
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    value_of = dict(headers)
    if len(value_of) < len(headers):
        return _facts_of_repeated(headers)
    get = value_of.get
    return _Facts(
        get(b"host", b"").lower(),
        get(b"origin", b"").lower(),
        get(b"authorization", b""),
        get(b"cookie", b""),
        get(b"content-length", b""),
    )


def _facts_of_repeated(headers: list[tuple[bytes, bytes]]) -> _Facts:
    host = origin = authorization = cookie = length = b""
    for name, value in headers:
        if name == b"host":
            host = _AMBIGUOUS if host else value.lower()
        elif name == b"origin":
            origin = _AMBIGUOUS if origin else value.lower()
        elif name == b"authorization":
            authorization = value
        elif name == b"cookie":
            cookie = cookie + b"; " + value if cookie else value
        elif name == b"content-length":
            length = value
    return _Facts(host, origin, authorization, cookie, length)


def _without_port(authority: bytes) -> bytes:
    name, colon, port = authority.rpartition(b":")
    return name if colon and port.isdigit() else authority


def _with_port(authority: bytes, scheme: bytes) -> bytes:
    return authority if _without_port(authority) != authority else authority + _DEFAULT_PORTS[scheme]


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replayed() -> Message:
        for message in waiting:
            return message
        return await receive()

    return replayed


async def _refuse(
    send: Send, status: int, kind: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Answers in the shape of /api's errors."""
    body = msgspec.json.encode({"error": {"kind": kind, "message": message}})
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode("ascii")),
            *headers,
        ],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
