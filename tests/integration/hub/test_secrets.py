"""Secrets of upstreams: an upstream gets them, and its caller gets what it answers; nothing that is kept or shown holds
one, whatever the upstream does with them."""

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from click.testing import CliRunner

from serena_central.cli.mcp import command
from serena_central.core.logs import TALKATIVE
from serena_central.core.masking import MASK
from serena_central.web.pages.table import PAGES
from tests.support.browser import visiting
from tests.support.central import RunningCentral, running_central
from tests.support.mcp import RawClient
from tests.support.upstreams import QUICK, scripted, settings_of_user

pytestmark = pytest.mark.anyio

VALUES = ("variable", "literal", "argument", "option", "header", "address", "query")
VALUES += ("assigned1", "stderr", "team1", "hook", "of-settings", "key-helper", "headers-helper")
SECRETS = {name: f"canary-{name}-{'x' * 10}" for name in VALUES}

PLACES = ("$TOKEN", "$MY_PASSWORD", "$ANTHROPIC_API_KEY", "$SETTINGS_SECRET")


def helper(folder: Path, name: str, output: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    for name in ("variable", "argument", "address", "header"):
        monkeypatch.setenv(f"CANARY_{name}".upper(), SECRETS[name])
    env = {"TOKEN": "${CANARY_VARIABLE}", "MY_PASSWORD": SECRETS["literal"]}
    leaking = scripted(expands=True, version="${CANARY_ARGUMENT}") | {"env": env}
    leaking["args"] += ["${CANARY_ARGUMENT}", "--api-key", SECRETS["option"], f"--token={SECRETS['assigned1']}"]
    last_words = f"no such user $TOKEN $MY_PASSWORD $ANTHROPIC_API_KEY; tried --password {SECRETS['stderr']}"
    broken = scripted(exit_at_start=3, last_stderr=last_words) | {"env": env}
    printed = json.dumps({"X-More": SECRETS["headers-helper"]})
    remote = {
        "type": "http",
        "url": f"http://127.0.0.1:9/${{CANARY_ADDRESS}}?token={SECRETS['query']}",
        "headers": {"Authorization": "Bearer ${CANARY_HEADER}", "X-Team": SECRETS["team1"]},
        "headersHelper": helper(tmp_path, "headers", printed),
    }
    nowhere = {"command": "/nowhere/${CANARY_ARGUMENT}"}
    servers = {"leaking": leaking, "broken": broken, "remote": remote, "nowhere": nowhere}
    key_helper = helper(tmp_path, "key", SECRETS["key-helper"])
    hook = {"type": "command", "command": f"true --token {SECRETS['hook']}"}
    settings_of_user(
        folder,
        servers,
        env={"SETTINGS_SECRET": SECRETS["of-settings"]},
        apiKeyHelper=key_helper,
        hooks={"Stop": [{"hooks": [hook]}]},
    )
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="helpers are scripts")
async def test_no_secret_of_an_upstream_is_kept_or_shown(
    tmp_path: Path, user: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """REQ-MCP-007"""
    caplog.set_level(logging.DEBUG)
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    settings = QUICK | {"transcripts": True}
    async with running_central(tmp_path, settings) as running:
        async with running.raw("handshake", x_serena_project=str(root)) as client:
            said = await called(client)
        said |= await shown(running, root)
    kept = [one for one in caplog.records if not one.name.startswith(TALKATIVE)]
    said["logs"] = "\n".join(one.getMessage() for one in kept)
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            said[str(file)] = file.read_bytes().decode("utf-8", "replace")
    assert any("/transcripts/" in where for where in said)
    assert any("leaking.log" in where for where in said)
    assert [(where, one) for where, text in said.items() for one in SECRETS.values() if one in text] == []


@pytest.mark.skipif(sys.platform == "win32", reason="helpers are scripts")
async def test_secrets_that_an_upstream_prints_to_stderr_are_masked(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-MCP-002, REQ-MCP-007"""
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "home"))
    async with running_central(tmp_path, QUICK) as running, running.raw("modern") as client:
        await client.call("leaking__complain", text=f"connecting as {' '.join((*PLACES, SECRETS['assigned1']))}")
        file = tmp_path / "home" / "logs" / "mcp" / "leaking.log"
        with anyio.fail_after(30):
            while "! connecting as" not in file.read_text():
                await anyio.sleep(0.01)
        lines = CliRunner().invoke(command, ["logs", "leaking"]).output
        async with visiting(running) as visitor:
            page = await visitor.see("/upstreams/leaking")
        said = {"file": file.read_text(), "mcp logs": lines, "page": page}
    assert [where for where, text in said.items() if f"! connecting as{f' {MASK}' * 5}" not in text] == []
    assert [(where, one) for where, text in said.items() for one in SECRETS.values() if one in text] == []


async def called(client: RawClient) -> dict[str, str]:
    """Calls everything that may leak; the texts that are not answers of an upstream. The caller itself gets those."""
    await client.call("list_dir", relative_path=".")
    await client.ask("tools/list")
    for place, name in zip(PLACES, ("variable", "literal", "key-helper", "of-settings"), strict=True):
        for tool in ("echo", "error", "progress", "log"):
            result = await client.call(f"leaking__{tool}", {"progressToken": place}, text=f"it is {place}.")
            assert SECRETS[name] in json.dumps(result), (tool, name)
    found: dict[str, str] = {}
    for number, tool in enumerate(
        ("leaking__refuse", "broken__echo", "remote__echo", "nowhere__echo", "leaking__boom")
    ):
        found[f"{number} {tool}"] = json.dumps(await client.call(tool, text=" ".join(PLACES)))
    assert json.dumps(MASK)[1:-1] in found["0 leaking__refuse"]
    long = await client.call("leaking__echo", text="it is $TOKEN. " * 10_000)
    found["a long answer"] = json.dumps(long)
    assert "read_result" in found["a long answer"]
    return found


async def shown(running: RunningCentral, root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    async with running.http() as http:
        names = ("leaking", "broken", "remote", "nowhere")
        paths = ["upstreams", "events", "stats", "sessions", *(f"upstreams/{name}" for name in names)]
        for path in ("/metrics", *(f"/api/v1/{one}" for one in paths)):
            found[path] = (await http.get(path)).text
        for name in names:
            found[f"call {name}"] = (await http.post(f"/api/v1/tools/{name}__echo", json={"arguments": {}})).text
    session = running.central.sessions.sessions()[0].id
    async with visiting(running) as visitor:
        for page in PAGES:
            named: dict[str, Any] = {"session": session, "tool": "find_symbol", "upstream": "broken"}
            if set(re.findall(r"{(\w+)}", page.path)) <= named.keys():  # others show what this test has none of
                path = f"{page.path.format_map(named)}?root={quote(str(root))}"
                found[path] = await visitor.see(path)
        found["leaking"] = await visitor.see("/upstreams/leaking")
    assert "no such user" in found[f"/upstreams/broken?root={quote(str(root))}"]
    return found
