"""Edits of several projects in one call: all of them are made, as one operation, or none."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from serena_central.app import build
from serena_central.editing.journal import Journal
from serena_central.editing.transaction import Applier
from tests.support.central import RunningCentral, running_central
from tests.support.editing import FailingDisk, contents
from tests.support.mcp import RawClient, text_of

pytestmark = pytest.mark.anyio

TEXT = "alpha = 1\nbeta = 2\n"


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """Two projects with a file of one name."""
    found = [tmp_path / name for name in ("one", "two")]
    for root in found:
        (root / ".git").mkdir(parents=True)
        (root / "notes.txt").write_text(TEXT)
    return found


@asynccontextmanager
async def session(folder: Path, **settings: Any) -> AsyncGenerator[tuple[RawClient, RunningCentral]]:
    async with running_central(folder, settings) as central, central.raw("handshake") as client:
        yield client, central


def replacing(roots: list[Path], needle: str = "alpha", **more: Any) -> dict[str, Any]:
    """Arguments of replace_content on all of them."""
    return {
        "project": list(map(str, roots)),
        "relative_path": "notes.txt",
        "needle": needle,
        "repl": "gamma",
        "mode": "literal",
    } | more


def texts(roots: list[Path]) -> list[str]:
    return [(root / "notes.txt").read_text() for root in roots]


async def test_an_edit_of_two_projects_is_one_and_is_undone_as_one(tmp_path: Path, roots: list[Path]) -> None:
    async with session(tmp_path) as (client, central):
        planned = await client.call("replace_content", **replacing(roots, dry_run=True))
        assert text_of(planned).count("+gamma = 1") == 2
        assert texts(roots) == [TEXT, TEXT]

        made = json.loads(text_of(await client.call("replace_content", **replacing(roots))))
        assert texts(roots) == [TEXT.replace("alpha", "gamma")] * 2
        assert made["one"]["edit"] == made["two"]["edit"]
        async with central.http() as http:
            listed = (await http.get("/api/v1/edits")).json()["edits"]
            assert sorted(one["project_root"] for one in listed) == list(map(str, roots))
            undone = await http.post(f"/api/v1/edits/{listed[0]['id']}/undo")
            assert undone.status_code == 200, undone.text
            assert texts(roots) == [TEXT, TEXT]
            again = await http.post(f"/api/v1/edits/{listed[1]['id']}/undo")
    assert "already undone" in again.text


@pytest.mark.parametrize("order", [1, -1], ids=["the first", "the last"])
async def test_where_one_project_fails_nothing_is_changed_in_any(tmp_path: Path, roots: list[Path], order: int) -> None:
    failing, other = roots[::order]
    (failing / "notes.txt").write_text("nothing of the kind\n")
    before = contents(tmp_path / "one"), contents(tmp_path / "two")
    async with session(tmp_path) as (client, _):
        refused = await client.call("replace_content", **replacing(roots))
        inserted = await client.call(
            "insert_after_symbol", name_path="alpha", body="x = 1", project=list(map(str, roots))
        )
        unknown = await client.call("replace_content", **replacing([*roots, tmp_path / "three"]))
    assert [one["isError"] for one in (refused, inserted, unknown)] == [True] * 3
    assert text_of(refused).startswith(f"Nothing was changed, because of '{failing.name}': ")
    assert f"'{other.name}' was not changed either." in text_of(refused)
    assert (contents(tmp_path / "one"), contents(tmp_path / "two")) == before


async def test_a_project_that_is_read_only_keeps_the_others_from_being_changed(
    tmp_path: Path, roots: list[Path]
) -> None:
    (roots[1] / ".serena").mkdir()
    (roots[1] / ".serena/project.yml").write_text("read_only: true\n")
    async with session(tmp_path) as (client, _):
        refused = await client.call("replace_content", **replacing(roots))
    assert refused["isError"]
    assert "the setting read_only forbids" in text_of(refused)
    assert texts(roots) == [TEXT, TEXT]


def with_faults(monkeypatch: pytest.MonkeyPatch, folder: Path, fault: Callable[[str, Path], None]) -> None:
    applier = Applier(Journal(folder / "home" / "edits.journal"), disk=FailingDisk(fault))
    monkeypatch.setattr("tests.support.central.build", partial(build, applier=applier))


async def test_a_disk_that_refuses_the_second_file_leaves_the_first_as_it_was(
    tmp_path: Path, roots: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(step: str, path: Path) -> None:
        if step == "replace" and path == roots[1] / "notes.txt":
            raise OSError(28, "no space")

    with_faults(monkeypatch, tmp_path, fault)
    async with session(tmp_path) as (client, _):
        refused = await client.call("replace_content", **replacing(roots))
    assert refused["isError"]
    assert "no space" in text_of(refused)
    assert [contents(root) for root in roots] == [{"notes.txt": TEXT}] * 2


async def test_what_something_outside_writes_between_plan_and_writing_is_kept(
    tmp_path: Path, roots: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def fault(step: str, path: Path) -> None:
        if step == "link" and not written:
            written.append(step)
            (roots[1] / "notes.txt").write_text(TEXT + "outside = 3\n")

    with_faults(monkeypatch, tmp_path, fault)
    async with session(tmp_path) as (client, _):
        made = await client.call("replace_content", **replacing(roots))
    assert not made["isError"], text_of(made)
    new = TEXT.replace("alpha", "gamma")
    assert texts(roots) == [new, new + "outside = 3\n"]


async def test_a_file_that_two_of_the_projects_hold_is_not_written_twice(tmp_path: Path, roots: list[Path]) -> None:
    inner = roots[0] / "inner"
    inner.mkdir()
    (inner / "notes.txt").write_text(TEXT)
    async with session(tmp_path, included_optional_tools=["replace_in_files"]) as (client, _):
        arguments = {"needle": "alpha", "repl": "gamma", "mode": "literal"}
        refused = await client.call("replace_in_files", project=[str(roots[0]), str(inner)], **arguments)
    assert refused["isError"]
    assert "is in two of the projects" in text_of(refused)
    assert (inner / "notes.txt").read_text() == TEXT


async def test_memories_of_two_projects_are_written_in_both_or_in_neither(tmp_path: Path, roots: list[Path]) -> None:
    (roots[1] / ".serena").mkdir()
    (roots[1] / ".serena/project.yml").write_text("read_only: true\n")
    async with session(tmp_path) as (client, _):
        arguments = {"memory_name": "plan", "content": "text"}
        refused = await client.call("write_memory", project=list(map(str, roots)), **arguments)
    assert refused["isError"]
    assert not (roots[0] / ".serena").exists()
