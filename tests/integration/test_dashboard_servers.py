"""Language servers in the dashboard: seen, restarted and stopped over real HTTP."""

from pathlib import Path

import pytest

from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(central: RunningCentral, tmp_path: Path) -> str:
    """The id of a server that runs for a project with a hostile name."""
    root = tmp_path / "<b>shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart: ...\n")
    async with central.http() as http:
        wanted = {"arguments": {"name_path_pattern": "Cart", "project": str(root)}}
        assert (await http.post("/api/v1/tools/find_symbol", json=wanted)).status_code == 200
        ((server,),) = [(await http.get("/api/v1/servers")).json()["servers"]]
        return server["id"]


async def test_a_server_is_restarted_and_stopped_by_its_buttons(visitor: Visitor, server: str) -> None:
    page = f"/servers/{server}"
    assert (await visitor.act("/servers/restart", {"server": server, "back": f"/dashboard{page}"})).status_code == 303
    assert "2, 1 restart" in shown(await visitor.see(page))
    said = await visitor.act("/servers/stop", {"server": server}, {"hx-request": "true"})
    assert "was stopped in &lt;b&gt;shop" in said.text
    html = await visitor.see(page)
    assert "requested in the dashboard" in html
    assert 'id="stop"' not in html
    said = await visitor.act("/servers/close-breaker", {"server": server}, {"hx-request": "true"})
    assert "can be started" in said.text
    assert (await visitor.act("/servers/restart", {"server": "none"})).status_code == 404


async def test_actions_on_servers_need_the_browsers_token(visitor: Visitor, server: str) -> None:
    for action in ("restart", "stop", "close-breaker"):
        refused = await visitor.act(f"/servers/{action}", {"server": server, "csrf": "0" * 64})
        assert refused.status_code == 403
        assert (await visitor.http.get(f"/dashboard/servers/{action}")).status_code == 404
    assert "1, 0 restarts" in shown(await visitor.see(f"/servers/{server}"))


async def test_names_of_folders_are_text_on_pages_of_servers(visitor: Visitor, server: str) -> None:
    for page in ("/servers", f"/servers/{server}"):
        html = await visitor.see(page)
        assert "&lt;b&gt;shop" in html
        assert "<b>shop" not in html


async def test_a_server_that_is_gone_has_no_page(visitor: Visitor) -> None:
    response = await visitor.http.get("/dashboard/servers/none")
    assert response.status_code == 404
    assert "no longer shown" in response.text
