"""The same fault again and again: what each costs once must not add up."""

import json
import os
import signal
from pathlib import Path

import anyio
import psutil
import pytest

from tests.support.central import running_central
from tests.support.child import alive, serving_child, until_gone
from tests.support.mcp import text_of
from tests.support.scripted import scripted_project, scripted_ty

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CRASHES = 200
KILLS = 20


async def test_two_hundred_crashes_of_a_language_server_cost_no_answer_and_leave_no_process(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    us = psutil.Process()
    async with running_central(tmp_path, patience_s=600) as central, central.raw("handshake") as client:
        await client.call("activate_project", project=str(root))
        killed: set[int] = set()
        files: list[int] = []
        for _ in range(CRASHES):
            result = await client.call("find_referencing_symbols", name_path="Cart/total")
            assert json.loads(text_of(result)) == {}
            (server,) = (await client.http.get("/api/v1/servers")).json()["servers"]
            assert server["pid"] not in killed
            os.kill(server["pid"], signal.SIGKILL)
            killed.add(server["pid"])
            files.append(us.num_fds())
        await until_gone([*killed])
        shown = (await client.http.get("/api/v1/servers")).json()["servers"]
        assert [(one["restarts"], one["breaker"]["state"]) for one in shown] == [(CRASHES - 1, "closed")]
        assert max(files[-20:]) <= max(files[:20]) + 5, "open files add up"
    assert not [child.pid for child in us.children(recursive=True) if child.pid in killed]


async def test_a_server_killed_and_started_twenty_times_leaves_no_orphan_and_knows_its_sessions(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    everybody: set[int] = set()
    for _ in range(KILLS):
        async with serving_child(tmp_path) as child:
            found = await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(root)})
            assert [one["name_path"] for one in found] == ["Cart"]
            async with child.http() as http:
                await http.post("/api/v1/tools/find_referencing_symbols", json={"arguments": {"name_path": "Cart"}})
            tree = child.tree()
            everybody.update(tree)
            assert await child.end(signal.SIGKILL) == -signal.SIGKILL
            await until_gone(tree)
    assert not any(alive(pid) for pid in everybody)
    async with serving_child(tmp_path) as last, last.http() as http:
        projects = (await http.get("/api/v1/projects")).json()["projects"]
        assert [project["root"] for project in projects] == [str(root)]
        with anyio.fail_after(60):
            assert await last.end(signal.SIGTERM) == 143
