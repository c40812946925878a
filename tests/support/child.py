"""`serena-central` as its users run it: real child processes with homes of their own, unlike the user's."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
from anyio.abc import Process

from tests.support.patience import while_children_work
from tests.support.postgresql import url_for

PROGRAM = Path(sys.executable).with_name("serena-central")

TESTS = Path(__file__).parents[1]

PATIENCE_S = 60
"""Far more than a start or a command takes, on a machine that does much else."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a child sees: homes below `folder`, and none of our own variables."""
    (folder / "user").mkdir(exist_ok=True)
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SERENA", "XDG_", "CLAUDE", "CODEX_", "GEMINI_"))
    }
    kept["SERENA_CENTRAL_AUTO_INSTALL"] = "off"  # tests ask no registry
    kept["SERENA_CENTRAL_ALLOWED_ROOTS"] = f"{tempfile.gettempdir()},{TESTS}"
    if url := url_for(folder / "home" / "serena-central.db"):
        kept["SERENA_CENTRAL_DATABASE_URL"] = url
    return {**kept, "HOME": str(folder / "user"), "SERENA_CENTRAL_HOME": str(folder / "home"), **more}


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def run_command(folder: Path, *arguments: str, cwd: Path | None = None, **more: str) -> Ended:
    """Runs `serena-central ARGUMENTS` to its end."""
    async with while_children_work():
        ended = await anyio.run_process(
            [str(PROGRAM), *arguments], check=False, cwd=cwd or folder, env=environment(folder, **more)
        )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@dataclass
class Child:
    """A `serena-central serve` that answers."""

    process: Process
    url: str
    folder: Path
    front_port: int
    """At which something in front of it may listen: the server proves to be called by it."""

    @property
    def server_file(self) -> Path:
        return self.folder / "home" / "server.json"

    @asynccontextmanager
    async def http(self) -> AsyncGenerator[httpx.AsyncClient]:
        token = (self.folder / "home" / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE_S) as client:
            yield client

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The first block of a tool's answer, parsed."""
        async with self.http() as http:
            response = await http.post(f"/api/v1/tools/{tool}", json={"arguments": dict(arguments)})
        assert response.status_code == 200, response.text
        return json.loads(response.json()["blocks"][0])

    async def servers(self) -> list[dict[str, Any]]:
        """The language servers, as /api shows them."""
        async with self.http() as http:
            return (await http.get("/api/v1/servers")).json()["servers"]

    def tree(self) -> list[int]:
        """Pids of the server and of everything below it."""
        pid = self.process.pid
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]

    async def end(self, number: int) -> int:
        """Sends a signal and waits for the end; the exit code."""
        self.process.send_signal(number)
        with anyio.fail_after(PATIENCE_S):
            return await self.process.wait()


@asynccontextmanager
async def serving_child(
    folder: Path,
    *arguments: str,
    program: Sequence[str] = (str(PROGRAM),),
    descriptors: int | None = None,
    **more: str,
) -> AsyncGenerator[Child]:
    """Runs `serena-central serve` until the block ends, on a free port; `descriptors` is how many it may have. `more`
    goes into its environment."""
    front_port = free_port()
    more.setdefault("SERENA_CENTRAL_SERVER_NAMES", f"127.0.0.1:{front_port}")
    limited = ["sh", "-c", f'ulimit -n {descriptors} && exec "$0" "$@"'] if descriptors else []
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    log = folder / "serve.log"
    with log.open("wb") as sink:
        process = await anyio.open_process(
            [*limited, *program, "serve", "--port", "0", *arguments],
            cwd=folder,
            env=environment(folder, **more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield Child(process, await _announced(process, log), folder, front_port)
    finally:
        with anyio.move_on_after(PATIENCE_S, shield=True):
            if process.returncode is None:
                process.terminate()
            await process.wait()
            await process.aclose()


def free_port() -> int:
    """One that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def _announced(process: Process, log: Path) -> str:
    assert process.stdout
    said = b""
    async with while_children_work():
        while b"Connect a client" not in said:
            try:
                said += await process.stdout.receive()
            except anyio.EndOfStream:
                raise AssertionError(f"serve ended: {said.decode()}{log.read_text()}") from None
    found = re.search(r"serves MCP at (http://\S+)/mcp", said.decode())
    assert found, said
    return found[1]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until_gone(pids: Sequence[int]) -> None:
    """Waits for processes that are no children of this one."""
    with anyio.fail_after(PATIENCE_S):
        while any(alive(pid) for pid in pids):
            await anyio.sleep(0.01)
