"""The log of a real server: what stands in it, and what must never."""

import json
from pathlib import Path

import pytest

from tests.support.child import serving_child
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio


async def test_a_log_of_every_detail_is_json_with_keys_and_never_holds_the_token(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    (project / "cart.py").write_text("class Cart: ...\n")
    settings = tmp_path / "user" / ".serena" / "serena_config.yml"
    settings.parent.mkdir(parents=True)
    settings.write_text("log_format: json\nlog_level: debug\n")
    async with serving_child(tmp_path) as child:
        await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(project)})
        async with child.http() as http:
            client = RawClient(http, "handshake", name="curious")
            await client.open()
            await client.call("activate_project", project=str(project))
            await client.call("find_symbol", name_path_pattern=7)
            secret = http.headers["authorization"].removeprefix("Bearer ")
        assert await child.end(15) == 143
    text = (tmp_path / "home" / "logs" / "server.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    calls = [line for line in lines if line.get("action") == "call.finished"]
    assert [line["level"] for line in calls] == ["debug", "debug", "info"]
    assert client.session_id in {line["session"] for line in calls}
    (activated,) = [line for line in lines if line.get("action") == "session.activated"]
    assert activated["project"] == "shop"
    assert {line["server"] for line in lines if line.get("action") == "server.moved"} == {"ty"}
    assert secret not in text
    assert secret not in (tmp_path / "serve.log").read_text()
