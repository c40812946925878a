"""`serena-central connect` while other programs change the same files."""

import json
import threading
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from serena_central.cli import claude_edits, connect, hook
from serena_central.cli.connecting import Here
from serena_central.clients import change
from serena_central.standalone import lock

SETTINGS = Path(".gemini") / "settings.json"
"""Has both the servers and the hooks of its client."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "central home"))
    (tmp_path / SETTINGS).parent.mkdir()
    return tmp_path


def run(command: click.Command, *arguments: str) -> str:
    return CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False).output


def test_what_an_editor_saves_while_connect_asks_for_the_server_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / SETTINGS
    file.write_text("{}")

    def asked(_places: object) -> bool:
        file.write_text('{"theme": "dark", "mcpServers": {"serena": {"command": "uvx"}}}')
        return False

    monkeypatch.setattr(connect, "server_runs", asked)
    assert "This replaced an entry that started uvx." in run(connect.command, "gemini")
    said = json.loads(file.read_text())
    assert said["theme"] == "dark"
    assert said["mcpServers"]["serena"]["command"].endswith("serena-proxy")


@pytest.mark.parametrize(
    ("first", "second", "file", "keys"),
    [
        ((connect.command, "gemini"), (hook.command, "install", "gemini"), SETTINGS, {"mcpServers", "hooks"}),
        (
            (hook.command, "install", "claude-code"),
            (claude_edits.set_value, "env.A", "b", "--tier", "user"),
            Path(".claude") / "settings.json",
            {"hooks", "env"},
        ),
    ],
)
def test_two_commands_that_change_a_file_at_once_both_change_it(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    file: Path,
    keys: set[str],
) -> None:
    monkeypatch.setattr(connect, "server_runs", lambda _places: False)
    proceeds, finished = threading.Event(), threading.Event()
    check, lock_at_once = change._check_unchanged, lock.lock_at_once

    def other() -> None:
        try:
            run(*second)
            finished.set()
        finally:
            proceeds.set()

    at_once = threading.Thread(target=other)

    def checked(planned: change.Change) -> None:
        check(planned)
        if at_once.ident is None:  # the first one is about to replace the file
            at_once.start()
            assert proceeds.wait(30)

    def taken(descriptor: int, *, shared: bool = False) -> bool:
        mine = lock_at_once(descriptor, shared=shared)
        if not mine:
            proceeds.set()  # the second one waits for the first
        return mine

    monkeypatch.setattr(change, "_check_unchanged", checked)
    monkeypatch.setattr(lock, "lock_at_once", taken)
    run(*first)
    at_once.join(30)
    assert finished.is_set()
    assert keys <= json.loads((home / file).read_text()).keys()


def test_a_file_that_another_program_keeps_changing_is_left_to_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, rounds = home / SETTINGS, iter(range(100))
    check = change._check_unchanged

    def overtaken(planned: change.Change) -> None:
        file.write_text(json.dumps({"round": next(rounds)}))
        check(planned)

    monkeypatch.setattr(change, "_check_unchanged", overtaken)
    monkeypatch.setattr(connect, "server_runs", lambda _places: False)
    with pytest.raises(connect.CantConnect, match="just changed by another program"):
        run(connect.command, "gemini")
    assert json.loads(file.read_text()) == {"round": change.TRIES - 1}
    assert len(list(Here.now().backups.of(file))) == change.TRIES - 1  # at first there was no file
