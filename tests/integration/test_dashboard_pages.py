"""The dashboard's pages and actions over real HTTP, with real sessions, calls and edits."""

import re
import time
from collections.abc import AsyncGenerator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import httpx
import pytest

from serena_central.analysis.analysis_run import FindingsRun, GraphRun
from serena_central.analysis.broken_references import Broken
from serena_central.analysis.collection import Definition
from serena_central.analysis.unused_symbols import Unused
from serena_central.core.quoting import is_visible
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.registry import KnownProject
from serena_central.sessions.session import ActiveProject
from serena_central.web.pages.actions import BY
from serena_central.web.pages.table import PAGES
from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central, session_of
from tests.support.events import Happened
from tests.support.tasks import past_plan, past_task

pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script>\"'>&amp;\x1b[31mred\u202ertl\x07\u200b</td>{{7*7}}"
"""What clients may call themselves, and files be named and hold."""


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"execute_shell": True}) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


class Agent:
    """A session of its own, that calls tools."""

    def __init__(self, http: httpx.AsyncClient, session: str) -> None:
        self.http = http
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> httpx.Response:
        body = {"session": self.session, "arguments": arguments}
        return await self.http.post(f"/api/v1/tools/{tool}", json=body)


async def agent(http: httpx.AsyncClient, name: str = "claude-code", **facts: Any) -> Agent:
    opened = await http.post("/api/v1/sessions", json={"client_name": name, **facts})
    return Agent(http, opened.json()["session_id"])


async def test_a_session_is_found_by_its_state_project_words_and_sorted_by_any_column(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one = await agent(http, "codex", client_version="1.0", working_folder=str(project))
        await agent(http, "zed")
        await one.call("activate_project", project=str(project))
    for query, seen in {
        "": ["codex", "zed"],
        "state=active": [],
        "state=connected": ["codex", "zed"],
        "state=terminated": [],
        "project=shop": ["codex"],
        "q=ZED": ["zed"],
        f"q={one.session}": ["codex"],
        "q=shop+1.0": ["codex"],
        "q=&state=&project=": ["codex", "zed"],
    }.items():
        html = await visitor.see(f"/sessions?{query}")
        assert sorted(re.findall(r'<th scope="row"><a [^>]*>(\w+)</a>', html)) == seen
    for column in ("client", "project", "state", "age", "activity", "calls", "errors", "edits"):
        up = re.findall(r"id=\"row-(\S+)\"", await visitor.see(f"/sessions?sort={column}"))
        down = re.findall(r"id=\"row-(\S+)\"", await visitor.see(f"/sessions?sort=-{column}"))
        assert sorted(up) == sorted(down)
        assert 'aria-sort="ascending"' in await visitor.see(f"/sessions?sort={column}")
    assert "No agent is connected" not in await visitor.see("/sessions?sort=nonsense&page=x")


async def test_sessions_come_fifty_at_a_time(central: RunningCentral, visitor: Visitor) -> None:
    async with central.http() as http:
        for _ in range(51):
            await agent(http)
    first, second = await visitor.see("/sessions"), await visitor.see("/sessions?page=2")
    assert len(re.findall('id="row-', first)) == 50
    assert len(re.findall('id="row-', second)) == 1
    assert "page=2" in first
    assert 'rel="prev"' in second
    assert len(re.findall('id="row-', await visitor.see("/sessions?page=999999"))) == 1


async def test_pages_stay_small_with_two_hundred_busy_sessions(central: RunningCentral, visitor: Visitor) -> None:
    for number in range(200):
        root = f"/home/developer/src/{'company/products/' * 20}some-project-{number}"
        session = session_of(
            central.central,
            explicit_id=f"s-{number:024x}",
            credential=central.central.token.credential,
            client_name="claude-code",
            client_version="2.1.4",
            working_folder=root,
        )
        central.central.sessions.activate(session, ActiveProject(f"some-project-{number}", root))
        central.central.projects.remember(KnownProject(f"some-project-{number}", root[:200]))
        for call in range(200):
            session.count(f"tool_number_{call % 40}", 3.0, failed=call % 5 == 0, at=time.time())
            session.note(f"search_for_pattern some-project-{number} ok {call}.0 ms", "warning", at=call)
    for path in ("", "/sessions", f"/sessions/s-{0:024x}", "/projects"):
        assert len((await visitor.see(path)).encode()) <= 50_000, path


async def test_who_was_killed_in_the_dashboard_is_told_by_whom_and_when(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one, other = await agent(http), await agent(http, "spared")
        async with anyio.create_task_group() as tasks:
            answers: list[httpx.Response] = []

            async def wait() -> None:
                answers.append(await one.call("execute_shell_command", command="sleep 60", project=str(project)))

            tasks.start_soon(wait)
            with anyio.fail_after(30):
                while "execute_shell_command" not in await visitor.see(f"/sessions/{one.session}"):
                    await anyio.sleep(0.01)
                done = await visitor.act(
                    "/terminate", {"session": [one.session], "back": f"/dashboard/sessions/{one.session}"}
                )
        assert done.status_code == 303
        assert done.headers["location"] == f"/dashboard/sessions/{one.session}"
        assert BY in answers[0].text
        later = await one.call("list_dir", relative_path=".", project=str(project))
        assert later.status_code == 409
        assert f"terminated by {BY} at 20" in later.json()["error"]["message"]
        assert (await other.call("list_dir", relative_path=".", project=str(project))).status_code == 200
        assert f"Terminated by {BY}" in shown(await visitor.see(f"/sessions/{one.session}"))
        await visitor.act("/revive", {"session": one.session})
        assert (await one.call("list_dir", relative_path=".", project=str(project))).status_code == 200


async def test_many_are_killed_at_once_and_those_that_are_gone_are_no_failure(
    central: RunningCentral, visitor: Visitor
) -> None:
    async with central.http() as http:
        chosen = [(await agent(http)).session for _ in range(3)]
        spared = (await agent(http)).session
    htmx = {"hx-request": "true"}
    said = await visitor.act("/terminate", {"session": [*chosen, "s-gone"]}, htmx)
    assert "Terminated 3 sessions." in said.text
    assert "<html" not in said.text
    states = {one.session_id: one.state for one in central.central.sessions.snapshots()}
    assert states == dict.fromkeys(chosen, "terminated") | {spared: "connected"}
    assert "No session selected" in (await visitor.act("/terminate", {}, htmx)).text


async def test_one_running_call_is_cancelled_and_its_session_goes_on(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one = await agent(http)
        answers: list[httpx.Response] = []

        async def wait() -> None:
            answers.append(await one.call("execute_shell_command", command="sleep 60", project=str(project)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            with anyio.fail_after(30):
                while not (
                    found := re.search(r'name="call" value="(\S+?)"', await visitor.see(f"/sessions/{one.session}"))
                ):
                    await anyio.sleep(0.01)
                fields = {"session": one.session, "call": found[1]}
                assert "Cancelled execute" in (await visitor.act("/cancel", fields, {"hx-request": "true"})).text
        assert f"cancelled by {BY}" in answers[0].text
        assert "already ended" in (await visitor.act("/cancel", fields, {"hx-request": "true"})).text
        assert (await one.call("list_dir", relative_path=".", project=str(project))).status_code == 200


async def test_an_edit_is_shown_line_by_line_and_taken_back(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    before = (project / "cart.py").read_text()
    async with central.http() as http:
        one = await agent(http)
        edited = await one.call(
            "replace_symbol_body",
            project=str(project),
            relative_path="cart.py",
            name_path="Cart/total",
            body="def total(self) -> int:\n        return 1",
        )
        assert edited.status_code == 200, edited.text
    edit = re.search(r"/dashboard/edits/(e-\w+)", await visitor.see(f"/sessions/{one.session}"))
    assert edit
    page = await visitor.see(f"/edits/{edit[1]}")
    assert re.search(r'class="removed".*?return 0', page)
    assert re.search(r'class="added"><td class="at">3</td>.*?return 1', page)
    said = await visitor.act("/undo", {"edit": edit[1]}, {"hx-request": "true"})
    assert "Undone as" in said.text, said.text
    assert (project / "cart.py").read_text() == before
    undoer = re.search(r"Undone as (e-\w+)", said.text)
    assert undoer
    page = await visitor.see(f"/edits/{edit[1]}")
    assert f'Undone by <a href="/dashboard/edits/{undoer[1]}">' in page
    assert 'action="/dashboard/undo"' not in page
    page = await visitor.see(f"/edits/{undoer[1]}")
    assert f'undoes <a href="/dashboard/edits/{edit[1]}">' in page
    assert 'action="/dashboard/undo"' in page
    again = await visitor.act("/undo", {"edit": edit[1]})
    assert again.status_code == 409
    assert "Request failed" in again.text
    await visitor.act("/undo", {"edit": undoer[1]})
    assert 'action="/dashboard/undo"' in await visitor.see(f"/edits/{edit[1]}")


@pytest.mark.parametrize(
    "path", ["/sessions/s-nobody", "/edits/e-none", "/nowhere", "/live/sessions/%00", "/live-pages?page=http://["]
)
async def test_what_is_not_there_is_said_on_a_page(visitor: Visitor, path: str) -> None:
    response = await visitor.http.get(f"/dashboard{path}")
    assert response.status_code in (404, 200)
    assert "event: leave" in response.text or "Not found" in response.text


@pytest.mark.parametrize(
    ("raised", "status", "says"),
    [(MemoryError(), 503, "Out of memory in this call"), (RuntimeError("canary"), 500, "Internal error. See the")],
)
async def test_a_page_that_fails_says_why_and_shows_nothing_of_its_inside(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, says: str
) -> None:
    def fails(_self: LanguageServerPool) -> None:
        raise raised

    monkeypatch.setattr(LanguageServerPool, "snapshot", fails)
    response = await visitor.http.get("/dashboard/servers")
    assert (response.status_code, says in shown(response.text)) == (status, True), response.text
    assert "canary" not in response.text


async def test_words_of_clients_files_and_logs_stay_words_on_every_page(
    central: RunningCentral, visitor: Visitor, tmp_path: Path
) -> None:
    root = tmp_path / "".join(char for char in HOSTILE.replace("/", "_") if is_visible(char))
    root.mkdir()
    (root / "a<b>.py").write_text("x = 1\n")
    async with central.http() as http:
        one = await agent(http, HOSTILE, client_version=HOSTILE, working_folder=str(root), context=HOSTILE)
        await one.call("activate_project", project=str(root))
        await one.call("create_text_file", project=str(root), relative_path="c<i>.py", content=f"y = 1  # {HOSTILE}\n")
        await one.call("find_symbol", name_path_pattern=HOSTILE, project=HOSTILE)
        central.central.sessions.get(one.session).note(HOSTILE, "warning", at=0)
        event = Happened(message=HOSTILE, session=one.session, project=HOSTILE, server=HOSTILE)
        central.central.bus.publish(event)
        edits = (await http.get("/api/v1/edits")).json()["edits"]
        assert edits
        calls = (await http.get("/api/v1/calls")).json()["calls"]
        (server, *_) = (await http.get("/api/v1/servers")).json()["servers"]
    await central.central.dashboard.parts.analysis_runs.keep(root, GRAPH)
    await central.central.dashboard.parts.analysis_runs.keep(root, FINDINGS)
    named = {
        "session": one.session,
        "call": calls[0]["id"],
        "edit": edits[0]["id"],
        "server": server["id"],
        "tool": "find_symbol",
        "task": "t-past",
        "plan": "p-past",
    }
    central.central.store.writer.put(past_task(root, HOSTILE))
    central.central.store.writer.put(past_plan(root, HOSTILE))
    await central.central.store.writer.flush()
    for page in PAGES:
        if "{upstream}" in page.path or "{conversation}" in page.path:  # none is here: their own tests look at them
            continue
        path = page.path.format_map(named)
        where = "root=" + quote(str(root))
        for query in (
            f"?{where}",
            f"?{where}&q=%3Cscript%3E&state=%22%3E&project=%27&sort=%3Cb%3E&level=%3Ci%3E",
            f"?{where}&{AIMED}",
        ):
            html = await visitor.see(path + query)
            assert _Tags.of(html) <= set(PLAIN.split()), path
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e]", html), path
            assert "{{" not in html or "{{7*7}}" in html
            assert len(html) < 50_000, (path, len(html))


PATHS = [f"{HOSTILE}/{number}.py" for number in range(3)]

USES = {user: [(0, 0)] for user in PATHS}

GRAPH = GraphRun(
    at=0.0,
    fingerprints={},
    areas=[],
    notes=[HOSTILE],
    definitions=[Definition(path, HOSTILE, 12, 0, dict(USES)) for path in PATHS],
    files=PATHS,
)
"""A cycle of files whose names, and whose symbols' names, are hostile."""

FINDINGS = FindingsRun(
    at=0.0,
    fingerprints={},
    areas=[],
    notes=[HOSTILE],
    unused=[Unused(HOSTILE, 0, HOSTILE, 12, "high", HOSTILE)],
    broken=[Broken(HOSTILE, 0, 0, "missing member", HOSTILE, HOSTILE, HOSTILE)],
    checked=1,
)

AIMED = urlencode({"opened": HOSTILE, "shut": f"{HOSTILE}//x", "folder": HOSTILE, "of": HOSTILE, "source": HOSTILE})

PLAIN = """a b body button caption circle code dd defs details div dl dt figcaption figure form g h1 h2 h3 head header
html img input label legend li line link main marker meta nav ol option p path pre rect script section select span
strong summary svg table tbody td text textarea th thead time title tr ul wbr"""
"""Elements that pages are made of; whatever else is seen came from outside."""


class _Tags(HTMLParser):
    """Which elements a page has; scripts only of this server, and no attribute that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            if name in ("href", "src", "action"):
                assert value is not None
                assert value.startswith(("/dashboard", "#")), value
        assert tag != "script" or dict(attrs).get("src")

    @classmethod
    def of(cls, html: str) -> set[str]:
        parser = cls()
        parser.feed(html)
        return parser.tags
