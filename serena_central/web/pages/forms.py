"""Forms that people send: read, and refused unless a page of this very server sent them in this browser.

Browsers say where a request comes from: by `Sec-Fetch-Site` (all since 2023, to loopback and by TLS) and `Origin`. The
token in each form covers what neither tells: another program that served this port before, and a page of an earlier
sign-in. It is a field of the form, so that it works without JavaScript.
"""

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from starlette.requests import Request

from serena_central.access.auth import login_of
from serena_central.access.browsers import Login
from serena_central.core.errors import InvalidArguments, SerenaCentralError

MAX_FORM_BYTES = 256 * 1024
MAX_FIELDS = 2000

Form = Mapping[str, Sequence[str]]
"""Names of fields → their values."""


class ForeignRequest(SerenaCentralError):
    """An action that no page of this server, opened by this browser, has sent."""


def login_required(request: Request) -> Login:
    """The browser's sign-in. Raises ForeignRequest: below a path that is open to strangers, somebody forgot them."""
    login = login_of(request.scope)
    if login is None:
        raise ForeignRequest("This browser is not signed in. Run `serena-central dashboard` to open the dashboard.")
    return login


async def read_form(request: Request) -> Form:
    """The fields of an action that may be done.

    Raises:
        ForeignRequest: it comes from elsewhere.
        InvalidArguments: it is no form.
    """
    login = login_required(request)
    _check_sender(request)
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise InvalidArguments(f"The limit for a form is {MAX_FORM_BYTES} bytes.")
    try:
        form = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise InvalidArguments("This form can't be read.") from error
    (given, *_) = form.get("csrf", [""])
    if not hmac.compare_digest(given.encode(), login.csrf.encode()):
        raise ForeignRequest("This page has expired. Reload it and try again.")
    return form


def _check_sender(request: Request) -> None:
    """Raises ForeignRequest."""
    own = f"{request.url.scheme}://{request.headers['host']}"
    site = request.headers.get("sec-fetch-site", "same-origin")  # proxies and older browsers leave it out
    if site != "same-origin" or request.headers.get("origin") != own:
        raise ForeignRequest("The request did not come from a page of this server. Open the dashboard and try again.")
