"""`serena-central doctor` as a user runs it: beside a server that is well or hangs, and programs that do not run."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.cli.checks.languages import check_languages
from serena_central.cli.checks.server import check_server
from serena_central.core.places import Places
from serena_central.standalone.lock import lock_at_once, open_lock
from tests.support.child import PATIENCE_S, PROGRAM, environment, run_command, serving_child

pytestmark = pytest.mark.anyio


async def test_a_server_that_runs_is_found_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    async with serving_child(tmp_path) as child:
        with anyio.fail_after(PATIENCE_S):
            while not (tmp_path / "home" / "serena-central.db").exists():  # it is opened when the start is over
                await anyio.sleep(0.05)
        # Without the PATH of whoever runs the tests: only what comes with the product is found.
        ended = await run_command(tmp_path, "doctor", "--json", PATH=os.defpath)
        checks: dict[str, Any] = {check["name"].partition(" (")[0]: check for check in ended.json}
        assert (ended.code, ended.err) == (0, ""), ended.out
        for name in ("home", "settings", "token", "server", "database", "ty", "disk", "open files", "clock"):
            assert checks[name]["state"] in ("ok", "warning"), checks[name]
        assert child.url in checks["server"]["says"]
        assert checks["ty"]["says"].endswith("runs")
        assert "schema" in checks["database"]["says"]
        assert "processes" not in checks
        child.process.send_signal(signal.SIGSTOP)
        try:
            (server,) = [one for one in check_server(Places(tmp_path / "home")) if one.name == "server"]
        finally:
            child.process.send_signal(signal.SIGCONT)
    assert (server.state, "does not answer" in server.says) == ("failed", True)


@pytest.mark.parametrize("command", ["stop", "status", "sessions", "doctor"])
async def test_a_server_that_starts_is_not_said_to_be_none(tmp_path: Path, command: str) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    lock = open_lock(tmp_path / "home" / "lock")
    try:
        assert lock_at_once(lock)
        ended = await run_command(tmp_path, command, PATH=os.defpath, SERENA_CENTRAL_SERVER_PORT="0")
    finally:
        os.close(lock)
    assert f"is starting or stopping: it holds {tmp_path}/home/lock" in ended.out + ended.err
    assert "No server" not in ended.out + ended.err


async def test_a_server_of_another_version_that_does_not_understand_a_command_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    async with serving_child(tmp_path):
        announcement = tmp_path / "home" / "server.json"
        said = json.loads(announcement.read_text())
        announcement.write_text(json.dumps(said | {"version": "0.0.1"}))
        ended = await run_command(tmp_path, "task", "show", "t-nowhere")
        assert "The server has version 0.0.1, this command" in ended.err
        assert "`serena-central restart`" in ended.err
        announcement.write_text(json.dumps(said))
        ended = await run_command(tmp_path, "task", "show", "t-nowhere")
        assert "version" not in ended.err


@pytest.mark.parametrize("name", ["lock", "server.json", "logs/server.log", "serena-central.db"])
def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path, name: str) -> None:
    places = Places(tmp_path / "home")
    (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    (home,) = [one for one in check_server(places) if one.name == "home"]
    assert (home.state, home.says) == ("failed", f"{places.home / name} is a folder")


async def test_a_failure_is_marked_for_people_and_is_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "token").write_text("x" * 40)
    (tmp_path / "home" / "token").chmod(0o644)
    ended = await run_command(tmp_path, "doctor", PATH=os.defpath, SERENA_CENTRAL_SERVER_PORT="0")
    assert ended.code == 1
    assert "FAILED  token: " in ended.out
    assert f"→ delete {tmp_path}/home/token" in ended.out
    assert "ok      settings: no problems" in ended.out


@pytest.mark.parametrize("arguments", [("doctor",), ("serve", "--port", "0"), ("serve", "--daemon", "--port", "0")])
async def test_a_home_in_which_nothing_can_be_written_is_told_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """As on a full disk: no file may become longer than nothing."""
    (tmp_path / "home").mkdir(mode=0o700)
    limited = ["sh", "-c", 'ulimit -f 0; exec "$0" "$@"', str(PROGRAM), *arguments]
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(limited, check=False, env=environment(tmp_path, PATH=os.defpath), cwd=tmp_path)
    said = ended.stdout.decode() + ended.stderr.decode()
    assert f"{tmp_path}/home can't be written: file too large" in said
    assert "SERENA_CENTRAL_HOME" in said
    assert "Traceback" not in said
    assert ended.returncode in (1, 2)
    assert "memory" in said or arguments != ("doctor",)


async def test_a_language_server_that_is_there_and_does_not_run_is_told_but_not_of_a_language_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rust_analyzer, perl = tmp_path / "rust-analyzer", tmp_path / "perl"
    rust_analyzer.write_text("#!/bin/sh\necho 'error: Unknown binary' >&2\nexit 1\n")
    perl.write_text('#!/bin/sh\necho "Can\'t locate Perl/LanguageServer.pm" >&2\nexit 2\n')
    for program in (rust_analyzer, perl):
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    found = {check.name.partition(" (")[0]: check for check in await check_languages(Places(tmp_path / "home"))}
    assert (found["rust-analyzer"].state, found["ty"].state) == ("warning", "ok")
    assert "Unknown binary" in found["rust-analyzer"].says
    assert "serena-central languages install rust-analyzer" in found["rust-analyzer"].advice
    assert "perl-languageserver" not in found


async def test_settings_of_claude_code_that_have_no_effect_are_told(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    file = root / ".claude" / "settings.json"

    async def checks() -> list[tuple[str, str]]:
        ended = await run_command(tmp_path, "doctor", "--json", cwd=root, PATH=os.defpath)
        return [(one["state"], one["says"]) for one in ended.json if one["name"] == "claude settings"]

    assert await checks() == []
    file.write_text('{"permissions": {"deny": ["Read(./.env)"]}}')
    assert await checks() == [("ok", "no errors")]
    file.write_text('{"permissions": {"deny": ["Read("]}}')
    (warned,) = await checks()
    assert warned[0] == "warning"
    assert f"{file}:1:27" in warned[1]
    file.write_text('{"permissions": {')
    (broken,) = await checks()
    assert broken[0] == "failed"
    assert "only its rules count" in broken[1]
