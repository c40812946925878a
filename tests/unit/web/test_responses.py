import json

import pytest
from starlette.requests import Request

from serena_central.core import errors
from serena_central.web.query import DEFAULT_ROWS, LIMIT, MOST_ROWS, check_query, limit_in
from serena_central.web.responses import answering, body_of

pytestmark = pytest.mark.anyio


def request(body: bytes = b"", query: str = "") -> Request:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": query.encode()}
    return Request(scope, receive)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (errors.SessionNotFound("s"), 404, "session_not_found"),
        (errors.PathNotFound("x"), 404, "path_not_found"),
        (errors.PathOutsideProject("x", "/r"), 400, "path_outside_project"),
        (errors.ServerCrashed("ty", -9, ""), 502, "server_crashed"),
        (errors.ServerUnavailable("ty", "later"), 503, "server_unavailable"),
        (errors.DeadlineExceeded("x", 60), 504, "deadline_exceeded"),
        (errors.SerenaCentralError("something else"), 400, "serena_central_error"),
    ],
)
async def test_each_error_has_its_status_and_kind(error: errors.SerenaCentralError, status: int, kind: str) -> None:
    async def fail(_request: Request) -> None:
        raise error

    response = await answering(fail)(request())
    assert response.status_code == status
    assert json.loads(bytes(response.body)) == {"error": {"kind": kind, "message": str(error)}}


async def test_a_bug_is_told_as_an_id_only() -> None:
    async def fail(_request: Request) -> None:
        raise ValueError("a secret")

    response = await answering(fail)(request())
    assert response.status_code == 500
    assert b"a secret" not in bytes(response.body)


async def test_an_empty_body_is_an_empty_object() -> None:
    assert await body_of(request(), dict) == {}


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
async def test_a_body_of_another_shape_is_refused(body: bytes) -> None:
    with pytest.raises(errors.InvalidArguments):
        await body_of(request(body), dict)


def test_numbers_in_the_query_are_bounded() -> None:
    assert limit_in(request()) == DEFAULT_ROWS
    for text in ("0", "10", str(MOST_ROWS)):
        check_query(request(query=f"limit={text}"), [LIMIT])
        assert limit_in(request(query=f"limit={text}")) == int(text)
    for text in (str(MOST_ROWS + 1), "-1", "", "1.5", "x"):
        with pytest.raises(errors.InvalidArguments, match="limit"):
            check_query(request(query=f"limit={text}"), [LIMIT])
