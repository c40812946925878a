"""Edits that reach the siblings of a super-repo, with real language servers: all modules of a call, or none."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from serena_central.core.places import Places
from tests.support.central import RunningCentral, running_central
from tests.support.editing import contents
from tests.support.languages import UNPRIMED, WITHOUT_STD, called_patiently
from tests.support.mcp import RawClient, text_of
from tests.support.servers import with_core_servers
from tests.support.superrepo import PAIRS, Pair, of_pairs, platform

pytestmark = pytest.mark.anyio

USERS = {
    "go": "backend/cmd/main.go",
    "typescript": "src/page.ts",
    "python": "scan/jobs.py",
    "rust": "src/lib.rs",
}
"""The file of the sibling that uses the symbol."""


@asynccontextmanager
async def session(
    folder: Path, root: Path, settings: Mapping[str, Any] | None = None, *, rust_std: bool = False
) -> AsyncGenerator[tuple[RawClient, RunningCentral]]:
    with_core_servers(Places(folder / "home"))
    usual = {"language_servers": UNPRIMED if rust_std else WITHOUT_STD}
    async with (
        running_central(folder, {**usual, **(settings or {})}, patience_s=300) as central,
        central.raw("handshake", x_serena_project=str(root)) as client,
    ):
        yield client, central


async def asked(client: RawClient, tool: str, **arguments: Any) -> tuple[Any, str]:
    result = await called_patiently(client, tool, **arguments)
    assert not result["isError"], text_of(result)
    answer, *notes = (part["text"] for part in result["content"])
    return json.loads(answer), "\n".join(notes)


def code(root: Path, pair: Pair) -> tuple[str, str]:
    """The declaring file, and its user in the sibling."""
    modules = root / "modules"
    return (
        (modules / pair.declaring / pair.file).read_text(),
        (modules / pair.sibling / USERS[pair.language]).read_text(),
    )


@of_pairs("typescript", "rust")
async def test_a_rename_reaches_the_siblings_in_the_call_as_one_edit_that_is_undone_as_one(
    tmp_path: Path, pair: Pair
) -> None:
    root = platform(tmp_path)
    before = code(root, pair)
    both = [pair.declaring, pair.sibling]
    renaming = {"name_path": pair.name, "relative_path": pair.file, "project": both, "new_name": "Renamed9"}
    async with session(tmp_path, root) as (client, central):
        planned, _ = await asked(client, "rename_symbol", **renaming, dry_run=True)
        assert all("Renamed9" in planned[module] for module in both)
        assert code(root, pair) == before

        made, _ = await asked(client, "rename_symbol", **renaming)

        assert len({made[module]["edit"] for module in both}) == 1
        assert all(made[module]["changed_places"] >= 2 - (module == "chariot") for module in both)
        declared, used = code(root, pair)
        assert pair.name not in declared
        assert used.count("Renamed9") == (1 if pair.language == "go" else 2)
        assert "class Job:\n    def py_total" in used or pair.language != "python"
        async with central.http() as http:
            undone = await http.post(f"/api/v1/edits/{made[pair.sibling]['edit']}/undo")
        assert undone.status_code == 200, undone.text
        assert code(root, pair) == before


async def test_files_that_got_hard_links_elsewhere_are_renamed_in(tmp_path: Path) -> None:
    """`cp -al`, by which backups are made, changes the stamp of each file, and no event says so."""
    root = platform(tmp_path)
    (pair,) = (pair for pair in PAIRS if pair.language == "python")
    both = [pair.declaring, pair.sibling]
    declared: dict[str, Any] = {"name_path": pair.name, "relative_path": pair.file, "project": both}
    async with session(tmp_path, root) as (client, _):
        await asked(client, "rename_symbol", **declared, new_name="Renamed9", dry_run=True)
        for number, file in enumerate(sorted(root.rglob("*.py"))):
            (tmp_path / f"{number}.py").hardlink_to(file)
        await asked(client, "rename_symbol", **declared, new_name="Renamed9")
        assert all("Renamed9" in text for text in code(root, pair))


async def test_a_read_only_module_keeps_a_rename_of_all_away_only_where_it_would_change(tmp_path: Path) -> None:
    root = platform(tmp_path)
    for name in ("modules/engine", "modules/ui"):
        (root / name / ".serena").mkdir()
        (root / name / ".serena/project.yml").write_text("read_only: true\n")
    modules = ["scoring", "scan", "engine", "ui"]
    renaming = {"name_path": "py_total", "relative_path": "modules/scoring/scoring/risk.py", "new_name": "score"}
    async with session(tmp_path, root) as (client, _):
        planned, _ = await asked(client, "rename_symbol", **renaming, project=modules, dry_run=True)
        assert "error" not in planned["engine"]
        made, _ = await asked(client, "rename_symbol", **renaming, project=modules)
        declared = {"name_path": "tsTotal", "relative_path": "modules/ui/src/total.ts", "new_name": "score"}
        refused = await client.call("rename_symbol", **declared, project=[*modules, "web"])
    assert made["engine"] == made["ui"] == {"changed_places": 0}
    assert "py_total()" not in (root / "modules/scan/scan/jobs.py").read_text().partition("class")[0]
    assert refused["isError"]
    assert "the setting read_only forbids" in text_of(refused)
    assert "tsTotal" in (root / "modules/web/src/page.ts").read_text()


@of_pairs("python", "go")
async def test_what_siblings_use_is_neither_renamed_alone_nor_deleted_and_they_are_named(
    tmp_path: Path, pair: Pair
) -> None:
    root = platform(tmp_path)
    before = code(root, pair)
    declared = {"name_path": pair.name, "relative_path": f"modules/{pair.declaring}/{pair.file}"}
    async with session(tmp_path, root) as (client, _):
        renamed = await called_patiently(client, "rename_symbol", **declared, new_name="Renamed9")
        deleted = await called_patiently(client, "safe_delete_symbol", **declared)
    users = f"Other modules of the super-repo reference it: {pair.sibling} ('{pair.sibling}': {USERS[pair.language]}:"
    for refused in (renamed, deleted):
        assert refused["isError"]
        assert users in text_of(refused)
    assert code(root, pair) == before


LATE = """\
import sys

sys.path.append("../scoring/scoring")
from risk import py_total


def late() -> int:
    return py_total()


def own() -> int:
    py_total = 3
    return py_total
"""
"""What no server resolves, and a variable of the same name."""


async def test_a_sibling_that_reaches_a_module_by_its_path_alone_is_named_and_not_left_behind(tmp_path: Path) -> None:
    root = platform(tmp_path)
    (root / "modules/scan/scan/jobs.py").write_text(LATE)
    before = contents(root)
    declared = {"name_path": "py_total", "relative_path": "modules/scoring/scoring/risk.py"}
    async with session(tmp_path, root) as (client, _):
        renamed = await client.call("rename_symbol", **declared, new_name="score")
        deleted = await client.call("safe_delete_symbol", **declared)
        both = await client.call("rename_symbol", **declared, new_name="score", project=["scoring", "scan"])
    for refused in (renamed, deleted):
        assert refused["isError"]
        assert "Its name occurs in scan, where it may or may not mean this symbol ('scan': " in (text_of(refused))
        assert "scan/jobs.py:3, scan/jobs.py:7)" in text_of(refused)
    assert both["isError"]
    assert "in scan/jobs.py:3, scan/jobs.py:7 of scan, py_total cannot be resolved" in text_of(both)
    assert contents(root) == before


SHORTHAND = """\
import { tsTotal } from "@platform/ui";

export const all = { tsTotal };
"""


async def test_a_renamed_value_keeps_the_field_that_is_named_after_it(tmp_path: Path) -> None:
    root = platform(tmp_path)
    page = root / "modules/web/src/page.ts"
    page.write_text(SHORTHAND)
    async with session(tmp_path, root) as (client, _):
        await asked(
            client,
            "rename_symbol",
            name_path="tsTotal",
            new_name="sum",
            relative_path="src/total.ts",
            project=["ui", "web"],
        )
    assert page.read_text() == SHORTHAND.replace("{ tsTotal } from", "{ sum } from").replace(
        "{ tsTotal };", "{ tsTotal: sum };"
    )


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits that wait for their consequences as long as a busy machine takes to know them."""
    monkeypatch.setattr("serena_central.projects.editing.edit_effects.SYMBOLS_S", 60.0)


PATIENT = {"edit_diagnostics_s": 30}


@pytest.mark.usefixtures("patient")
async def test_an_edit_that_takes_a_name_away_says_which_places_lead_nowhere_now(tmp_path: Path) -> None:
    root = platform(tmp_path)
    risk = {"relative_path": "modules/scoring/scoring/risk.py", "mode": "literal"}
    async with session(tmp_path, root, PATIENT) as (client, _):
        await asked(client, "find_referencing_symbols", name_path="py_total", project=["scoring", "scan"])
        body, notes = await asked(client, "replace_content", **risk, needle="return 1", repl="return 3")
        assert "may_have_broken" not in body
        assert "Not checked for broken references" not in notes

        gone, notes = await asked(client, "replace_content", **risk, needle="def py_total", repl="def score")

    assert gone["may_have_broken"] == {
        "scoring": {"unresolved_references": {"scoring/risk.py": ["4: py_total"]}},
        "scan": {
            "unresolved_references": {"scan/jobs.py": ["0: py_total", "4: py_total"]},
            "errors_where_used": {"scan/jobs.py": gone["may_have_broken"]["scan"]["errors_where_used"]["scan/jobs.py"]},
        },
    }
    assert "they are not open: assets, chariot, ui, web, engine, nose." in notes


@pytest.mark.usefixtures("patient")
async def test_an_edit_of_a_signature_says_which_errors_siblings_have_now(tmp_path: Path) -> None:
    root = platform(tmp_path)
    async with session(tmp_path, root, PATIENT) as (client, _):
        await asked(client, "find_referencing_symbols", name_path="py_total", project=["scoring", "scan"])
        made, notes = await asked(
            client,
            "replace_symbol_body",
            name_path="py_total",
            relative_path="modules/scoring/scoring/risk.py",
            body="def py_total(tax: int) -> int:\n    return tax",
        )
    assert "scan" in made.get("may_have_broken", {}), (made, notes)
    assert "No argument provided" in json.dumps(made["may_have_broken"]["scan"]["errors_where_used"]["scan/jobs.py"])


@pytest.mark.usefixtures("patient")
async def test_a_sibling_that_can_not_say_in_time_what_broke_is_named(tmp_path: Path) -> None:
    root = platform(tmp_path)
    (root / "modules/scoring/.serena").mkdir()
    (root / "modules/scoring/.serena/project.yml").write_text("edit_diagnostics_s: 0.001\n")
    async with session(tmp_path, root) as (client, _):
        await asked(client, "get_symbols_overview", relative_path="scan/jobs.py", project="scan")
        await asked(client, "get_symbols_overview", relative_path="scoring/risk.py", project="scoring")
        _, notes = await asked(
            client,
            "replace_content",
            relative_path="modules/scoring/scoring/risk.py",
            needle="def py_total",
            repl="def score",
            mode="literal",
        )
    assert "Broken references were not checked within 0.001 s in: scoring, scan." in notes
