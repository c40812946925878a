"""Signing in to and out of the dashboard: one-time links, sign-out, and the page for browsers that are not signed
in."""

from typing import Literal, TypedDict

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from serena_central.access.auth import BrowserAccess, login_of
from serena_central.access.browsers import LINK_LIFE_S, LOGIN_LIFE_S
from serena_central.web.pages.endpoints import Endpoints
from serena_central.web.pages.forms import Form
from serena_central.web.pages.live import LEAVE
from serena_central.web.pages.page import BELOW, Visit
from serena_central.web.pages.rendering import render
from serena_central.web.web_services import WebServices

ENTER = f"{BELOW}/enter"
OPEN_PATHS = (ENTER, f"{BELOW}/static/")


class _Cookie(TypedDict):
    path: str
    httponly: bool
    samesite: Literal["strict"]


COOKIE: _Cookie = {"path": BELOW, "httponly": True, "samesite": "strict"}
"""Out of reach of scripts and of other sites. Not `secure`: the server speaks plain HTTP, on loopback."""


class SignIn:
    """Handlers of the ways in and out."""

    def __init__(self, parts: WebServices, endpoints: Endpoints) -> None:
        self._browsers = parts.browsers
        self._endpoints = endpoints

    def door(self) -> BrowserAccess:
        async def strangers(scope: Scope, receive: Receive, send: Send) -> None:
            await self._to_stranger(scope["path"])(scope, receive, send)

        return BrowserAccess(BELOW, OPEN_PATHS, self._browsers, strangers)

    def one_time_link(self) -> str:
        return f"{ENTER}?key={self._browsers.invite()}"

    def _to_stranger(self, path: str) -> Response:
        if path.startswith(f"{BELOW}/live"):
            return Response(LEAVE, media_type="text/event-stream")
        return self._outside(used=False)

    def _outside(self, *, used: bool) -> Response:
        minutes = round(LINK_LIFE_S / 60)
        return HTMLResponse(render("outside.html", assets=self._endpoints.assets, used=used, minutes=minutes), 401)

    async def enter(self, request: Request) -> Response:
        """Takes a one-time link, and goes on by a page of our own: to a redirect, a browser that another site sent here
        would not give its strict cookie."""
        secret = self._browsers.enter(request.query_params.get("key", ""))
        if secret is None:
            inside = login_of(request.scope) is not None
            return RedirectResponse(BELOW, 303) if inside else self._outside(used=True)
        await anyio.to_thread.run_sync(self._browsers.save)
        html = render("inside.html", assets=self._endpoints.assets, url=BELOW)
        response = HTMLResponse(html)
        response.set_cookie(self._browsers.cookie_name, secret, max_age=int(LOGIN_LIFE_S), **COOKIE)
        return response

    async def leave(self, request: Request) -> Response:
        """Signs this browser out."""

        async def sign_out(_visit: Visit, _form: Form) -> str:
            login = login_of(request.scope)
            if login is not None:
                self._browsers.leave(login)
                self._endpoints.live.sign_out(login)
                await anyio.to_thread.run_sync(self._browsers.save)
            return "Signed out."

        response = await self._endpoints.action(sign_out)(request)
        if response.status_code < 400:
            response.delete_cookie(self._browsers.cookie_name, **COOKIE)
        return response
