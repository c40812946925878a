"""SIGTERM under load: every call that runs is answered in time, what happened is in the database, nothing is left."""

import json
import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from serena_central.standalone.lock import is_locked
from tests.support.child import PATIENCE_S, PROGRAM, Child, alive, environment, run_command, serving_child
from tests.support.fakes import logged
from tests.support.mcp import RawClient
from tests.support.scripted import REFERENCES, log_in, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

CLIENTS = 16

ANSWERED_WITHIN_S = 60
"""Some 3 s where the machine is not busy."""


class Load:
    """Clients that call one after the other until the server is gone."""

    def __init__(self) -> None:
        self.signalled = False
        self.answered = 0
        self.refused: list[str] = []
        self.unanswered: list[str] = []

    async def client(self, child: Child, root: Path, number: int) -> None:
        async with child.http() as http:
            http.headers["x-serena-session"] = f"client-{number}"
            client = RawClient(http, "handshake" if number % 2 else "modern")
            await client.open()
            while not self.signalled:
                try:
                    result = await client.call("find_referencing_symbols", name_path="Cart/total", project=str(root))
                except httpx.TransportError as error:
                    self.unanswered.append(repr(error))  # it began before the signal, and so should have an answer
                    return
                self.answered += 1
                if result["isError"]:
                    self.refused.append(result["content"][0]["text"])


async def test_a_stop_under_load_answers_every_call_keeps_every_row_and_leaves_nothing(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    quick = scripted_project(tmp_path, "quick")
    hung = scripted_project(tmp_path, "hung", hang_on=[REFERENCES])
    load = Load()
    async with serving_child(tmp_path) as child:
        async with anyio.create_task_group() as tasks:
            for number in range(CLIENTS):
                tasks.start_soon(load.client, child, hung if number < CLIENTS // 4 else quick, number)
            await logged(log_in(tmp_path, "quick"), method=REFERENCES, count=50)
            await logged(log_in(tmp_path, "hung"), method=REFERENCES)
            tree = child.tree()
            load.signalled = True
            child.process.send_signal(signal.SIGTERM)
            tasks.cancel_scope.deadline = anyio.current_time() + ANSWERED_WITHIN_S
        assert not tasks.cancel_scope.cancelled_caught, "calls were still waiting"
        assert await child.end(signal.SIGTERM) == 143
    assert load.unanswered == []
    assert len(load.refused) == CLIENTS // 4
    assert all("The server is stopping" in text for text in load.refused)
    assert not any(alive(pid) for pid in tree)
    with sqlite3.connect(tmp_path / "home" / "serena-central.db") as database:
        rows = database.execute("SELECT outcome, count(*) FROM tool_call GROUP BY outcome").fetchall()
    database.close()
    assert dict(rows) == {"ok": load.answered - len(load.refused), "cancelled": len(load.refused)}
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


async def test_a_stop_does_not_wait_for_a_process_that_ended_and_that_its_parent_does_not_wait_for(
    tmp_path: Path,
) -> None:
    """As in a container whose first process reaps nothing: `stop` and `restart` failed there after 15 s."""
    (tmp_path / "home").mkdir(mode=0o700)
    with (tmp_path / "serve.log").open("wb") as log:
        server = subprocess.Popen(  # noqa: ASYNC220 - nobody waits for it before the end
            [str(PROGRAM), "serve", "--port", "0"],
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    with anyio.fail_after(PATIENCE_S):
        while not (tmp_path / "home" / "server.json").exists():
            await anyio.sleep(0.05)
    stopped = await run_command(tmp_path, "stop")
    assert (stopped.code, stopped.out) == (0, f"Stopped (pid {server.pid}).\n")
    assert psutil.Process(server.pid).status() == psutil.STATUS_ZOMBIE
    assert server.wait() == 0


@pytest.mark.parametrize("here", ["another program", "no process"])
async def test_a_server_whose_process_id_means_something_else_here_is_waited_for_until_it_is_gone(
    tmp_path: Path, here: str
) -> None:
    """As one in another container that shares the home."""
    async with serving_child(tmp_path) as child:
        said = json.loads(child.server_file.read_text())
        ended = await anyio.run_process(["sh", "-c", "echo $$"])
        pid = os.getpid() if here == "another program" else int(ended.stdout)
        child.server_file.write_text(json.dumps(said | {"pid": pid}))
        stopped = await run_command(tmp_path, "stop")
        assert (stopped.code, stopped.out) == (0, f"Stopped (pid {pid}).\n")
        assert not is_locked(tmp_path / "home" / "lock")
