"""The page of a project: who works on it, what changed and failed, its memories, missing servers and settings."""

import re
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx
import pytest

from serena_central.core.errors import LanguageServerError
from serena_central.files.path_watch import PathWatch
from tests.support.browser import Visitor, shown, visiting
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".serena").mkdir()
    (root / ".serena" / "project.yml").write_text("# ours\nmax_answer_chars: 4321\nnonsense: 1\n")
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


async def called(http: httpx.AsyncClient, session: str, tool: str, **arguments: object) -> httpx.Response:
    return await http.post(f"/api/v1/tools/{tool}", json={"session": session, "arguments": arguments})


async def session_in(http: httpx.AsyncClient, root: Path) -> str:
    opened = await http.post("/api/v1/sessions", json={"client_name": "codex", "working_folder": str(root)})
    return opened.json()["session_id"]


async def test_sessions_edits_failures_and_settings_are_shown(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    async with central.http() as http:
        session = await session_in(http, root)
        body = "def total(self) -> int:\n        return 1"
        await called(http, session, "replace_symbol_body", name_path="Cart/total", relative_path="cart.py", body=body)
        assert (await called(http, session, "read_file", relative_path="gone.py")).status_code == 404
        (edit,) = (await http.get("/api/v1/edits")).json()["edits"]
        (failed,) = (await http.get("/api/v1/calls?failed=true")).json()["calls"]
    html = await visitor.see(f"/projects/one?{urlencode({'root': str(root)})}")
    for path in (f"/sessions/{session}", f"/edits/{edit['id']}", f"/calls/{failed['id']}"):
        assert f'href="/dashboard{path}"' in html, path
    page = re.sub(r"\s", "", shown(html))
    for part in ("codex", "Cart/total", "gone.py", "max_answer_chars", "4321", "project.yml:2", "nonsense"):
        assert part in page, part


async def test_settings_are_read_in_the_event_loops_thread_which_their_watch_belongs_to(
    central: RunningCentral, visitor: Visitor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, get, threads = central.central.dashboard.parts.root_settings.watch, PathWatch.get, set[threading.Thread]()

    def noted(self: PathWatch, *asked: Any) -> Any:
        if self is watch:
            threads.add(threading.current_thread())
        return get(self, *asked)

    async with central.http() as http:
        await called(http, await session_in(http, root), "list_memories")
    monkeypatch.setattr(PathWatch, "get", noted)
    for page in ("/projects/one", "/projects/one/settings"):
        assert "4321" in await visitor.see(f"{page}?{urlencode({'root': str(root)})}")
    assert threads == {threading.current_thread()}


async def test_a_memory_is_made_changed_deleted_and_has_a_history(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    async with central.http() as http:
        await called(http, await session_in(http, root), "list_memories")
    where, file = {"root": str(root)}, root / ".serena" / "memories" / "build.md"
    assert 'name="name"' in await visitor.see(f"/projects/one/memory?{urlencode(where)}")
    fields = {**where, "name": "build", "digest": "", "content": "Run make.\r\n<script>alert(1)</script>\r\n"}
    assert (await visitor.act("/memories/write", fields)).status_code == 303
    assert file.read_text() == "Run make.\n<script>alert(1)</script>\n"
    path = f"/projects/one/memory?{urlencode({**where, 'name': 'build'})}"
    html = await visitor.see(path)
    assert "<script>alert" not in html
    assert path.replace("&", "&amp;") in await visitor.see(f"/projects/one?{urlencode(where)}")
    digest = html.partition('name="digest" value="')[2].partition('"')[0]
    file.write_text("An agent was here.\n")
    stale = await visitor.act("/memories/write", {**fields, "digest": digest})
    assert stale.status_code == 400
    assert "An agent was here." in shown(stale.text)
    assert file.read_text() == "An agent was here.\n"
    digest = (await visitor.see(path)).partition('name="digest" value="')[2].partition('"')[0]
    assert (await visitor.act("/memories/write", {**fields, "digest": digest})).status_code == 303
    assert shown(await visitor.see(path)).count("write_memory") == 2
    digest = (await visitor.see(path)).partition('name="digest" value="')[2].partition('"')[0]
    assert (await visitor.act("/memories/delete", {**fields, "digest": digest})).status_code == 303
    assert not file.exists()
    escape = await visitor.act("/memories/write", {**fields, "name": "../../outside"})
    assert escape.status_code == 400
    assert (await visitor.act("/memories/write", {**fields, "csrf": "0" * 64})).status_code == 403


async def test_a_missing_server_is_installed_by_a_button_that_shows_progress_and_failure(
    central: RunningCentral, visitor: Visitor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "main.sh").write_text("greet() { echo hi; }\n")
    going, over = anyio.Event(), anyio.Event()
    asked: list[object] = []

    async def install(spec: object, _places: object, *, methods: tuple[str, ...], tell: object) -> None:
        asked.append((spec, methods, tell))
        going.set()
        await over.wait()
        raise LanguageServerError("bash", "the registry is out of reach")

    monkeypatch.setattr(central.central.installer, "_install", install)
    async with central.http() as http:
        await called(http, await session_in(http, root), "get_symbols_overview", relative_path="main.sh")
    path = f"/projects/one?{urlencode({'root': str(root)})}"
    page = await visitor.see(path)
    assert "Missing language servers" in page
    name = page.partition('name="server" value="')[2].partition('"')[0]
    done = await visitor.act("/projects/install", {"root": str(root), "server": name}, {"hx-request": "true"})
    assert "is being installed" in shown(done.text)
    with anyio.fail_after(60):
        await going.wait()
    assert f"installing {name}" in shown(await visitor.see(path))
    await visitor.act("/projects/install", {"root": str(root), "server": name})
    over.set()
    with anyio.fail_after(60):
        while "registry is out of reach" not in shown(await visitor.see(path)):
            await anyio.lowlevel.checkpoint()
    assert len(asked) == 1
    assert (await visitor.act("/projects/install", {"root": str(root), "server": "none"})).status_code == 404


async def test_a_setting_is_changed_in_its_file_at_once_keeps_comments_and_is_undone(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    file = root / ".serena" / "project.yml"
    before = file.read_text()
    async with central.http() as http:
        session = await session_in(http, root)
        await called(http, session, "list_memories")
        where = {"root": str(root), "key": "max_answer_chars"}
        assert "4321" in await visitor.see(f"/projects/one/settings?{urlencode(where)}")
        for wrong in ("many", "1", "", "nan", "[1]"):
            assert (await visitor.act("/projects/change-setting", {**where, "value": wrong})).status_code == 400, wrong
        for key in ("python", "database_url", "nonsense", ""):
            unknown = await visitor.act("/projects/change-setting", {**where, "key": key, "value": "1"})
            assert unknown.status_code == 404, key
        assert file.read_text() == before
        assert (await visitor.act("/projects/change-setting", {**where, "value": "5000"})).status_code == 303
        assert file.read_text() == before.replace("4321", "5000")
        await called(http, session, "list_memories")
        project = central.central.projects.opened(str(root))
        assert project is not None
        assert project.settings.max_answer_chars == 5000
        (edit, *_) = (await http.get("/api/v1/edits", params={"session": "dashboard"})).json()["edits"]
        assert edit["symbol"] == "max_answer_chars"
        assert (await visitor.act("/undo", {"edit": edit["id"]})).status_code == 303
        assert file.read_text() == before
        await visitor.act("/projects/change-setting", {**where, "reset": "yes"})
        assert file.read_text() == before.replace("max_answer_chars: 4321\n", "")
        tools = {**where, "key": "excluded_tools", "value": "read_file, list_dir"}
        assert (await visitor.act("/projects/change-setting", tools)).status_code == 303
        refused = await called(http, session, "read_file", relative_path="cart.py")
        assert "excluded_tools" in refused.text
    assert (await visitor.act("/projects/change-setting", {**where, "csrf": "0" * 64})).status_code == 403


async def test_a_missing_server_is_shown_and_installed_while_its_project_is_not_open(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "cart.py").unlink()
    (root / "main.sh").write_text("greet() { echo hi; }\n")
    path, asked = f"/projects/one?{urlencode({'root': str(root)})}", anyio.Event()

    async def install(*_: object, **__: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with running_central(tmp_path) as before, before.http() as http:
        await called(http, await session_in(http, root), "get_symbols_overview", relative_path="main.sh")
        with anyio.fail_after(60):
            while not before.central.dashboard.parts.tally.missing:
                await anyio.sleep(0.02)
    name = "bash-language-server"
    async with running_central(tmp_path) as after, visiting(after) as visitor:
        assert after.central.projects.opened(str(root)) is None
        with anyio.fail_after(60):
            while f'name="server" value="{name}"' not in await visitor.see(path):
                await anyio.sleep(0.02)
        monkeypatch.setattr(after.central.installer, "_install", install)
        assert (await visitor.act("/projects/install", {"root": str(root), "server": name})).status_code == 303
        with anyio.fail_after(60):
            await asked.wait()
        assert f"installing {name}" in shown(await visitor.see(path))


async def test_what_the_index_lacks_is_said_with_its_reason(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    (root / "main.sh").write_text("greet() { echo hi; }\n")
    async with central.http() as http:
        await called(http, await session_in(http, root), "get_symbols_overview", relative_path="main.sh")
    html = await visitor.see(f"/projects/one?{urlencode({'root': str(root)})}")
    page = " ".join(shown(html).split())
    assert "Not in the index, or by syntax only" in page
    assert "By syntax only (tree-sitter): 1 Bash file. Reason: " in page
    assert "Not analyzed yet." in page  # the graph and the findings start here, too
    assert 'action="/dashboard/projects/one/analysis"' in html


async def test_a_range_of_time_is_chosen_on_the_pages_of_a_project_and_a_tool_on_edits_and_the_overview(
    central: RunningCentral, visitor: Visitor, root: Path
) -> None:
    async with central.http() as http:
        session = await session_in(http, root)
        await called(http, session, "list_dir", relative_path=".")
        await called(http, session, "create_text_file", relative_path="new.txt", content="x\n")
    one = urlencode({"root": str(root)})
    for path in (f"/projects/one?{one}&", "/tools/list_dir?", "/edits?", "?"):
        now, past = await visitor.see(f"{path}range=day"), f"{path}since=2020-01-01T00:00&until=2020-01-02T00:00"
        (chosen,) = re.findall(r'<a class="button chosen" id="range-\d" href="/dashboard([^"]*)"', now)
        assert "range=day" in chosen
        assert (f"{one}&amp;" in chosen) == path.startswith("/projects")  # the rest of the query stays
        shown_now, shown_past = shown(now), shown(await visitor.see(past))
        if path == "/edits?":
            assert "new.txt" in shown_now
            assert "No edit matches" in shown_past
        else:
            assert re.search(r"[1-9] calls?, 0 failed|[1-9] calls?\b", shown_now), path
            assert 'value="2020-01-01T00:00"' in await visitor.see(past)
    assert re.search(
        r'href="/dashboard/statistics\?range=day&amp;project=shop"', await visitor.see(f"/projects/one?{one}&range=day")
    )
    assert "1 call, 0 failed" in await visitor.see("/tools/list_dir?range=day")
    log = await visitor.see(f"/sessions/{session}?q=CREATE_text")
    assert log.count('<li id="line-') == 1
    assert "No line matches" in await visitor.see(f"/sessions/{session}?q=nothing+such")
