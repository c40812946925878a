"""`serena-central hook install` and `uninstall`, as people run them."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from serena_central.cli.hook import command
from serena_central.clients.table import HOOKS


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "central home"))
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    return result.output


def test_a_users_hooks_start_this_python_with_this_home(home: Path) -> None:
    assert "hooks installed in" in run("install", "claude-code")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    (group,) = settings["hooks"]["PreToolUse"]
    assert group["hooks"][0]["command"] == (
        f"SERENA_CENTRAL_HOME='{home}/central home' {sys.executable} -I -m serena_central.hook enforce "
        "--client claude-code || exit 0"
    )
    assert "are already installed in" in run("install", "claude-code")
    assert "removed from" in run("uninstall", "claude-code")
    assert not (home / ".claude" / "settings.json").exists()
    assert "are not in" in run("uninstall", "claude-code")


@pytest.mark.parametrize("client", HOOKS)
def test_what_others_share_names_nothing_of_this_machine(home: Path, client: str) -> None:
    project = home / "project"
    project.mkdir()
    run(
        "install",
        client,
        "--scope",
        "project",
        "--project",
        str(project),
        "--mode",
        "nudge",
        "--source-folder",
        "my app",
    )
    text = (project / HOOKS[client].project_file).read_text()
    assert str(home) not in text
    assert sys.executable not in text
    assert f"serena-hook enforce --client {client} --mode nudge --source-folder 'my app' || exit 0" in text
    assert f"serena-hook session-start --client {client} || exit 0" in text


def test_a_dry_run_shows_the_change_and_makes_none(home: Path) -> None:
    assert '+  "version": 1' in run("install", "cursor", "--dry-run")
    assert [*home.iterdir()] == []


def test_who_can_not_be_asked_is_told_so_before_anything_is_written(home: Path) -> None:
    refused = CliRunner().invoke(command, ["install", "claude-code", "codex", "--mode", "ask"])
    assert (refused.exit_code, "Codex does not support hooks that ask the user" in refused.output) == (2, True)
    assert [*home.iterdir()] == []


def test_a_hook_can_be_run_here_as_well(home: Path) -> None:
    result = CliRunner().invoke(command, ["enforce", "--help"])
    assert result.exit_code == 0
    assert "serena-central hook enforce" in result.output
