"""The doctor on folders, settings, databases and processes that are not as they should be."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from serena_central.cli.checks.check import Check, failed, finished, ok
from serena_central.cli.checks.server import check_server
from serena_central.core.errors import StoreUnusable
from serena_central.core.places import Places
from serena_central.pool.ledger import OWNER_VARIABLE, Ledger
from serena_central.store.database import Database
from serena_central.store.inspection import check_usable


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A user who has run a server before, and no settings."""
    for name in [name for name in os.environ if name.startswith("SERENA")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SERENA_CENTRAL_SERVER_PORT", "0")
    places = Places(tmp_path / "data")
    places.create()
    with closing(Database(places.database)) as database:
        database.open()
    return places


def examined(places: Places, name: str) -> list[Check]:
    found = [check for check in check_server(places) if check.name == name]
    assert all(check.advice for check in found if check.state in ("warning", "failed"))
    return found


def state(places: Places, name: str) -> str:
    (check,) = examined(places, name)
    return check.state


def settings_in(folder: Path, text: str) -> Path:
    file = folder / ".serena" / "serena_config.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_nothing_is_wrong_where_a_server_ran_and_stopped(places: Places) -> None:
    states = {check.name: check.state for check in check_server(places)}
    assert states == {
        "home": "ok",
        "settings": "ok",
        "token": "info",
        "server": "info",
        "processes": "ok",
        "port": "ok",
        "database": "ok",
        "log": "info",
    }


def test_nothing_is_wrong_before_the_first_start(places: Places) -> None:
    shutil.rmtree(places.home)
    assert {check.state for check in check_server(places)} == {"ok", "info"}


def test_a_folder_that_others_may_look_into_or_that_is_a_file_is_told(places: Places) -> None:
    places.home.chmod(0o755)
    assert state(places, "home") == "warning"
    shutil.rmtree(places.home)
    places.home.write_text("a file")
    assert state(places, "home") == "failed"


def test_a_token_that_others_may_read_is_a_failure(places: Places) -> None:
    places.token_file.write_text("x" * 40)
    places.token_file.chmod(0o644)
    (token,) = examined(places, "token")
    assert (token.state, str(places.token_file) in token.advice) == ("failed", True)
    places.token_file.chmod(0o600)
    assert state(places, "token") == "ok"


def test_problems_of_settings_are_told_with_file_and_line_those_of_projects_too(places: Places, tmp_path: Path) -> None:
    project = tmp_path / "shop" / ".serena" / "project.yml"
    project.parent.mkdir(parents=True)
    project.write_text("project_name: shop\ntool_timeout_s: soon\n")
    file = settings_in(tmp_path, f"projects: [{tmp_path}/shop]\ninvented: 1\n")
    found = {check.state: check.says for check in examined(places, "settings")}
    assert found["failed"].startswith(f"{project}:2: tool_timeout_s")
    assert found["warning"].startswith(f"{file}:2: invented")


def test_settings_that_refuse_a_start_are_a_failure_and_the_rest_is_still_checked(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENA_CENTRAL_SERVER_PORT", "many")
    assert (state(places, "settings"), state(places, "database")) == ("failed", "ok")
    assert examined(places, "port") == []


def test_a_database_is_told_that_is_newer_damaged_none_or_set_aside(places: Places) -> None:
    with closing(sqlite3.connect(places.database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    (newer,) = examined(places, "database")
    assert (newer.state, "written by a newer version" in newer.says) == ("failed", True)
    content = bytearray(places.database.read_bytes())
    content[3 * 4096 :] = os.urandom(len(content) - 3 * 4096)
    places.database.write_bytes(content)
    (damaged,) = examined(places, "database")
    assert (damaged.state, "sets the corrupt file aside" in damaged.advice) == ("failed", True)
    places.database.unlink()
    assert state(places, "database") == "info"
    with closing(Database(places.database)) as database:
        database.open()
    (places.home / f"{places.database.name}.corrupt-1").touch()
    assert [check.state for check in examined(places, "database")] == ["ok", "warning"]


def test_a_postgresql_server_without_its_driver_says_what_to_install(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERENA_CENTRAL_DATABASE_URL", "postgresql://me:hunter2@db.example/central")
    monkeypatch.setitem(sys.modules, "pg8000.dbapi", None)
    (database,) = examined(places, "database")
    assert (database.state, "driver is not installed" in database.says) == ("failed", True)
    assert "pipx install --force '.[postgresql]'" in database.advice
    assert "password" not in database.advice
    with pytest.raises(StoreUnusable, match=r"Install it: pipx install"):
        check_usable(places.database, "postgresql://me:hunter2@db.example/central")


def test_who_holds_the_port_is_named(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("SERENA_CENTRAL_SERVER_PORT", str(taken.getsockname()[1]))
        (port,) = examined(places, "port")
    assert (port.state, f"(pid {os.getpid()})" in port.says) == ("failed", True)


def test_processes_of_an_earlier_run_are_found_and_left_alone(places: Places) -> None:
    ledger = Ledger(places.ledger_file)
    places.server_file.write_text("{}")
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, OWNER_VARIABLE: ledger.owner},
    ) as left:
        assert left.stdout
        left.stdout.readline()
        ledger.record([left.pid])
        (processes,) = examined(places, "processes")
        assert (processes.state, str(left.pid) in processes.says) == ("warning", True)
        assert examined(places, "server.json")
        assert left.poll() is None
        left.communicate()


def test_what_a_check_can_not_look_at_is_a_finding_and_hides_none_before_it(tmp_path: Path) -> None:
    def checks() -> Iterator[Check]:
        yield ok("first", "well")
        (tmp_path / "a file").touch()
        yield from (ok(entry.name, "") for entry in (tmp_path / "a file").iterdir())

    first, second = finished(checks())
    assert first == ok("first", "well")
    assert second == failed("checks", second.says, second.advice)
    assert f"{tmp_path}/a file: Not a directory" in second.says
