"""What is looked through for findings, by a language server that does not always answer at once."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from serena_central.analysis.broken_references import AT_ONCE, Broken, Kept, broken_references
from serena_central.cli import validate
from serena_central.core.errors import ServerBusy
from serena_central.lsp.go_platforms import LOADS_S
from serena_central.projects.navigation.symbol_views import DiagnosticView
from tests.support.central import running_central, running_parts
from tests.support.fake_server import DEFAULT_CAPABILITIES
from tests.support.fakes import methods_of
from tests.support.mcp import RawClient
from tests.support.scripted import behave, log_in, scripted_project, scripted_ty

DIAGNOSTIC = "textDocument/diagnostic"

COMPLAINT = {
    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}},
    "severity": 1,
    "code": "unresolved-import",
    "message": "lost",
}


PULLS = DEFAULT_CAPABILITIES | {"diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False}}

FILES = 25

BROKEN = {
    "path": "a.py",
    "line": 0,
    "what": "undefined name",
    "message": "lost",
    "certainty": "certain",
    "new": False,
}


async def test_a_file_that_a_busy_server_gave_up_is_asked_about_again(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(
        tmp_path,
        capabilities=PULLS,
        answers={DIAGNOSTIC: {"kind": "full", "items": [COMPLAINT]}},
        errors={DIAGNOSTIC: [-32802] * 4},
    )
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        result = await client.call("check_references", project=str(root), possible=True)
        answer, *notes = (part["text"] for part in result["content"])
        assert [one["path"] for one in json.loads(answer)["broken"]] == ["cart.py"]
        assert notes == []
    assert methods_of(log_in(tmp_path)).count(DIAGNOSTIC) == 5


async def test_what_is_only_possible_is_listed_when_it_is_new_in_the_session(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("print((1).first)\n")
    async with running_central(tmp_path) as central, central.raw("handshake") as client:

        async def listed(**arguments: object) -> list[tuple[str, bool]]:
            result = await client.call("check_references", project=str(root), **arguments)
            return [(one["message"], one["new"]) for one in json.loads(result["content"][0]["text"])["broken"]]

        assert await listed() == []
        (root / "cart.py").write_text("\nprint((1).first)\nprint((1).second)\n")
        ((message, new),) = await listed()
        assert "second" in message
        assert new
        ((message, new),) = await listed(paths=["cart.py"])
        assert "second" in message
        assert [new for _, new in await listed(possible=True)] == [False, True]


async def test_files_that_the_server_refuses_are_counted_as_failed(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path, capabilities=PULLS, errors={DIAGNOSTIC: [-32603] * 4}, answers={})
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        result = await client.call("check_references", project=str(root))
    answer = json.loads(result["content"][0]["text"])
    assert (answer["broken"], answer["checked"], answer["failed"]) == ([], 1, 1)


def slow_project(folder: Path, found: list[Any]) -> Path:
    """Of `FILES` files, each of which takes its server a while; it finds that in each."""
    scripted_ty(folder)
    root = scripted_project(folder, **slow(found))
    for number in range(FILES - 1):
        (root / f"more_{number}.py").write_text("import lost\n")
    return root


def slow(found: list[Any]) -> dict[str, Any]:
    answers = {DIAGNOSTIC: {"kind": "full", "items": found}}
    return {"capabilities": PULLS, "answers": answers, "late_on": {DIAGNOSTIC: 0.4}}


async def check(client: RawClient, root: Path, **arguments: Any) -> tuple[dict[str, Any], list[str]]:
    """What a check of a second finds out, and its notes."""
    told = {"project": str(root), "possible": True, "seconds": 1, **arguments}
    answer, *notes = (part["text"] for part in (await client.call("check_references", **told))["content"])
    return json.loads(answer), notes


@pytest.mark.parametrize("changing", [False, True])
async def test_a_check_that_was_cut_short_goes_on_where_it_was_unless_files_changed(
    tmp_path: Path, *, changing: bool
) -> None:
    root = slow_project(tmp_path, [])
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        first, notes = await check(client, root)
        assert first["not_examined"] == FILES - first["checked"] > 0
        assert any(f"Out of time: {first['not_examined']} of {FILES} files were not checked." in note for note in notes)
        other, _ = await check(client, root, relative_path="cart.py", seconds=60)
        assert (other["checked"], "not_examined" in other) == (1, False)
        if changing:
            (root / "cart.py").write_text("import lost\n\n")
        calls, last = 1, first
        while "not_examined" in last:
            before, (last, notes) = last["checked"], await check(client, root)
            calls += 1
            assert changing or last["checked"] >= before
    assert (last["checked"], last["broken"], notes) == (FILES, [], [])
    asked = methods_of(log_in(tmp_path)).count(DIAGNOSTIC) - 1
    again = first["checked"] if changing else 0
    assert FILES + again <= asked <= FILES + again + calls * AT_ONCE


async def test_what_a_check_found_before_it_was_cut_short_is_looked_at_again(tmp_path: Path) -> None:
    root = slow_project(tmp_path, [COMPLAINT])
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        first, _ = await check(client, root)
        assert len(first["broken"]) == first["checked"] < FILES
        behave(tmp_path, **slow([]))
        for server in central.central.pool.snapshot():
            assert await central.central.pool.restart(server.key, "another script")
        last, notes = await check(client, root, seconds=60)
    assert (last["checked"], last["broken"], notes) == (FILES, [], [])


async def test_files_that_failed_are_asked_about_again_after_the_others(tmp_path: Path) -> None:
    root = slow_project(tmp_path, [])
    behave(tmp_path, **slow([]), errors={DIAGNOSTIC: [-32603] * 3})
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        await client.call("get_symbols_overview", relative_path="cart.py", project=str(root))  # the server has started
        first, _ = await check(client, root)
        assert first["failed"] == 3
        last, notes = await check(client, root, seconds=60)
    assert (last["checked"], last["failed"], notes) == (FILES, 0, [])


async def test_a_file_that_is_not_built_here_is_asked_about_again_where_the_server_was_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "go.mod").write_text("module shop\n")
    (root / "a_windows.go").write_text("package shop\n")
    asked = 0

    async def diagnostics(_path: str) -> tuple[list[DiagnosticView], None]:
        nonlocal asked
        asked += 1
        if asked in {1, 3, 4}:
            raise ServerBusy("gopls", "busy")
        return [], None

    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        monkeypatch.setattr(project.navigation, "diagnostics", diagnostics)
        first = await broken_references(project, ["a_windows.go"])
        second = await broken_references(project, ["a_windows.go"])
    assert [(one.checked, one.failed, one.unasked) for one in (first, second)] == [(1, 0, 0), (1, 1, 0)]


async def test_files_that_are_not_built_here_are_checked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "go.mod").write_text("module shop\n")
    elsewhere = {"a.go": "//go:build windows\n\npackage shop\n", "b_windows.go": "package shop\n"}
    here = {"c.go": "package shop\n", "d.go": "//go:build linux\n\npackage shop\n"}
    for name, text in {**elsewhere, **here}.items():
        (root / name).write_text(text)
    asked: list[str] = []

    async def diagnostics(path: str) -> tuple[list[DiagnosticView], None]:
        asked.append(path)
        return [], None

    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        monkeypatch.setattr(project.navigation, "diagnostics", diagnostics)
        every = sorted([*elsewhere, *here])
        await broken_references(project, every)
        assert asked == [*here, *elsewhere]
        asked.clear()
        kept, soon = Kept(), LOADS_S / 2  # loading the project again would take longer
        first = await broken_references(project, every, until=anyio.current_time() + soon, kept=kept)
        assert (asked, first.unasked) == ([*here], 2)
        assert any("2 of 4 files were not checked" in note for note in first.notes)
        second = await broken_references(project, every, until=anyio.current_time() + soon, kept=kept)
        assert (asked, second.unasked) == ([*here, *elsewhere], 0)
        asked.clear()
        with anyio.fail_after(soon):  # as gates ask: in time, or not at all
            assert (await broken_references(project, every)).unasked == 0
        asked.clear()
        # What failed or is broken does not keep a check from getting on.
        kept = Kept()
        kept.found["c.go"] = [Broken("c.go", 0, 0, "undefined name", "lost", "X", None)], None
        kept.failed.update({"a.go", "d.go"})
        await broken_references(project, every, until=anyio.current_time() + soon, kept=kept)
    assert asked == ["b_windows.go", "d.go", "c.go", "a.go"]


@pytest.mark.parametrize(
    ("more", "broken", "code"),
    [({}, [], 0), ({"failed": 1}, [], 1), ({"failed": 1}, [BROKEN], 1), ({"not_examined": 3}, [], 1)],
)
def test_validate_does_not_end_well_where_files_could_not_be_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: dict[str, int], broken: list[Any], code: int
) -> None:
    answer = json.dumps({"broken": broken, "checked": 1, "failed": 0, "possible": 0, **more})
    monkeypatch.setattr(validate, "ask_about", lambda *_: [answer])
    ended = CliRunner().invoke(validate.command, ["--broken-refs", "--project", str(tmp_path)])
    assert ended.exit_code == code, ended.output
    assert "unused" not in ended.output
    assert ("1 file could not be checked" in ended.output) is ("failed" in more)
    assert ("3 files not examined in time" in ended.output) is ("not_examined" in more)


async def test_an_ignored_folder_is_refused_where_it_would_have_no_findings(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "build/inner").mkdir(parents=True)
    (root / ".gitignore").write_text("build/\n")
    (root / "build/inner/cart.py").write_text("lost\n")
    told = {"project": str(root), "relative_path": "build/inner"}
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        for tool in ("check_references", "find_unused_symbols", "dependency_graph", "get_symbols_overview"):
            result = await client.call(tool, **told)
            assert result["isError"], tool
            assert f"project='{root}/build/inner'" in result["content"][0]["text"]
        result = await client.call("search_for_pattern", substring_pattern="lost", **told)
        assert any("'build/inner' is ignored and was not searched" in part["text"] for part in result["content"])
        result = await client.call("check_references", project=f"{root}/build/inner")
        assert [one["path"] for one in json.loads(result["content"][0]["text"])["broken"]] == ["cart.py"]


async def test_that_all_is_ignored_is_said(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "src").mkdir()
    (root / ".gitignore").write_text("/*\n")
    (root / "src/cart.py").write_text("lost\n")
    listing = {"relative_path": ".", "skip_ignored_files": True}
    asked = {"check_references": {}, "find_unused_symbols": {}, "dependency_graph": {}, "list_dir": listing}
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        for tool, arguments in asked.items():
            result = await client.call(tool, project=str(root), **arguments)
            assert any("Skipped: all top-level folders" in part["text"] for part in result["content"][1:]), (
                tool,
                result,
            )
