"""Warm-ups: the servers are started and the index is filled before anybody asks, and scripts can read what became."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.projects.project import Project
from serena_central.projects.warming.project_warm_up import Warmed
from serena_central.projects.warming.warm_up_jobs import modules_at_once
from tests.support.central import RunningCentral, running_central
from tests.support.child import run_command, serving_child
from tests.support.scripted import scripted_project, scripted_ty
from tests.support.tasks import announce

pytestmark = pytest.mark.anyio

CONFIGURATION = """\
name: platform
type: super-repo
default_module: shop
modules:
  shop: {path: shop}
  broken: {path: broken}
"""


def platform(folder: Path) -> Path:
    """A module that can be warmed up, and one whose language server can't start."""
    scripted_ty(folder)
    for name in ("shop", "broken"):
        scripted_project(folder, name)
    (folder / "scripts/broken").write_text("no script\n")
    (folder / ".serena").mkdir()
    (folder / ".serena/project.yml").write_text(CONFIGURATION)
    return folder


async def outcome(folder: Path) -> dict[str, Any]:
    """What warmup-status.json holds once it is there."""
    file = folder / "home/warmup-status.json"
    with anyio.fail_after(60):
        while not file.exists():
            await anyio.sleep(0.01)
    return json.loads(file.read_text())


def without_times(status: dict[str, Any]) -> dict[str, Any]:
    for one in (*status["modules"], *(part for part in status.values() if isinstance(part, dict))):
        assert one.pop("duration_seconds") >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", status.pop("timestamp"))
    return status


async def test_the_command_tells_progress_and_leaves_the_outcome_for_scripts(tmp_path: Path) -> None:
    root = platform(tmp_path)
    async with serving_child(tmp_path) as child:
        ended = await run_command(child.folder, "warm", "--project", str(root))
        assert ended.code == 1  # one module failed
        assert "shop: starting python" in ended.err
        assert "shop: python is warm after" in ended.err
        assert re.search(r"^shop +python +[\d.]+ s +warm$", ended.out, re.MULTILINE), ended.out
        assert re.search(r"^broken +python +[\d.]+ s +failed +The language server ty did not", ended.out, re.MULTILINE)
        status = without_times(await outcome(tmp_path))
        error = status["modules"][1].pop("error")
        assert "exited with code 1" in error
        assert status == {
            "modules": [
                {"project": "shop", "language": "python", "success": True, "error": None},
                {"project": "broken", "language": "python", "success": False},
            ],
            "python_warmup": {"project": "shop", "success": True},
        }
        log = (tmp_path / "home/warmup.log").read_text().splitlines()
        assert [line.split()[1:4] for line in log] == [["shop", "python", "warm"], ["broken", "python", "failed"]]
        again = await run_command(child.folder, "warm", "--modules", "shop", "--json", cwd=root)
        assert (again.code, [one["project"] for one in again.json["modules"]]) == (0, ["shop"])


async def test_a_warm_up_in_the_background_returns_at_once_and_unknown_modules_are_refused(tmp_path: Path) -> None:
    root = platform(tmp_path)
    async with running_central(tmp_path) as central, central.http() as http:
        begun = await http.post("/api/v1/warm", json={"folder": str(root / "shop"), "background": True})
        assert begun.json() == {"started": [str(root / "shop")], "names": ["shop"]}
        assert [one["project"] for one in (await outcome(tmp_path))["modules"]] == ["shop"]
        assert servers(central) == ["shop"]
        for body, says in (
            ({"folder": str(root), "modules": ["nope"]}, "has no module 'nope'. Modules: 'shop', 'broken'."),
            ({"folder": "relative"}, "absolute"),
        ):
            refused = await http.post("/api/v1/warm", json=body)
            assert refused.status_code == 400
            assert says in refused.json()["error"]["message"]


async def test_modules_are_told_by_their_names_whatever_their_folders_are_called(tmp_path: Path) -> None:
    root = platform(tmp_path)
    (tmp_path / "parts/texts").mkdir(parents=True)
    (tmp_path / "parts/texts/notes.txt").write_text("nothing to read symbols of\n")
    (tmp_path / ".serena/project.yml").write_text(
        CONFIGURATION.replace("  shop: ", "  store: ").replace("default_module: shop", "default_module: store")
        + "  texts-of-all: {path: parts/texts}\n"
    )
    async with serving_child(tmp_path) as child:
        ended = await run_command(child.folder, "warm", "--project", str(root))
        rows = [line.split() for line in ended.out.splitlines()[1:]]
        assert [row[:2] for row in rows] == [["store", "python"], ["broken", "python"], ["texts-of-all", "-"]], ended
        for said in ("store: python is warm after", "3 of 3 modules"):
            assert said in ended.err
        begun = await run_command(child.folder, "warm", "--background", "--modules", "store, texts-of-all", cwd=root)
        assert begun.out == "Warming up 2 in the background: store, texts-of-all\n"


@pytest.mark.parametrize(
    ("budget_gb", "cores", "modules"), [(16, 8, 8), (4, 8, 4), (64, 2, 2), (0.5, 4, 1), (3.9, 12, 3)]
)
def test_as_many_modules_load_at_once_as_memory_and_cores_allow(budget_gb: float, cores: int, modules: int) -> None:
    assert modules_at_once(int(budget_gb * (1 << 30)), cores) == modules


async def test_no_more_modules_load_at_once_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serena_central.projects.warming.warm_up_jobs.usable_cores", lambda: 3)
    monkeypatch.setattr("serena_central.projects.warming.warm_up_jobs.MODULE_BYTES", 1)
    names = [f"m{number}" for number in range(7)]
    scripted_ty(tmp_path)
    for name in names:
        scripted_project(tmp_path, name)
    (tmp_path / ".serena").mkdir()
    modules = "".join(f"  {name}: {{path: {name}}}\n" for name in names)
    (tmp_path / ".serena/project.yml").write_text(f"type: super-repo\nmodules:\n{modules}")
    async with running_central(tmp_path) as central, central.http() as http:
        at_work, most = set[str](), 0
        outcome: dict[str, list[dict[str, Any]]] = {}
        async with http.stream("POST", "/api/v1/warm", json={"folder": str(tmp_path)}, timeout=60) as answer:
            async for line in answer.aiter_lines():
                told: dict[str, Any] = json.loads(line)
                said = str(told.get("says", ""))
                name = said.partition(":")[0]
                (at_work.add if "starting" in said else at_work.discard)(name)
                most = max(most, len(at_work))
                outcome = told.get("outcome", {})
        assert [one["project"] for one in outcome["modules"]] == names
        assert all(one["success"] for one in outcome["modules"]), outcome
        assert most <= 3


async def test_an_internal_failure_of_a_module_is_its_outcome_and_leaves_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = Project.warm

    async def failing(self: Project) -> list[Warmed]:
        if Path(self.root).name == "broken":
            raise RuntimeError("boom")
        return await warm(self)

    monkeypatch.setattr(Project, "warm", failing)
    root = platform(tmp_path)
    async with running_central(tmp_path) as running:
        announce(running, tmp_path, monkeypatch)
        one = await run_command(tmp_path, "warm", "--project", str(root), "--modules", "shop", "--json")
        assert (one.code, [module["success"] for module in one.json["modules"]]) == (0, [True])
        ended = await run_command(tmp_path, "warm", "--project", str(root), "--json")
        alone = await run_command(tmp_path, "warm", "--project", str(root), "--modules", "broken")
    modules = [(module["project"], module["success"]) for module in ended.json["modules"]]
    assert (ended.code, modules) == (1, [("shop", True), ("broken", False)])
    assert ended.json["modules"][1]["error"] == "Internal error (RuntimeError). See the server's log."
    assert alone.code == 1
    assert "Internal error" in alone.out
    assert [one["success"] for one in (await outcome(tmp_path))["modules"]] == [False]


async def test_an_outcome_that_cannot_be_written_for_scripts_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = platform(tmp_path)
    async with running_central(tmp_path) as running:
        announce(running, tmp_path, monkeypatch)
        (tmp_path / "home/warmup-status.json").mkdir()
        ended = await run_command(tmp_path, "warm", "--project", str(root), "--modules", "shop", "--json")
    assert [one["success"] for one in ended.json["modules"]] == [True]
    assert "warmup-status.json" in ended.err
    assert "could not be written" in ended.err


def servers(central: RunningCentral) -> list[str]:
    """Roots' names of the language servers that were started."""
    return sorted(shown.root.name for shown in central.central.pool.snapshot())


@pytest.mark.parametrize(("when", "warmed"), [("default", ["shop"]), ("all", ["shop", "broken"])])
async def test_a_new_session_is_warmed_up_for_if_the_settings_say_so(
    tmp_path: Path, when: str, warmed: list[str]
) -> None:
    root = platform(tmp_path)
    async with (
        running_central(tmp_path, {"warm_on_session_start": when}) as central,
        central.raw("handshake", x_serena_project=str(root)),
    ):
        assert [one["project"] for one in (await outcome(tmp_path))["modules"]] == warmed
