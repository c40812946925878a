"""All edits are listed, chosen and undone, one by one and a session's last hour at once. Over real HTTP."""

import re
import time
from collections.abc import AsyncGenerator, Callable
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from serena_central.store.rows import EditRow
from tests.support.browser import Visitor, shown
from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

TEXT = (
    "class Cart:\n    def total(self) -> int:\n        return 0\n"
    + "".join(f"\n    def other_{number}(self) -> None: ...\n" for number in range(6))
    + "\n    def count(self) -> int:\n        return 0\n"
)


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path, {"edit_diagnostics_s": 0}) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text(TEXT)
    (root / "line.py").write_text("price = 1\n")
    return root


class Agent:
    """A session that edits."""

    def __init__(self, http: httpx.AsyncClient, session: str) -> None:
        self.http = http
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> None:
        body = {"session": self.session, "arguments": arguments}
        done = await self.http.post(f"/api/v1/tools/{tool}", json=body)
        assert done.status_code == 200, done.text

    async def replace(self, symbol: str, value: int) -> None:
        name = symbol.rpartition("/")[2]
        body = f"def {name}(self) -> int:\n        return {value}"
        await self.call("replace_symbol_body", name_path=symbol, relative_path="cart.py", body=body)


async def agent(http: httpx.AsyncClient, name: str, project: Path) -> Agent:
    opened = await http.post("/api/v1/sessions", json={"client_name": name, "working_folder": str(project)})
    return Agent(http, opened.json()["session_id"])


async def test_edits_are_chosen_by_session_project_file_and_symbol(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one, other = await agent(http, "codex", project), await agent(http, "zed", project)
        await one.replace("Cart/total", 1)
        await other.replace("Cart/count", 2)
        await one.call("create_text_file", relative_path="new.py", content="x = 1\n")

        async def found(**query: Any) -> list[list[str]]:
            edits = (await http.get("/api/v1/edits", params=query)).json()["edits"]
            return [[file["path"], edit["symbol"]] for edit in edits for file in edit["files"]]

        total, count, new = ["cart.py", "Cart/total"], ["cart.py", "Cart/count"], ["new.py", ""]
        assert await found() == [new, count, total]
        assert await found(session=one.session) == [new, total]
        assert await found(project=str(project), file="cart.py") == [count, total]
        assert await found(file="art.py") == []
        assert await found(symbol="Cart/total") == await found(symbol="total") == [total]
        assert await found(symbol="otal") == await found(since=4e9) == await found(before=1) == []
        (newest, *_) = (await http.get("/api/v1/edits")).json()["edits"]
    page = shown(await visitor.see("/edits?symbol=Cart/total"))
    assert "codex" in page
    assert "Cart/total" in page
    assert "Cart/count" not in page
    assert "No edit matches" in await visitor.see("/edits?file=none.py")
    for query in ("?before=x", "?before=1.2.3", f"?before={newest['at'] + 1}", "?project=%27%25"):
        await visitor.see(f"/edits{query}")


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("-when", lambda one: one.at),
        ("symbol", lambda one: (one.symbol, -one.at)),
        ("-lines", lambda one: (-sum(file["added"] + file["removed"] for file in one.files), -one.at)),
        ("files", lambda one: (one.files[0]["path"], -one.at)),
        ("by", lambda one: (one.client, -one.at)),
        ("project", lambda one: (one.project_root, -one.at)),
    ],
)
async def test_sorted_edits_are_paged_by_their_place_while_others_are_added(
    central: RunningCentral, visitor: Visitor, sort: str, order: Callable[[EditRow], Any]
) -> None:
    def edit(number: int, at: float) -> EditRow:
        file = {"path": f"m{number % 7}.py", "fate": "changed", "added": number % 6, "removed": number % 4}
        return EditRow(
            id=f"e-{number:03}",
            at=at,
            call=f"c-{number}",
            tool="replace_symbol_body",
            session=f"s-{number % 3}",
            client=f"agent{number % 3}",
            project_root=f"/src/p{number % 4}",
            files=[file],
            symbol=f"Cart/s{number % 5}",
        )

    began = time.time() - 3600
    rows = [edit(number, began + number / 7) for number in range(90)]
    writer = central.central.store.writer
    for row in rows:
        writer.put(row)
    await writer.flush()
    page, seen, added = f"/edits?sort={sort}", list[str](), 100
    while page:
        html = await visitor.see(page)
        seen += re.findall(r'<tr id="edit-(e-\d+)"', html)
        following = re.search(r'rel="next" href="/dashboard([^"]+)"', html)
        page = unescape(following[1]) if following else ""
        if sort != "-when":  # those would follow at the end
            added += 1
            writer.put(edit(added, began + added))
            await writer.flush()
    assert seen == [one.id for one in sorted(rows, key=order)]
    for nonsense in ("x", '["a",1,"",1e400]', "[1,2,3,4]", '["a",1,2,3]'):
        await visitor.see(f"/edits?sort={sort}&after={quote(nonsense)}")


async def test_an_edit_shows_who_else_changed_its_files_and_the_call_that_made_it(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one, other = await agent(http, "codex", project), await agent(http, "zed", project)
        await one.replace("Cart/total", 1)
        await other.replace("Cart/count", 2)
        (second, first) = (await http.get("/api/v1/edits")).json()["edits"]
        (call,) = (await http.get("/api/v1/calls", params={"session": one.session})).json()["calls"]
    page = await visitor.see(f"/edits/{first['id']}")
    assert "Edits of the same files by other sessions" in page
    assert f"/dashboard/edits/{second['id']}" in page
    assert f"/dashboard/calls/{call['id']}" in page
    assert "by zed" in shown(page)


async def test_a_sessions_last_hour_is_undone_but_not_what_others_changed_since(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one, other = await agent(http, "codex", project), await agent(http, "zed", project)
        await one.replace("Cart/total", 1)
        await one.replace("Cart/count", 1)
        await one.call("create_text_file", relative_path="new.py", content="x = 1\n")
        await other.call("read_file", relative_path="cart.py")
        await other.replace("Cart/count", 2)
        done = await visitor.act("/edits/undo-hour", {"session": one.session}, {"hx-request": "true"})
        assert "Undone: 2 edits. Not undone: 1 edit" in shown(done.text)
        assert not (project / "new.py").exists()
        text = (project / "cart.py").read_text()
        assert "return 2" in text
        assert "return 0" in text.partition("def other_0")[0]
        again = await visitor.act("/edits/undo-hour", {"session": one.session}, {"hx-request": "true"})
        assert "Not undone: 1 edit" in shown(again.text)
        assert "Undone: 0" in shown(again.text)
        undone = await http.post(f"/api/v1/sessions/{other.session}/undo")
        assert len(undone.json()["undone"]) == 1
        assert undone.json()["refused"] == {}
    page = shown(await visitor.see(f"/edits?session={one.session}"))
    assert page.count("undone by") == 2
    nothing = await visitor.act("/edits/undo-hour", {"session": "s-none"}, {"hx-request": "true"})
    assert "nothing to undo" in nothing.text
    assert (await visitor.act("/edits/undo-hour", {"csrf": "0" * 64})).status_code == 403


async def test_a_session_with_many_edits_is_undone_in_parts(
    central: RunningCentral, visitor: Visitor, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.projects.editing.undo.MOST_OF_SESSION", 2)
    async with central.http() as http:
        one = await agent(http, "codex", project)
        for number in range(5):
            await one.call("create_text_file", relative_path=f"new{number}.py", content="x = 1\n")
        path = f"/api/v1/sessions/{one.session}/undo"
        parts = [(await http.post(path)).json() for _ in range(2)]
        assert [(len(part["undone"]), part["more"]) for part in parts] == [(2, True), (2, True)]
        done = await visitor.act("/edits/undo-hour", {"session": one.session}, {"hx-request": "true"})
        assert "Undone: 1 edit." in shown(done.text)
        assert "undo again" not in shown(done.text)
    assert list(project.glob("new*.py")) == []


async def test_an_edit_whose_undo_was_undone_counts_as_made(
    central: RunningCentral, visitor: Visitor, project: Path
) -> None:
    async with central.http() as http:
        one = await agent(http, "codex", project)
        await one.replace("Cart/total", 1)
        (made,) = (await http.get("/api/v1/edits")).json()["edits"]
        undo = (await http.post(f"/api/v1/edits/{made['id']}/undo")).json()["edit"]
        assert await central.central.history.undone([made["id"]]) == {made["id"]: undo}
        redo = (await http.post(f"/api/v1/edits/{undo}/undo")).json()["edit"]
        assert await central.central.history.undone([made["id"], undo]) == {undo: redo}
    assert f'"edit" value="{made["id"]}"' in (await visitor.see("/edits")).replace("name=", "")
