"""Clients made with the SDKs of MCP, at their defaults and without a header of ours but the token, in both eras."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.clients.agents import INSTALLED, NODE
from tests.support.child import PATIENCE_S, free_port, run_command, serving_child
from tests.support.mcp import Era
from tests.support.scripted import REFERENCES, log_in, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent / "interop"
BUILD = INSTALLED.parent

LINE_BYTES = 1024 * 1024


def python() -> list[str]:
    return [str(BUILD / "python" / "bin" / "python"), "-I", str(HERE / "client.py")]


def typescript(which: str) -> list[str]:
    program = BUILD / "client.mjs"  # beside node_modules, where it finds the SDK
    shutil.copyfile(HERE / "client.mjs", program)
    return [str(NODE / "node"), str(program), which]


def go() -> list[str]:
    if not (BUILD / "go-client").exists():
        pytest.skip("no Go on this machine's PATH: `make test-clients` builds the Go SDK's client where it is")
    return [str(BUILD / "go-client")]


CLIENTS = {
    "fastmcp": python,
    "typescript-oldest": lambda: typescript("oldest"),
    "typescript-newest": lambda: typescript("newest"),
    "go": go,
}
CASES: list[tuple[str, Era]] = [
    ("fastmcp", "handshake"),
    ("fastmcp", "modern"),
    ("typescript-oldest", "handshake"),
    ("typescript-newest", "handshake"),
    ("typescript-newest", "modern"),
    ("go", "handshake"),
    ("go", "modern"),
]


class Told:
    """What a client has told so far."""

    def __init__(self, process: Process) -> None:
        assert process.stdout
        self._lines = BufferedByteReceiveStream(process.stdout)
        self.all: dict[str, Any] = {}

    async def until(self, key: str) -> None:
        with anyio.fail_after(PATIENCE_S):
            while key not in self.all:
                self.all |= json.loads(await self._lines.receive_until(b"\n", LINE_BYTES))


@pytest.mark.parametrize(("client", "era"), CASES)
async def test_an_sdk_does_all_that_it_can(client: str, era: Era, tmp_path: Path) -> None:
    command = CLIENTS[client]()
    scripted_ty(tmp_path)
    project = scripted_project(tmp_path, hang_on=[REFERENCES])
    port = str(free_port())
    async with serving_child(tmp_path, "--port", port) as server:
        token = (tmp_path / "home" / "token").read_text().strip()
        process = await anyio.open_process(
            [*command, era, f"{server.url}/mcp", token, str(project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_PROXY": "*"},
        )
        try:
            told = Told(process)
            await told.until("ready")
            with anyio.fail_after(PATIENCE_S):
                while "$/cancelRequest" not in log_in(tmp_path).read_text():
                    await anyio.sleep(0.01)
            eras = {session["era"] for session in (await run_command(tmp_path, "sessions", "--json")).json}
            await server.end(signal.SIGTERM)
            async with serving_child(tmp_path, "--port", port):
                assert process.stdin
                await process.stdin.send(b"\n")
                await told.until("again")
                with anyio.fail_after(PATIENCE_S):
                    assert await process.wait() == 0
        finally:
            with anyio.move_on_after(PATIENCE_S, shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()
    said = told.all
    assert {"find_symbol", "find_referencing_symbols"} <= set(said["tools"])
    assert "cart.py" in said["found"]
    assert "missing.py" in said["refused"]
    assert "no_such_tool" in said["unknown"]
    assert "find_referencing_symbols" in said["progress"]
    assert said["cancelled"]
    assert eras == {era}
    assert all(said["sessions"])
    if era == "handshake":
        assert len(set(said["sessions"])) == 2
    assert "cart.py" in said["again"]
