"""Tools tried in the dashboard, and the pages about settings, clients and the server itself, over real HTTP."""

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from serena_central.tools.catalogue import CATALOGUE
from serena_central.web.pages import about, connect, settings, tool, tools
from serena_central.web.pages.page import Visit
from tests.support.browser import Visitor, shown, visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    given = {"execute_shell": True, "database_url": f"sqlite:///{tmp_path}/secret-name.db"}
    async with running_central(tmp_path, given) as running:
        yield running


@pytest.fixture
async def visitor(central: RunningCentral) -> AsyncGenerator[Visitor]:
    async with visiting(central) as browser:
        yield browser


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    x = '<script>alert(1)</script>'\n")
    return root


def visit(central: RunningCentral, **query: str) -> Visit:
    return Visit(central.central.dashboard.parts, {}, query, 0.0)


async def test_a_tool_is_tried_by_the_way_of_every_call(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    given = {"arg-name_path_pattern": "Cart", "arg-include_body": "true", "arg-depth": "1"}
    answer = await visitor.act("/tools/find_symbol", {**given, "arg-project": json.dumps([str(project)])})
    assert answer.status_code == 200
    assert "cart.py" in answer.text
    assert "<script>alert" not in answer.text
    assert 'value="Cart"' in answer.text
    (session,) = central.central.sessions.snapshots()
    assert (session.session_id, session.client_name, session.tool_call_count) == ("dashboard", "dashboard", 1)
    failed = await visitor.act("/tools/find_symbol", {"arg-name_path_pattern": "Cart", "arg-depth": "x"})
    assert "It failed" in failed.text
    assert "depth" in shown(failed.text)


async def test_what_changes_something_is_not_tried(visitor: Visitor, project: Path) -> None:
    fields = {"arg-command": "touch gone", "arg-project": str(project)}
    answer = await visitor.act("/tools/execute_shell_command", fields)
    assert "can&#39;t be tried here" in answer.text
    assert not (project / "gone").exists()
    for name in (one.name for one in CATALOGUE if not one.read_only):
        assert f'action="/dashboard/tools/{name}"' not in await visitor.see(f"/tools/{name}")


async def test_a_try_needs_the_browsers_token_and_a_tool(visitor: Visitor) -> None:
    assert (await visitor.act("/tools/list_projects", {"csrf": "0" * 64})).status_code == 403
    assert (await visitor.act("/tools/none")).status_code == 404
    assert (await visitor.act("/tools/list_projects", headers={"origin": "http://evil.example"})).status_code == 403


async def test_long_answers_are_cut(visitor: Visitor, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "MOST_SHOWN", 5)
    answer = await visitor.act("/tools/read_file", {"arg-relative_path": "cart.py", "arg-project": str(project)})
    assert "Only its beginning is shown" in answer.text


def test_a_forms_words_become_arguments_of_their_kind() -> None:
    find = CATALOGUE.get("find_symbol")
    assert find is not None
    form = {
        "arg-name_path_pattern": ["[x"],
        "arg-depth": ["2"],
        "arg-project": ['["a", "b"]'],
        "arg-relative_path": [" "],
        "arg-nonsense": ["1"],
        "csrf": ["1"],
    }
    assert tool.arguments_of(find, form) == {"name_path_pattern": "[x", "depth": "2", "project": ["a", "b"]}


async def test_every_tool_is_listed_and_has_a_page(central: RunningCentral, visitor: Visitor) -> None:
    listed = await tools.tools(visit(central))
    assert [row.name for row in listed.rows] == CATALOGUE.names()
    assert listed.total == len(listed.rows)
    assert [row.name for row in (await tools.tools(visit(central, q="FIND definitions"))).rows]
    assert (await tools.tools(visit(central, q="no such words"))).rows == []
    for name in CATALOGUE.names():
        assert name in await visitor.see(f"/tools/{name}")


async def test_settings_are_shown_with_their_origins_and_without_secrets(
    central: RunningCentral, visitor: Visitor
) -> None:
    html = await visitor.see("/settings")
    assert "secret-name" not in html
    assert central.central.token.header().removeprefix("Bearer ") not in html
    rows = {one.key: one for group in (await settings.settings(visit(central))).groups for one in group.values}
    shell = rows["execute_shell"]
    assert (shell.value, shell.own) == ("true", True)
    assert (rows["pool.max_calls"].value, rows["pool.max_calls"].origin) == ("1000", "default")
    assert "(set; hidden)" in rows["database_url"].value


async def test_every_client_can_be_connected_by_what_its_card_says(central: RunningCentral, visitor: Visitor) -> None:
    html = await visitor.see("/connect")
    assert central.central.token.header().removeprefix("Bearer ") not in html
    cards = (await connect.connect(visit(central))).clients
    for client, card in zip(connect.CLIENTS.values(), cards, strict=True):
        assert card.command == f"serena-central connect {client.name}"
        assert "serena-proxy" in card.entry
        assert client.form.read(card.entry)


async def test_the_server_tells_its_health_its_disk_and_all_licences(central: RunningCentral, visitor: Visitor) -> None:
    assert "All is well" in await visitor.see("/about")
    parts = central.central.dashboard.parts
    health = await about.health(visit(central))
    assert (health.version, health.problem, health.lost) == (parts.version, "", 0)
    disk = await about.disk(visit(central))
    assert [place.name for place in disk.places] == ["Database", "Symbol indexes", "Logs"]
    licences = {one.name: one for one in about.all_licences().licences}
    assert {"serena-central", "htmx", "idiomorph", "msgspec", "starlette", "Jinja2"} <= {
        re.sub("(?i)^jinja2$", "Jinja2", name) for name in licences
    }
    assert all(one.licence not in ("", "not said") for one in licences.values()), licences
