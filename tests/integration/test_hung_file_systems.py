"""A client that works on a file system whose server is away: it holds up neither the server nor other clients."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

SILENT_MOUNT = Path(__file__).parents[1] / "support/silent_mount.py"

CODE = """
import json
import sys
from pathlib import Path

import anyio

sys.path[0] = {root!r}

from tests.support.central import running_central
from tests.support.mcp import RawClient

EVENT = {{"hook_event_name": "PreToolUse", "session_id": "s", "cwd": point, "tool_name": "Bash",
          "tool_input": {{"command": "ls"}}}}


async def main():
    async with running_central(Path({home!r})) as central, central.http() as http:
        client = RawClient(http, "handshake")
        http.headers["X-Serena-Project"] = point
        await client.open()
        listed = await client.call("list_projects")
        found = await client.call("find_symbol", name_path_pattern="x")
        body = {{"client": "claude-code", "said": EVENT}}
        gate = await http.post("/api/v1/gates/PreToolUse", json=body)
        said = {{"listed": listed, "found": found, "gate": [gate.status_code, gate.text]}}
        print(json.dumps(said), flush=True)


anyio.run(main)
"""


def test_a_client_on_a_file_system_that_does_not_answer_is_told_so(tmp_path: Path) -> None:
    point, home = tmp_path / "far", tmp_path / "home"
    point.mkdir()
    code = CODE.format(root=str(Path(__file__).parents[2]), home=str(home))
    program = [sys.executable, str(SILENT_MOUNT), str(point), code]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
        assert asking.stdout
        server = asking.stdout.readline()
        if not server:
            assert asking.stderr
            said = asking.stderr.read()
            if any(why in said for why in ("PermissionError", "FileNotFoundError", "OSError", "AttributeError")):
                pytest.skip(f"no file system can be mounted here: {said.splitlines()[-1]}")
            pytest.fail(said)
        stuck = Timer(60, os.kill, (int(server), signal.SIGKILL))  # what hangs there goes on then
        stuck.start()
        output = asking.stdout.readline()
        is_stuck = not stuck.is_alive()
        stuck.cancel()
        if not is_stuck:
            os.kill(int(server), signal.SIGKILL)
        _, errors = asking.communicate(timeout=60)
    assert not is_stuck, "the server waited for the file system"
    assert output, errors
    said = json.loads(output)
    assert not said["listed"]["isError"], said["listed"]
    assert "its file system does not answer" in said["found"]["content"][0]["text"]
    assert said["gate"][0] == 403
    assert "its file system does not answer" in said["gate"][1]
