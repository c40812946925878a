"""CSRF protection: accepts actions only from a page of this server, open in a browser that is signed in.

Browsers say where a request comes from: by `Sec-Fetch-Site` (all since 2023, to loopback and by TLS) and `Origin`,
which the access check compares with this server's names. The token in each form covers what neither tells: another
program that served this port before, and a page of an earlier sign-in. It is a field of the form, so that it works
without JavaScript.
"""

import hmac

from starlette.requests import Request

from serena_central.access.auth import is_from_own_page, login_of
from serena_central.access.browsers import Login
from serena_central.core.errors import SerenaCentralError

FIELD = "csrf"


class ForeignRequest(SerenaCentralError):
    """An action that no page of this server, opened by this browser, has sent."""


def login_required(request: Request) -> Login:
    """The browser's sign-in.

    Raises:
        ForeignRequest: there is none; a path that is open to everybody must not ask.
    """
    login = login_of(request.scope)
    if login is None:
        raise ForeignRequest("This browser is not signed in. Run `serena-central dashboard` to open the dashboard.")
    return login


def check_sender(request: Request) -> None:
    """Raises ForeignRequest."""
    site = request.headers.get("sec-fetch-site", "same-origin")  # proxies and older browsers leave it out
    if site != "same-origin" or not is_from_own_page(request.scope):
        raise ForeignRequest("The request did not come from a page of this server. Open the dashboard and try again.")


def check_token(given: str, login: Login) -> None:
    """Raises ForeignRequest."""
    if not hmac.compare_digest(given.encode(), login.csrf.encode()):
        raise ForeignRequest("This page has expired. Reload it and try again.")
