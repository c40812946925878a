"""The history of edits over real HTTP: events, /api/v1/edits, undo, and what a session is told of its own changes."""

import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.central import RunningCentral, running_central

pytestmark = pytest.mark.anyio

TEXT = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    async with running_central(tmp_path_factory.mktemp("home"), {"edit_diagnostics_s": 0}, patience_s=300) as running:
        yield running


@pytest.fixture
async def http(central: RunningCentral) -> AsyncGenerator[httpx.AsyncClient]:
    async with central.http() as client:
        yield client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    path = folder / "mod.py"
    path.write_bytes(TEXT.encode())
    return path


async def edit(http: httpx.AsyncClient, file: Path, name: str, body: str, session: str = "agent") -> str:
    arguments = {"name_path": name, "body": body, "project": str(file.parent)}
    answer = await http.post("/api/v1/tools/replace_symbol_body", json={"arguments": arguments, "session": session})
    assert answer.status_code == 200, answer.text
    return json.loads(answer.json()["blocks"][0])["edit"]


async def undo(http: httpx.AsyncClient, edit_id: str) -> httpx.Response:
    return await http.post(f"/api/v1/edits/{edit_id}/undo?by=ada")


async def test_an_edit_is_listed_and_told_as_an_event(http: httpx.AsyncClient, file: Path) -> None:
    edit_id = await edit(http, file, "first", "def first():\n    # one\n    return 1")
    (listed,) = (await http.get("/api/v1/edits", params={"project": str(file.parent)})).json()["edits"]
    events = (await http.get("/api/v1/events", params={"kind": "edit.applied", "limit": 1})).json()["events"]
    session = (await http.get("/api/v1/sessions/agent")).json()

    assert listed["id"] == edit_id
    assert (listed["session"], listed["tool"], listed["lines_added"]) == ("agent", "replace_symbol_body", 1)
    assert [one["path"] for one in listed["files"]] == ["mod.py"]
    assert events[0]["data"]["edit"] == edit_id
    assert session["edit_count"] >= 1


async def test_an_edit_is_undone_to_the_byte(http: httpx.AsyncClient, file: Path) -> None:
    file.write_bytes("\ufeff".encode() + TEXT.replace("\n", "\r\n").encode().rstrip())
    before = file.read_bytes()
    edit_id = await edit(http, file, "second", "def second():\n    return 3")
    assert file.read_bytes() != before
    undone = await undo(http, edit_id)

    assert undone.status_code == 200, undone.text
    assert file.read_bytes() == before
    again = await undo(http, undone.json()["edit"])
    assert again.status_code == 200
    assert b"return 3" in file.read_bytes()


async def create(http: httpx.AsyncClient, root: Path, path: str) -> str:
    arguments = {"relative_path": path, "content": "x = 1\n", "project": str(root)}
    answer = await http.post("/api/v1/tools/create_text_file", json={"arguments": arguments, "session": "agent"})
    assert answer.status_code == 200, answer.text
    return (await http.get("/api/v1/edits", params={"project": str(root)})).json()["edits"][0]["id"]


async def test_a_file_that_is_undone_takes_along_the_folders_that_were_made_for_it(
    http: httpx.AsyncClient, file: Path
) -> None:
    root = file.parent
    (root / "there").mkdir()
    first = await create(http, root, "there/made/deep/one.py")
    second = await create(http, root, "there/made/two.py")

    assert (await undo(http, first)).status_code == 200
    assert sorted(path.name for path in (root / "there").rglob("*")) == ["made", "two.py"]
    undone = await undo(http, second)
    assert sorted(path.name for path in (root / "there").rglob("*")) == ["made"]  # it was there before two.py
    assert (await undo(http, undone.json()["edit"])).status_code == 200
    third = await create(http, root, "there/other/three.py")
    assert (await undo(http, third)).status_code == 200
    assert sorted(path.name for path in (root / "there").rglob("*")) == ["made", "two.py"]


async def test_an_edit_is_undone_once_though_its_lines_stand_there_again(http: httpx.AsyncClient, file: Path) -> None:
    before = "a = [\n" + "    0,\n" * 9 + "]\n\n\n\n"
    file.write_text(before)
    edit_id = await edit(http, file, "a", before.replace("[\n", "[\n    0,\n").rstrip())
    undone = await undo(http, edit_id)
    assert file.read_text() == before

    refused = await undo(http, edit_id)
    assert refused.status_code == 409
    assert f"it was already undone by {undone.json()['edit']}" in refused.json()["error"]["message"]
    assert file.read_text() == before

    await undo(http, undone.json()["edit"])  # made again, and so it can be undone again
    assert file.read_text().count("0,") == 10
    assert (await undo(http, edit_id)).status_code == 200
    assert file.read_text() == before


async def test_an_undo_leaves_what_came_later_elsewhere_in_the_file(http: httpx.AsyncClient, file: Path) -> None:
    file.write_text(TEXT.replace("\n\n\n", "\n\n\n# between\n# them\n\n\n"))
    first = await edit(http, file, "first", "def first():\n    # one\n    # two\n    return 1")
    await edit(http, file, "second", "def second():\n    return 3")

    assert (await undo(http, first)).status_code == 200
    assert "# one" not in file.read_text()
    assert "return 3" in file.read_text()


async def test_an_undo_is_refused_where_the_text_moved_on(http: httpx.AsyncClient, file: Path) -> None:
    edit_id = await edit(http, file, "first", "def first():\n    return 10")
    await edit(http, file, "first", "def first():\n    return 11")
    refused = await undo(http, edit_id)

    assert refused.status_code == 409
    assert "the lines around" in refused.json()["error"]["message"]
    assert "return 11" in file.read_text()


async def test_an_undo_of_what_is_gone_or_unknown_is_refused(http: httpx.AsyncClient, file: Path) -> None:
    edit_id = await edit(http, file, "first", "def first():\n    return 10")
    file.unlink()

    assert "mod.py no longer exists" in (await undo(http, edit_id)).json()["error"]["message"]
    assert "there is no edit with this id" in (await undo(http, "e-0")).json()["error"]["message"]


async def test_a_session_is_told_what_it_changed_and_nothing_else(http: httpx.AsyncClient, file: Path) -> None:
    async def summary(session: str) -> Any:
        answer = (await http.post("/api/v1/tools/summarize_changes", json={"session": session})).json()
        return answer["blocks"]

    undone = await edit(http, file, "first", "def first():\n    # one\n    return 1", "mine")
    await undo(http, undone)
    await http.post("/api/v1/tools/read_file", json={"session": "mine", "arguments": {"relative_path": str(file)}})
    kept = await edit(http, file, "first", "def first():\n    return 100", "mine")
    await edit(http, file, "second", "def second():\n    return 200", "others")
    told, notes = await summary("mine")
    summed = json.loads(told)

    assert summed["files"] == {str(file.parent): {"mod.py": {"edits": 1, "lines_added": 1, "lines_removed": 1}}}
    assert [one["edit"] for one in summed["edits"]] == [kept]
    assert f"{undone} was undone by ada" in notes
    assert (await summary("nobody"))[0] == "This session has made no changes."


async def test_a_sessions_edits_are_undone_also_if_the_clock_was_set_back_between_them(
    http: httpx.AsyncClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = file.read_bytes(), time.time
    edits = [await edit(http, file, "first", "def first():\n    return 10", session="before-and-after")]
    with monkeypatch.context() as clock:
        clock.setattr("time.time", lambda: real() - 600)
        edits.append(await edit(http, file, "first", "def first():\n    return 11", session="before-and-after"))
    answer = (await http.post("/api/v1/sessions/before-and-after/undo")).json()

    assert (answer["undone"], answer["refused"]) == (edits[::-1], {})
    assert file.read_bytes() == before
