"""Tools tried in the dashboard, and the pages about settings, clients and the server itself, over real HTTP."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from serena_central.tools.families import CATALOGUE
from serena_central.web.pages import tool
from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    given = {"execute_shell": True, "database_url": f"sqlite:///{tmp_path}/secret-name.db"}
    async with running_central(tmp_path, given) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    x = '<script>alert(1)</script>'\n")
    return root


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
    assert "Failed" in failed.text
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
    assert "Only the beginning is shown" in answer.text


def test_a_forms_words_become_arguments_of_their_kind() -> None:
    find = CATALOGUE.get("find_symbol")
    assert find is not None
    form = {
        "arg-name_path_pattern": ["[x"],
        "arg-depth": ["2"],
        "arg-include_kinds": ['["class", 6]'],
        "arg-project": ["a, b"],
        "arg-relative_path": [" "],
        "arg-nonsense": ["1"],
        "csrf": ["1"],
    }
    assert tool.arguments_of(find, form) == {
        "name_path_pattern": "[x",
        "depth": "2",
        "include_kinds": ["class", 6],
        "project": "a, b",
    }


async def test_every_tool_has_a_page(visitor: Visitor) -> None:
    for name in CATALOGUE.names():
        assert name in await visitor.see(f"/tools/{name}")


@pytest.mark.parametrize("page", ["/settings", "/connect", "/about"])
async def test_no_page_holds_a_secret(central: RunningCentral, visitor: Visitor, page: str) -> None:
    html = await visitor.see(page)
    assert "secret-name" not in html
    assert central.central.token.header().removeprefix("Bearer ") not in html
