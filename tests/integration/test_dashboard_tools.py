"""Tools tried in the dashboard, and the pages about settings, clients and the server itself, over real HTTP."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from serena_central.tools.families import CATALOGUE
from serena_central.web.pages import tool
from serena_central.web.pages.tool_form import arguments_of
from tests.support.browser import Visitor, hidden_fields, shown
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


async def test_an_edit_shows_its_diff_and_is_made_when_it_is_confirmed(visitor: Visitor, project: Path) -> None:
    file = project / "cart.py"
    given = {
        "arg-relative_path": "cart.py",
        "arg-needle": "class Cart",
        "arg-repl": "class Basket<b>",
        "arg-mode": "literal",
        "arg-project": str(project),
    }
    preview = await visitor.act("/tools/replace_content", given)
    assert '<span class="added">+class Basket&lt;b&gt;:' in preview.text
    assert "class Cart" in file.read_text()
    fields = hidden_fields(preview.text)
    assert fields["step"] == "apply"
    assert "dry_run" not in preview.text.partition("Input schema")[0]
    file.write_text("import os\n" + file.read_text())
    changed = await visitor.act("/tools/replace_content", fields)
    assert "has changed since" in changed.text
    assert "class Cart" in file.read_text()
    done = await visitor.act("/tools/replace_content", hidden_fields(changed.text))
    assert "lines_added" in done.text
    assert "class Basket<b>" in file.read_text()
    assert "/dashboard/calls/c-" in done.text
    refused = await visitor.act("/tools/replace_content", {**given, "arg-needle": "none there"})
    assert "Failed" in refused.text
    assert 'value="apply"' not in refused.text


async def test_what_has_no_dry_run_asks_first(visitor: Visitor, project: Path) -> None:
    fields = {"arg-command": "touch made", "arg-project": str(project)}
    asked = await visitor.act("/tools/execute_shell_command", fields)
    assert "has no dry run" in asked.text
    assert not (project / "made").exists()
    assert (await visitor.act("/tools/execute_shell_command", hidden_fields(asked.text))).status_code == 200
    assert (project / "made").exists()


async def test_projects_and_modes_are_choices(visitor: Visitor, project: Path) -> None:
    await visitor.act("/tools/list_dir", {"arg-relative_path": ".", "arg-project": str(project)})
    assert f'<option value="{project}">shop ({project})</option>' in await visitor.see("/tools/find_symbol")
    modes = await visitor.see("/tools/switch_modes")
    assert '<option value="[&#34;editing&#34;]">editing</option>' in modes


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
    assert arguments_of(find, form) == {
        "name_path_pattern": "[x",
        "depth": 2,
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
