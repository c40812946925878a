"""SIGTERM under load: every call that runs is answered in time, what happened is in the database, nothing is left."""

import signal
import sqlite3
from pathlib import Path

import anyio
import httpx
import pytest

from tests.support.child import Child, alive, serving_child
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
