"""Reads forms, bounded. `csrf` decides whether one is accepted."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from starlette.requests import Request

from serena_central.core.errors import InvalidArguments
from serena_central.web.pages.csrf import FIELD, check_sender, check_token, login_required

MAX_FORM_BYTES = 256 * 1024
MAX_FIELDS = 2000

Form = Mapping[str, Sequence[str]]
"""Names of fields → their values."""


async def read_form(request: Request) -> Form:
    """The fields of an action that may be done.

    Raises:
        ForeignRequest: it comes from elsewhere.
        InvalidArguments: it is no form.
    """
    login = login_required(request)
    check_sender(request)
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise InvalidArguments(f"The limit for a form is {MAX_FORM_BYTES} bytes.")
    try:
        form = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise InvalidArguments("This form can't be read.") from error
    (given, *_) = form.get(FIELD, [""])
    check_token(given, login)
    return form


def one_value(form: Form, name: str) -> str:
    """The first value of a field, "" where there is none."""
    (value, *_) = form.get(name, [""])
    return value
