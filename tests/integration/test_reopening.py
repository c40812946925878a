"""A project is closed and opened again, and its language servers go on running: they hear of all that has changed
meanwhile."""

import gc
import json
from pathlib import Path
from typing import Any
from weakref import ref

import anyio
import pytest

from serena_central.app import Application
from serena_central.projects.project import Project
from tests.support.central import running_parts, session_of
from tests.support.fakes import logged
from tests.support.scripted import behave, log_in, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

WATCHED = "workspace/didChangeWatchedFiles"

CREATED, CHANGED, DELETED = 1, 2, 3
"""LSP's FileChangeType."""


def watching(*folders: Path) -> list[dict[str, Any]]:
    """What a server says that asks to hear of all files in some folders."""
    watchers = [{"globPattern": {"baseUri": folder.as_uri(), "pattern": "**/*"}} for folder in folders]
    registration = {"id": "w", "method": WATCHED, "registerOptions": {"watchers": watchers}}
    return [{"id": "r", "method": "client/registerCapability", "params": {"registrations": [registration]}}]


async def ask(central: Application, root: Path) -> None:
    arguments = {"name_path": "Cart/total", "relative_path": "cart.py", "project": str(root)}
    await central.caller.call(session_of(central), "find_referencing_symbols", arguments)


async def opened_with_its_folders(central: Application, root: Path) -> Project:
    """The project, when its server runs and the folders are followed that this has asked to hear of."""
    await ask(central, root)
    project = await central.projects.open(root)
    assert project._external is not None
    while not project._external.trees:
        await anyio.lowlevel.checkpoint()
        await project.fresh()
    return project


def told(log: Path, folder: Path) -> dict[str, int]:
    """Name → what the server was told last of a file in a folder."""
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    changes = [one for entry in entries if entry.get("method") == WATCHED for one in entry["params"]["changes"]]
    places = [(one["uri"].removeprefix(folder.as_uri() + "/"), one["type"]) for one in changes]
    return {name: kind for name, kind in places if name.startswith("f_")}


@pytest.mark.parametrize("how", ["its settings change", "it is closed", "its folder outside goes"])
async def test_servers_hear_what_changed_while_their_project_was_closed(tmp_path: Path, how: str) -> None:
    scripted_ty(tmp_path)
    outside = tmp_path / "library"
    root = scripted_project(tmp_path, say=watching(tmp_path / "shop", outside))
    outside.mkdir()
    for folder in (root, outside):
        for name in ("f_kept.py", "f_changed.py", "f_deleted.py"):
            (folder / name).write_text("a = 1\n")
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            await opened_with_its_folders(central, root)
            (server,) = central.pool.snapshot()
            if how != "its settings change":
                central.projects.close(root, "test")
            for folder in (root, outside):
                (folder / "f_changed.py").write_text("a = 22\n")
                (folder / "f_created.py").write_text("a = 3\n")
                (folder / "f_deleted.py").unlink()
            if how == "its settings change":
                (root / ".serena").mkdir()
                (root / ".serena" / "project.yml").write_text("edit_diagnostics_s: 1\n")
            elif how == "its folder outside goes":
                (outside / "f_created.py").unlink()
                outside.rename(tmp_path / "elsewhere")
            await ask(central, root)
            assert [one.pid for one in central.pool.snapshot()] == [server.pid]
    changed = {"f_changed.py": CHANGED, "f_created.py": CREATED, "f_deleted.py": DELETED}
    gone = dict.fromkeys(["f_kept.py", "f_changed.py", "f_deleted.py"], DELETED)
    assert told(log_in(tmp_path), root) == changed
    assert told(log_in(tmp_path), outside) == (gone if how == "its folder outside goes" else changed)


async def test_what_other_settings_ignore_is_not_gone_for_servers(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, say=watching(tmp_path / "shop", tmp_path))
    (root / "f_ignored.py").write_text("a = 1\n")
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            await opened_with_its_folders(central, root)
            (root / ".serena").mkdir()
            (root / ".serena" / "project.yml").write_text("ignored_paths: [f_ignored.py]\n")
            await ask(central, root)
            assert "f_ignored.py" not in (await central.projects.open(root)).tree.files
    assert DELETED not in told(log_in(tmp_path), root).values()


async def test_what_servers_know_is_kept_while_they_run(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            await ask(central, root)
            central.projects.close(root, "test")
            while root not in central.projects._told:
                await anyio.lowlevel.checkpoint()
            central.projects.sweep(0.0)
            assert list(central.projects._told) == [root]
            (server,) = central.pool.snapshot()
            await central.pool.stop(server.key, "test")
            central.projects.sweep(0.0)
            assert not central.projects._told


async def closed(central: Application, root: Path) -> "ref[Project]":
    """The project, when it has ended."""
    project = await central.projects.open(root)
    central.projects.close(root, "test")
    while root not in central.projects._told:
        await anyio.lowlevel.checkpoint()
    return ref(project)


async def test_a_closed_project_is_freed_while_its_servers_run(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, say=watching(tmp_path / "shop", tmp_path))
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            await opened_with_its_folders(central, root)
            gc.freeze()  # as a late import does, of what has nothing to do with it
            project = await closed(central, root)
            while project() is not None:
                await anyio.lowlevel.checkpoint()
                central.collector.collect()
            (server,) = central.pool.snapshot()
            assert server.pid is not None
            await ask(central, root)
            assert [one.pid for one in central.pool.snapshot()] == [server.pid]


async def test_a_server_that_runs_reads_files_in_no_encoding_that_has_changed(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    (root / "cart.py").write_bytes("class Cart:\n    def total(self): ...  # \u00e9\n".encode("latin-1"))
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            for encoding in ("latin-1", "cp1251"):
                (root / ".serena").mkdir(exist_ok=True)
                (root / ".serena" / "project.yml").write_text(f"encoding: {encoding}\n")
                await ask(central, root)
    entries = [json.loads(line) for line in log_in(tmp_path).read_text().splitlines()]
    opened = [entry["params"]["textDocument"] for entry in entries if entry.get("method") == "textDocument/didOpen"]
    assert [one["text"][-2] for one in opened if one["uri"].endswith("cart.py")] == ["\u00e9", "\u0439"]


@pytest.mark.parametrize("what", ["settings", "environment"])
async def test_who_waits_for_a_server_gets_an_answer_when_settings_change_during_its_start(
    tmp_path: Path, what: str
) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    async with running_parts(tmp_path) as central:
        with anyio.fail_after(60):
            await ask(central, root)
            (server,) = central.pool.snapshot()
            await central.pool.stop(server.key, "test")
            behave(tmp_path, never_initialize=True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, central, root)
                await logged(log_in(tmp_path), event="started", count=2)
                behave(tmp_path)
                if what == "settings":
                    (root / ".serena").mkdir()
                    settings = "language_servers: {ty: {settings: {a: 1}}}\n"
                    (root / ".serena" / "project.yml").write_text(settings)
                else:
                    (root / ".venv" / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
                    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
                await ask(central, root)
        assert len({one.key for one in central.pool.snapshot()}) == 2
