"""Signing in to and out of the dashboard: one-time links, sign-out, and the page for browsers that are not signed
in."""

import logging
from typing import Literal, TypedDict
from urllib.parse import parse_qs

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from serena_central.access.auth import is_over_tls, login_of
from serena_central.access.browsers import LINK_LIFE_S, LOGIN_LIFE_S
from serena_central.access.connections import comes_from_another_user
from serena_central.core.event_kinds import UserSignedIn
from serena_central.web.pages.csrf import ForeignRequest, check_sender
from serena_central.web.pages.endpoints import Endpoints
from serena_central.web.pages.forms import Form
from serena_central.web.pages.live import LEAVE
from serena_central.web.pages.page import BELOW, Visit
from serena_central.web.pages.rendering import render
from serena_central.web.web_services import WebServices

logger = logging.getLogger(__name__)

MOST_BYTES = 4096
"""Of the form with a token."""

NO_USER = "No user has this token."


class _Cookie(TypedDict):
    path: str
    httponly: bool
    samesite: Literal["strict"]
    secure: bool


class SignIn:
    """Handlers of the ways in and out."""

    def __init__(self, parts: WebServices, endpoints: Endpoints) -> None:
        self._users = parts.users
        self._bus = parts.bus
        self._browsers = parts.browsers
        self._endpoints = endpoints

    def to_stranger(self, path: str) -> Response:
        """Answers a browser that is not signed in."""
        if path.startswith(f"{BELOW}/live"):
            return Response(LEAVE, media_type="text/event-stream")
        return self._outside()

    def _outside(self, *, used: bool = False, foreign: bool = False, refused: str = "") -> Response:
        html = render(
            "outside.html",
            assets=self._endpoints.assets,
            used=used,
            foreign=foreign,
            minutes=round(LINK_LIFE_S / 60),
            has_users=self._users.present,
            refused=refused,
        )
        return HTMLResponse(html, 401)

    async def sign_in(self, request: Request) -> Response:
        """Takes the token of a team's user, from the form on the page of those who are not signed in."""
        try:
            check_sender(request)
        except ForeignRequest as error:
            return self._outside(refused=str(error))
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return self._outside(refused=NO_USER)
        try:
            (token, *_) = parse_qs(body.decode(), max_num_fields=10).get("token", [""])
        except ValueError:
            token = ""
        user = self._users.of_token(token.strip().encode()) if self._users.present else None
        if user is None:
            return self._outside(refused=NO_USER)
        self._bus.publish(UserSignedIn(user=user.name))
        return await self._inside(request, self._browsers.admit(user.login))

    async def enter(self, request: Request) -> Response:
        """Takes a one-time link, and goes on by a page of our own: to a redirect, a browser that another site sent here
        would not give its strict cookie."""
        key = request.query_params.get("key", "")
        if self._browsers.is_for_here_alone(key) and await comes_from_another_user(request.scope):
            logger.warning("another user of this machine tried to sign in to the dashboard by a link; it was refused")
            return self._outside(foreign=True)
        secret = self._browsers.enter(key)
        if secret is None:
            inside = login_of(request.scope) is not None
            return RedirectResponse(BELOW, 303) if inside else self._outside(used=True)
        return await self._inside(request, secret)

    async def _inside(self, request: Request, secret: str) -> Response:
        await anyio.to_thread.run_sync(self._browsers.save)
        html = render("inside.html", assets=self._endpoints.assets, url=BELOW)
        response = HTMLResponse(html)
        response.set_cookie(self._browsers.cookie_name, secret, max_age=int(LOGIN_LIFE_S), **_cookie(request))
        return response

    async def leave(self, request: Request) -> Response:
        """Signs this browser out."""

        async def sign_out(_visit: Visit, _form: Form) -> str:
            login = login_of(request.scope)
            if login is not None:
                self._browsers.leave(login)
                self._endpoints.live.sign_out(login.id)
                await anyio.to_thread.run_sync(self._browsers.save)
            return "Signed out."

        response = await self._endpoints.action(sign_out, for_users=True)(request)
        if response.status_code < 400:
            response.delete_cookie(self._browsers.cookie_name, **_cookie(request))
        return response


def _cookie(request: Request) -> _Cookie:
    """Out of reach of scripts and of other sites, and of plain HTTP where the browser came by TLS: others may come
    without it, by loopback."""
    return {"path": BELOW, "httponly": True, "samesite": "strict", "secure": is_over_tls(request.scope)}
