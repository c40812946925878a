"""The connection to a server that hangs."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from serena_central.proxy import link
from serena_central.proxy.event_loop import Loop
from serena_central.proxy.link import Link, Silent, Unreachable
from serena_central.proxy.starting import Starter
from serena_central.standalone.home import Home
from serena_central.standalone.lock import locked


@pytest.mark.skipif(sys.platform == "win32", reason="nobody holds a lock there")
def test_a_server_that_takes_connections_and_answers_nothing_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked three times, half a minute each, while another one was started that could not run beside it."""
    monkeypatch.setattr(link, "PROOF_S", 0.2)
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as hanging, locked(tmp_path / "lock"):
        port = hanging.getsockname()[1]
        announced = {"url": f"http://127.0.0.1:{port}/mcp", "pid": os.getpid()}
        (tmp_path / "server.json").write_text(json.dumps(announced))
        loop, home = Loop(), Home(str(tmp_path))
        found = Link(loop, home, url=None, token_file=home.token_file, starter=Starter(loop, home))
        failures: list[str] = []

        async def ask() -> None:
            try:
                await found.connection()
            except Silent as error:
                failures.append(str(error))

        loop.run(ask())
    assert f"kill -9 {os.getpid()}" in failures[0]
    assert not Path(home.start_log).exists()


def test_another_program_at_the_address_of_a_server_that_was_killed_is_not_called_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server was started any more, and the advice was to kill whatever process had the old one's id."""
    monkeypatch.setattr(link, "PROOF_S", 0.2)
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "lock").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        announced = {"url": f"http://127.0.0.1:{port}/mcp", "pid": os.getpid()}
        (tmp_path / "server.json").write_text(json.dumps(announced))
        loop, home = Loop(), Home(str(tmp_path))
        found = Link(loop, home, url=None, token_file=home.token_file, starter=None)
        failures: list[Unreachable] = []

        async def ask() -> None:
            try:
                await found.connection_now()
            except Unreachable as error:  # for which `connection` starts a server
                failures.append(error)

        loop.run(ask())
    assert not isinstance(failures[0], Silent)
    assert f"another program takes connections at 127.0.0.1:{port}" in str(failures[0])


@pytest.mark.skipif(sys.platform == "win32", reason="nobody holds a lock there")
def test_a_server_whose_process_id_means_nothing_here_is_found_by_its_lock(tmp_path: Path) -> None:
    """One in another container that shares the home: each client started servers in vain, which could not hold it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    (tmp_path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:1234/mcp", "pid": ended.pid}))
    loop = Loop()
    found = Link(loop, Home(str(tmp_path)), url=None, token_file=None, starter=None)

    async def look() -> None:
        with locked(tmp_path / "lock"):
            target = found.target()
            assert target is not None
            assert target.authority == "127.0.0.1:1234"
        assert found.target() is None

    loop.run(look())
