"""`serena-central languages` as users run it: what a project needs, and what it says of wrong names."""

import os
from pathlib import Path

import pytest

from tests.support.child import run_command

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".gitignore").write_text("ignored/\n")
    (root / "ignored").mkdir()
    for name in ("a.py", "b.py", "c.go", "d.rs", "ignored/e.ts"):
        (root / name).touch()
    return root


async def test_the_doctor_says_per_language_what_runs_and_the_one_command_for_the_rest(
    tmp_path: Path, project: Path
) -> None:
    """rustup's proxy of a tool that no toolchain has is there, and does not run."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rustup").write_text("#!/bin/sh\necho 'Unknown binary' >&2\nexit 1\n")
    (programs / "rustup").chmod(0o755)
    (programs / "rust-analyzer").symlink_to("rustup")
    (programs / "gopls").write_text("#!/bin/sh\necho 'no such library' >&2\nexit 127\n")
    (programs / "gopls").chmod(0o755)
    ended = await run_command(tmp_path, "languages", "doctor", "--json", str(project), PATH=f"{programs}:{os.defpath}")
    assert ended.code == 1
    python, go, rust = ended.json
    assert (python["language"], python["files"], python["server"], python["runs"]) == ("python", 2, "ty", True)
    assert python["version"][0].isdigit()
    assert (go["runs"], go["program"]) == (False, str(programs / "gopls"))
    assert "no such library" in go["problem"]
    assert go["advice"].startswith("serena-central languages install gopls")
    assert (rust["runs"], rust["program"], rust["problem"]) == (False, "", "not installed")
    assert rust["advice"] == "serena-central languages install rust-analyzer"
    table = (await run_command(tmp_path, "languages", "doctor", str(project), PATH=f"{programs}:{os.defpath}")).out
    assert [line.split()[2:4] for line in table.splitlines()[2:]] == [["gopls", "FAILS"], ["rust-analyzer", "MISSING"]]
    assert f"{programs / 'gopls'}: The language server gopls did not start: it exited with code 127." in table
    assert "no such library" in table


async def test_the_doctor_looks_at_no_folder_that_can_not_be_a_project_and_says_what_it_does(
    tmp_path: Path, project: Path
) -> None:
    refused = await run_command(tmp_path, "languages", "doctor", "/")
    assert (refused.code, refused.out) == (1, "")
    assert "can't be a project: it is the home folder or above it" in refused.err
    looked = await run_command(tmp_path, "languages", "doctor", cwd=project, PATH=os.defpath)
    assert "listing the project's files" in looked.err
    assert "trying ty" in looked.err


async def test_the_doctor_is_content_where_all_is_there(tmp_path: Path, project: Path) -> None:
    for name in ("c.go", "d.rs"):
        (project / name).unlink()
    ended = await run_command(tmp_path, "languages", "doctor", cwd=project)
    assert ended.code == 0
    assert ended.out.splitlines()[1].split()[:4] == ["python", "2", "ty", "runs"]


async def test_a_missing_server_of_markup_is_no_failure_unless_the_project_names_the_language(tmp_path: Path) -> None:
    """Nearly every project has a README, and its server can only be installed by hand."""
    project = tmp_path / "project"
    (project / ".serena").mkdir(parents=True)
    (project / "README.md").write_text("# Hello\n")
    asked = ("languages", "doctor", str(project))
    ended = await run_command(tmp_path, *asked, PATH=os.defpath)
    assert (ended.code, ended.out.splitlines()[1].split()[:4]) == (0, ["markdown", "1", "marksman", "optional"])
    (finding,) = (await run_command(tmp_path, *asked, "--json", PATH=os.defpath)).json
    assert (finding["runs"], finding["optional"]) == (False, True)
    (project / ".serena/project.yml").write_text("languages: [markdown]\n")
    ended = await run_command(tmp_path, *asked, PATH=os.defpath)
    assert (ended.code, ended.out.splitlines()[1].split()[:4]) == (1, ["markdown", "1", "marksman", "MISSING"])


async def test_what_comes_with_the_product_is_not_installed_again(tmp_path: Path) -> None:
    ended = await run_command(tmp_path, "languages", "install", "python", "--json")
    (outcome,) = ended.json
    assert (outcome["server"], outcome["via"], outcome["fresh"], outcome["ok"]) == ("ty", "bundled", False, True)
    removed = await run_command(tmp_path, "languages", "uninstall", "python")
    assert (removed.code, removed.out) == (0, "ty: was not installed\n")


async def test_a_recipe_that_can_not_be_carried_out_fails_with_the_reason(tmp_path: Path) -> None:
    ended = await run_command(tmp_path, "languages", "install", "gopls", PATH=os.defpath, HOME=str(tmp_path))
    assert ended.code == 1
    assert "gopls: FAILED: gopls could not be installed.\ngo: go is required but not on PATH" in ended.err


async def test_wrong_names_are_wrong_usage(tmp_path: Path) -> None:
    assert (await run_command(tmp_path, "languages", "install", "klingon")).code == 2
    assert (await run_command(tmp_path, "languages", "install")).code == 2
