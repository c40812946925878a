"""The dashboard behind a proxy where TLS ends: the browser says https, the server speaks plain HTTP."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from tests.support.browser import Visitor
from tests.support.central import RunningCentral, running_central
from tests.support.team import added, project

pytestmark = pytest.mark.anyio

PUBLIC = "https://serena.example"
PUBLIC_HOST = "serena.example"


@pytest.fixture(params=[PUBLIC, f"{PUBLIC}:443"])
async def central(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"central_server_url": f"{request.param}/mcp"}) as central:
        yield central


class Proxy(httpx.AsyncHTTPTransport):
    """Speaks plain HTTP to the server, as a browser speaks TLS to the proxy."""

    def __init__(self, url: str, host: str) -> None:
        super().__init__()
        self._url = httpx.URL(url)
        self._host = host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
        sent = httpx.Request(
            request.method, url, headers=[(b"host", self._host.encode()), *headers], stream=request.stream
        )
        return await super().handle_async_request(sent)


def browser(central: RunningCentral, host: str = PUBLIC_HOST) -> httpx.AsyncClient:
    """`host` is what the proxy sends as the Host header."""
    proxy, headers = Proxy(central.url, host), {"sec-fetch-site": "same-origin"}
    return httpx.AsyncClient(base_url=PUBLIC, transport=proxy, headers=headers, timeout=60)


@pytest.mark.parametrize("keeps_host", [True, False])
async def test_actions_of_the_dashboards_own_pages_are_done(
    central: RunningCentral, tmp_path: Path, *, keeps_host: bool
) -> None:
    host = PUBLIC_HOST if keeps_host else httpx.URL(central.url).netloc.decode()
    shop = project(tmp_path / "shop", "Shop")
    async with browser(central, host) as http, central.http() as api:
        session = (await api.post("/api/v1/sessions", json={"working_folder": str(shop)})).json()["session_id"]
        arguments = {"relative_path": "cart.py", "needle": "return 0", "repl": "return 1", "mode": "literal"}
        made = await api.post(
            "/api/v1/tools/replace_content", json={"arguments": {**arguments, "project": str(shop)}, "session": session}
        )
        assert made.status_code == 200, made.text
        (edit,) = (await api.get("/api/v1/edits")).json()["edits"]
        assert (await http.get(central.central.dashboard.one_time_link())).status_code == 200
        visitor = Visitor(http, PUBLIC)
        for path, fields in (("/undo", {"edit": edit["id"]}), ("/terminate", {"session": session})):
            done = await visitor.act(path, fields)
            assert done.status_code == 303, done.text
        assert "return 0" in (shop / "cart.py").read_text()
        assert (await api.get(f"/api/v1/sessions/{session}")).json()["terminated_by"]
        assert (await visitor.act("/sign-out")).status_code == 303
        assert (await http.get("/dashboard")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://serena.example:8443"},
        {"origin": "null"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "127.0.0.1:{port}", "origin": "http://localhost:{port}"},
        {"host": "127.0.0.1:{port}", "origin": "https://127.0.0.1:{port}"},
    ],
)
async def test_actions_from_elsewhere_are_refused(central: RunningCentral, headers: dict[str, str]) -> None:
    port = str(httpx.URL(central.url).port)
    sent = {name: value.replace("{port}", port) for name, value in headers.items()}
    async with browser(central, sent.pop("host", PUBLIC_HOST)) as http:
        assert (await http.get(central.central.dashboard.one_time_link())).status_code == 200
        visitor = Visitor(http, PUBLIC)
        assert (await visitor.act("/sign-out", headers=sent)).status_code == 403
        assert await visitor.see()


async def test_the_cookie_is_for_tls_alone_where_the_browser_came_by_it(central: RunningCentral) -> None:
    link = central.central.dashboard.one_time_link
    async with browser(central) as http, httpx.AsyncClient(base_url=central.url) as beside:
        assert "secure" in _attributes(await http.get(link()))
        assert "secure" not in _attributes(await beside.get(link()))


async def test_a_user_signs_in_with_the_token_and_is_told_what_is_refused(central: RunningCentral) -> None:
    async with browser(central) as http, central.http() as owner:
        token = await added(owner, "ada")
        foreign = await http.post(
            "/dashboard/sign-in", data={"token": token}, headers={"origin": PUBLIC, "sec-fetch-site": "cross-site"}
        )
        assert (foreign.status_code, "did not come from a page of this server" in foreign.text) == (401, True)
        answer = await http.post("/dashboard/sign-in", data={"token": token}, headers={"origin": PUBLIC})
        assert answer.status_code == 200, answer.text
        assert "secure" in _attributes(answer)
        assert (await http.get("/dashboard/sessions")).status_code == 200


def _attributes(response: httpx.Response) -> set[str]:
    return {part.strip().lower() for part in response.headers["set-cookie"].split(";")[1:]}
