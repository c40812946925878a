"""Twenty secrets in the environment and in files that rules close: nothing that the server shows or keeps holds one."""

import json
import logging
import re
import resource
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from serena_central.claude_config.effective import load
from serena_central.claude_config.locations import Locations
from serena_central.claude_config.sources import servers_of
from serena_central.claude_config.substitution import revealed
from serena_central.web.pages.table import PAGES
from tests.support.browser import shown, visiting
from tests.support.central import RunningCentral, running_central
from tests.support.child import serving_child

pytestmark = pytest.mark.anyio

SECRETS = [f"canary{number:02}-{'x' * 12}" for number in range(20)]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    for number, secret in enumerate(SECRETS[:12]):
        monkeypatch.setenv(f"CANARY_{number}", secret)
    servers = {
        "db": {
            "command": "dbhub",
            "args": ["--dsn", "postgres://u:${CANARY_0}@h/d"],
            "env": {"PASSWORD": "${CANARY_1}"},
        },
        "web": {"url": "https://x.example.com/${CANARY_2}", "headers": {"Authorization": "Bearer ${CANARY_3}"}},
        "bad": {"command": "x", "args": ["${CANARY_4}", "${NOT_SET}"]},
    }
    files: dict[str, Any] = {
        ".git/HEAD": "ref: refs/heads/main\n",
        "cart.py": "from secrets_of_shop import KEY\n\n\nclass Cart:\n    key = KEY\n",
        ".mcp.json": {"mcpServers": servers},
        ".claude/settings.json": {
            "env": {"A": "${CANARY_5}", "B": "x${CANARY_6}y", "C": "${CANARY_7:-fallback}", "D": "${NOPE:-}"},
            "apiKeyHelper": "helper --key ${CANARY_8}",
            "enableAllProjectMcpServers": True,
            "permissions": {"deny": ["Read(.env)", "Read(secrets_of_shop.py)", "Read(keys/**)", "Read(notes.md)"]},
            "mcpServers": {"own": {"command": "y", "env": {"T": "${CANARY_9}"}}},
        },
        ".claude/settings.local.json": {"env": {"E": "${CANARY_10}", "F": "${CANARY_11}"}},
        ".env": f"TOKEN={SECRETS[12]}\nOTHER={SECRETS[13]}\n",
        "secrets_of_shop.py": f'KEY = "{SECRETS[14]}"\n\n\nclass {SECRETS[15].replace("-", "_")}:\n    pass\n',
        "keys/a.pem": SECRETS[16],
        "keys/deep/b.txt": SECRETS[17],
        "CLAUDE.md": "Use tabs. @notes.md",
        "notes.md": SECRETS[18],
        f"keys/{SECRETS[19]}.txt": "",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return root


CALLS: list[tuple[str, dict[str, Any]]] = [
    *[
        ("read_file", {"relative_path": path})
        for path in (".env", "secrets_of_shop.py", "keys/a.pem", "notes.md", "CLAUDE.md")
    ],
    ("list_dir", {"relative_path": ".", "recursive": True}),
    ("list_dir", {"relative_path": "keys"}),
    ("find_file", {"file_mask": "*"}),
    *[
        ("search_for_pattern", {"substring_pattern": text, "skip_ignored_files": skip})
        for text in ("canary", ".")
        for skip in (True, False)
    ],
    ("find_symbol", {"name_path_pattern": "KEY"}),
    ("find_symbol", {"name_path_pattern": "canary", "substring_matching": True}),
    ("find_symbol", {"name_path_pattern": "Cart", "include_body": True, "include_info": True, "depth": 1}),
    ("get_symbols_overview", {"relative_path": "."}),
    ("find_referencing_symbols", {"name_path": "Cart", "relative_path": "cart.py"}),
    ("find_declaration", {"relative_path": "cart.py", "regex": r"key = (KEY)"}),
    ("get_diagnostics_for_file", {"relative_path": "cart.py"}),
    ("get_dependency_graph", {}),
    ("find_unused_symbols", {}),
    ("create_text_file", {"relative_path": ".env", "content": "x"}),
    ("execute_shell_command", {"command": "cat .env"}),
    ("execute_shell_command", {"command": "env"}),
]

GETS = (
    "/health",
    "/metrics",
    "/api/v1/sessions",
    "/api/v1/tools",
    "/api/v1/projects",
    "/api/v1/servers",
    "/api/v1/edits",
    "/api/v1/events",
    "/api/v1/stats",
)


async def test_no_secret_leaves_the_server(tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = {"execute_shell": True, "transcripts": True, "included_optional_tools": ["execute_shell_command"]}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        said = await answers(http, root)
        said |= await pages(running, root)
    said["logs"] = caplog.text
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            said[str(file)] = file.read_bytes().decode("utf-8", "replace")
    assert len(said) > 40
    assert any("/transcripts/" in where for where in said)
    names = [SECRETS[15].replace("-", "_"), *SECRETS]
    assert [(where, one) for where, text in said.items() for one in names if one in text] == []
    # What has to show where a value comes from does, by the name of its variable.
    assert "${CANARY_5}" in shown(said[f"/configuration?root={quote(str(root))}"])


async def answers(http: httpx.AsyncClient, root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, (tool, arguments) in enumerate(CALLS):
        asked = {"arguments": {"project": str(root), **arguments}}
        found[f"{number} {tool}"] = (await http.post(f"/api/v1/tools/{tool}", json=asked)).text
    for path in GETS:
        found[path] = (await http.get(path)).text
    return found


async def pages(running: RunningCentral, root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    sessions = running.central.sessions.sessions()
    named = {"session": sessions[0].id, "tool": "find_symbol"}
    async with visiting(running) as visitor:
        for page in PAGES:
            if set(re.findall(r"{(\w+)}", page.path)) <= named.keys():  # others show what this test has none of
                path = f"{page.path.format_map(named)}?root={quote(str(root))}"
                found[path] = await visitor.see(path)
    return found


def test_the_secrets_are_resolved_and_only_shown_to_who_reveals_them(root: Path) -> None:
    loaded = load(root, Locations())
    servers = servers_of(loaded, trusted=True)
    texts = [repr(loaded.value), repr(servers), *(str(one) for one in (*loaded.problems, *servers.problems))]
    assert not [one for one in SECRETS for text in texts if one in text]
    held = [
        *map(revealed, loaded.value["env"].values()),
        revealed(loaded.value["apiKeyHelper"]),
        *(revealed(one) for server in servers.usable().values() for one in server.entry.get("env", {}).values()),
        *(revealed(one) for server in servers.usable().values() for one in server.entry.get("headers", {}).values()),
    ]
    assert all(any(SECRETS[number] in text for text in held) for number in (1, 3, 5, 6, 7, 8, 9, 10, 11))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_server_that_crashes_leaves_no_core_file(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("nothing may leave core files here")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        async with serving_child(tmp_path) as child:
            limits = Path(f"/proc/{child.process.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core.split()[4] == "0"
