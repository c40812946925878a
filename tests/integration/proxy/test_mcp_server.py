"""`serena-mcp-server` as people's configurations start it: as a proxy, and standalone."""

import json
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from tests.support.child import environment, serving_child, until_gone
from tests.support.mcp import text_of
from tests.support.proxy import proxying

pytestmark = pytest.mark.anyio

COMMAND = (str(Path(sys.executable).with_name("serena-mcp-server")),)


async def test_the_usual_flags_are_taken_and_the_meaningless_ones_are_named(tmp_path: Path, project: Path) -> None:
    flags = ["--project", str(project), "--transport", "stdio", "--enable-web-dashboard", "false"]
    async with serving_child(tmp_path), proxying(tmp_path, "modern", "start-mcp-server", *flags, command=COMMAND) as it:
        found = await it.call("find_symbol", name_path_pattern="Cart/total")
        assert "cart.py" in text_of(found)
        assert "--enable-web-dashboard false" in it.said()


async def test_another_transport_is_refused_with_the_way_to_have_it(tmp_path: Path) -> None:
    ended = await anyio.run_process([*COMMAND, "--transport", "sse"], check=False, env=environment(tmp_path))
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"serena-central serve" in ended.stderr


async def test_standalone_serves_in_one_process_and_leaves_nothing(tmp_path: Path, project: Path) -> None:
    kept = str(tmp_path / "temporary")
    Path(kept).mkdir()
    flags = ["--standalone", "--project", str(project)]
    async with proxying(tmp_path, "handshake", *flags, command=COMMAND, TMPDIR=kept) as client:
        await client.open()
        found = json.loads(text_of(await client.call("find_symbol", name_path_pattern="Cart/total")))
        assert found[0]["relative_path"] == "cart.py"
        assert not (tmp_path / "home" / "server.json").exists()
        children = [child.pid for child in psutil.Process(client.process.pid).children(recursive=True)]
        await client.end_input()
        assert await client.ended() == 0
        await until_gone(children)
        assert not list(Path(kept).glob("serena-standalone-*"))
