"""`serena-central config init`: templates for what a repository commits, and an ignore file for what it doesn't."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from serena_central.cli.config import command
from serena_central.config.load import load_project_config, load_server_config
from tests.support.central import sources_in


@pytest.mark.parametrize(
    ("options", "file"),
    [((), ".serena/project.yml"), (("--shared",), ".claude/.serena/serena_config.yml")],
)
def test_files_to_commit_name_no_place_on_this_machine(tmp_path: Path, options: tuple[str, ...], file: str) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    made = CliRunner().invoke(command, ["init", "--project", str(root), *options])
    assert made.exit_code == 0, made.output
    ignore = (root / file).parent / ".gitignore"
    assert sorted(path for path in root.rglob("*") if path.is_file()) == sorted([root / file, ignore])
    for written in (root / file, ignore):
        assert str(tmp_path) not in written.read_text()
        assert str(Path.home()) not in written.read_text()
    loaded = load_project_config(root, load_server_config({}, sources_in(tmp_path)), sources=sources_in(tmp_path))
    assert loaded.problems == []


def test_an_ignore_file_that_is_there_stays_and_shared_needs_a_repository(tmp_path: Path) -> None:
    ignore = tmp_path / ".serena/.gitignore"
    ignore.parent.mkdir()
    ignore.write_text("mine\n")
    CliRunner().invoke(command, ["init", "--project", str(tmp_path)])
    assert ignore.read_text() == "mine\n"
    refused = CliRunner().invoke(command, ["init", "--shared"])
    assert (refused.exit_code, "--project" in refused.output) == (2, True)


def test_a_modules_settings_are_shown_with_what_its_super_repo_commits(tmp_path: Path) -> None:
    files = {
        ".serena/project.yml": "type: super-repo\nmodules: {api: {path: api}}\n",
        ".claude/.serena/serena_config.yml": "tool_timeout_s: 7\n",
        "api/.serena/project.yml": "name: api\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shown = CliRunner().invoke(command, ["show", "--project", str(tmp_path / "api"), "--origins"]).output
    (line,) = (line for line in shown.splitlines() if line.startswith("tool_timeout_s"))
    assert line.endswith(f"{tmp_path}/.claude/.serena/serena_config.yml:1")
