"""Everything below /dashboard, to the rest of the server.

The pages themselves, with what renders them, are imported at the first request for one.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import BrowserAccess, user_of
from serena_central.access.browsers import LINK_LIFE_S
from serena_central.core.late_imports import import_to_stay
from serena_central.sessions.users import User
from serena_central.web.pages.live import Live
from serena_central.web.pages.page import BELOW
from serena_central.web.responses import body_of
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.web.pages.table import Pages

ENTER = f"{BELOW}/enter"
SIGN_IN = f"{BELOW}/sign-in"
OPEN_PATHS = (ENTER, SIGN_IN, f"{BELOW}/static/")


class AskLink(msgspec.Struct, forbid_unknown_fields=True):
    """`here_alone`: the link works only in a browser of this machine that the server's own user runs."""

    here_alone: bool = False


class Dashboard:
    """Belongs to the event loop's thread."""

    def __init__(self, parts: WebServices) -> None:
        self.parts = parts
        self.live = Live(parts.bus)
        self._loading = anyio.Lock()
        self._pages: Pages | None = None

    def door(self) -> BrowserAccess:
        """What the access check needs to know."""

        async def strangers(scope: Scope, receive: Receive, send: Send) -> None:
            await (await self.pages()).sign_in.to_stranger(scope["path"])(scope, receive, send)

        return BrowserAccess(BELOW, OPEN_PATHS, self.parts.browsers, strangers)

    def one_time_link(self, user: str = "", *, here_alone: bool = False) -> str:
        """The path of a link that lets one browser in; `user`: the `login` of a team's user; `here_alone`: a browser of
        this machine that the server's own user runs."""
        return f"{ENTER}?key={self.parts.browsers.invite(user, here_alone=here_alone)}"

    async def invite(self, request: Request) -> Any:
        """For the command line, which has shown the token."""
        asked = await body_of(request, AskLink)
        user = user_of(request.scope)
        path = self.one_time_link("" if user is None else user.login, here_alone=asked.here_alone)
        return {"path": path, "good_for_s": LINK_LIFE_S}

    def sign_out(self, user: User) -> None:
        """Signs out all browsers that came in by a token that a team's user had, and ends their streams."""
        for login in self.parts.browsers.sign_out_user(user.login):
            self.live.sign_out(login)

    def routes(self) -> list[BaseRoute]:
        pages = _Pages(self.pages)
        return [Route(BELOW, pages), Route(BELOW + "/{page:path}", pages)]

    async def pages(self) -> "Pages":
        """What answers browsers; imported by the first call."""
        async with self._loading:
            if self._pages is None:
                pages = await anyio.to_thread.run_sync(self._load)
                await self.parts.recall.ready()
                self._pages = pages
            return self._pages

    def _load(self) -> "Pages":
        import_to_stay("serena_central.web.pages.table")
        from serena_central.web.pages.table import Pages

        return Pages(self.parts, self.live)


class _Pages:
    """An ASGI application: a route takes functions for something else."""

    def __init__(self, loaded: "Callable[[], Awaitable[Pages]]") -> None:
        self._loaded = loaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pages = await self._loaded()
        await pages.router({**scope, "path_params": {}}, receive, send)
