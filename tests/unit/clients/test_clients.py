"""What is written for each client, and where: by its own rules, on each platform, for a user or a project."""

import json
from pathlib import Path

import pytest

from serena_central.clients.client import Machine, Proxy, Server, is_ours, program_of, renewed, url_of
from serena_central.clients.state import state_of, transport_of
from serena_central.clients.table import CLIENTS

HOME = Path("/home/me")
URL = "http://127.0.0.1:24280/mcp"
PROXY = Proxy("user", "/opt/bin/serena-proxy", {})
SHARED_PROXY = Proxy("project", "serena-proxy", {})
SERVER = Server("user", URL, "s3cret", "/opt/bin/serena-proxy --print-headers")
SHARED_SERVER = Server("project", URL, None, "serena-proxy --print-headers")

BY_STDIO = {
    "claude-code": {"type": "stdio", "command": "/opt/bin/serena-proxy", "args": []},
    "codex": {"command": "/opt/bin/serena-proxy", "args": []},
    "gemini": {"command": "/opt/bin/serena-proxy", "args": []},
    "cursor": {"command": "/opt/bin/serena-proxy", "args": []},
    "vscode": {"type": "stdio", "command": "/opt/bin/serena-proxy", "args": []},
    "opencode": {"type": "local", "command": ["/opt/bin/serena-proxy"], "enabled": True},
    "cline": {"command": "/opt/bin/serena-proxy", "args": []},
    "windsurf": {"command": "/opt/bin/serena-proxy", "args": []},
    "zed": {"command": "/opt/bin/serena-proxy", "args": []},
    "claude-desktop": {"command": "/opt/bin/serena-proxy", "args": ["--context", "desktop-app"]},
    "copilot-cli": {"type": "stdio", "command": "/opt/bin/serena-proxy", "args": [], "tools": ["*"]},
    "qwen-code": {"command": "/opt/bin/serena-proxy", "args": []},
    "kiro": {"command": "/opt/bin/serena-proxy", "args": []},
    "roo-code": {"command": "/opt/bin/serena-proxy", "args": []},
    "kilo-code": {"command": "/opt/bin/serena-proxy", "args": []},
    "amp": {"command": "/opt/bin/serena-proxy", "args": []},
    "junie": {"command": "/opt/bin/serena-proxy", "args": []},
}
TOKEN = {"Authorization": "Bearer s3cret"}
BY_HTTP = {
    "claude-code": {"type": "http", "url": URL, "headersHelper": "/opt/bin/serena-proxy --print-headers"},
    "codex": {"url": URL, "http_headers": TOKEN, "env_http_headers": {"X-Serena-Project": "PWD"}},
    "gemini": {"httpUrl": URL, "headers": {**TOKEN, "X-Serena-Project": "$PWD"}},
    "cursor": {"url": URL, "headers": TOKEN},
    "vscode": {"type": "http", "url": URL, "headers": TOKEN},
    "opencode": {
        "type": "remote",
        "url": URL,
        "enabled": True,
        "headers": {**TOKEN, "X-Serena-Project": "{env:PWD}"},
    },
    "cline": {"type": "streamableHttp", "url": URL, "headers": TOKEN},
    "windsurf": {"serverUrl": URL, "headers": TOKEN},
    "zed": {"url": URL, "headers": TOKEN},
    "copilot-cli": {"type": "http", "url": URL, "headers": TOKEN, "tools": ["*"]},
    "qwen-code": {"httpUrl": URL, "headers": TOKEN},
    "kiro": {"url": URL, "headers": TOKEN},
    "roo-code": {"type": "streamable-http", "url": URL, "headers": TOKEN},
    "kilo-code": {"type": "streamable-http", "url": URL, "headers": TOKEN},
    "amp": {"url": URL, "headers": TOKEN},
}
FOLDER = "${workspaceFolder}"
SHARED_BY_HTTP = {
    "kiro": {"url": URL, "headers": {"Authorization": "Bearer ${SERENA_TOKEN}"}},
    "claude-code": {"type": "http", "url": URL, "headersHelper": "serena-proxy --print-headers"},
    "codex": {
        "url": URL,
        "bearer_token_env_var": "SERENA_TOKEN",
        "env_http_headers": {"X-Serena-Project": "PWD"},
    },
    "gemini": {"httpUrl": URL, "headers": {"Authorization": "Bearer $SERENA_TOKEN", "X-Serena-Project": "$PWD"}},
    "cursor": {"url": URL, "headers": {"Authorization": "Bearer ${env:SERENA_TOKEN}", "X-Serena-Project": FOLDER}},
    "vscode": {
        "type": "http",
        "url": URL,
        "headers": {"Authorization": "Bearer ${env:SERENA_TOKEN}", "X-Serena-Project": FOLDER},
    },
    "opencode": {
        "type": "remote",
        "url": URL,
        "enabled": True,
        "headers": {"Authorization": "Bearer {env:SERENA_TOKEN}", "X-Serena-Project": "{env:PWD}"},
    },
}


def test_each_client_is_listed_under_its_name() -> None:
    assert {name: client.name for name, client in CLIENTS.items()} == {name: name for name in BY_STDIO}


@pytest.mark.parametrize("name", CLIENTS)
def test_entries_are_what_the_client_reads(name: str) -> None:
    client = CLIENTS[name]
    assert client.stdio(PROXY) == BY_STDIO[name]
    assert (client.http(SERVER) if client.http else None) == BY_HTTP.get(name)
    shared = client.http(SHARED_SERVER) if client.http and client.project_files and client.http_by_reference else None
    assert shared == SHARED_BY_HTTP.get(name)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_file_that_others_share_holds_nothing_of_this_user(name: str) -> None:
    client = CLIENTS[name]
    written = [client.stdio(SHARED_PROXY)]
    if client.http and client.http_by_reference:
        written.append(client.http(SHARED_SERVER))
    for text in map(json.dumps, written):
        assert "s3cret" not in text
        assert '"/' not in text
        assert "None" not in text


@pytest.mark.parametrize("name", CLIENTS)
def test_entries_are_known_again_and_their_state_is_told(name: str) -> None:
    client = CLIENTS[name]
    stdio = client.stdio(Proxy("user", "/bin/sh/serena-proxy", {"SERENA_CENTRAL_HOME": "/srv/sc"}))
    assert "/srv/sc" in json.dumps(stdio)
    assert is_ours(stdio)
    assert (transport_of(stdio), program_of(stdio), url_of(stdio)) == ("stdio", "/bin/sh/serena-proxy", None)
    assert (
        state_of(stdio, url=URL, token=None, environment={}) == "/bin/sh/serena-proxy no longer exists; connect again"
    )
    if client.http is None:
        return
    http = client.http(Server("user", URL, "s3cret", "A=1 /bin/sh --print-headers"))
    if program_of(http) is None:
        assert is_ours(http)
        assert state_of(http, url=URL, token="s3cret", environment={}) == "current"
        assert "old token" in state_of(http, url=URL, token="other", environment={})
        assert "connect again" in state_of(http, url="http://127.0.0.1:1/mcp", token="s3cret", environment={})


def test_the_state_of_a_reference_depends_on_the_environment(tmp_path: Path) -> None:
    proxy = tmp_path / "serena-proxy"
    proxy.write_text("")
    proxy.chmod(0o755)
    by_name, variable = {"command": "serena-proxy"}, SHARED_BY_HTTP["codex"]
    helper = {"url": URL, "headersHelper": f"SERENA_CENTRAL_HOME='/a b' {proxy} --print-headers"}
    set_right = {"PATH": str(tmp_path), "SERENA_TOKEN": "s3cret"}
    for entry, told in ((by_name, "not on PATH"), (variable, "$SERENA_TOKEN")):
        assert state_of(entry, url=URL, token="s3cret", environment=set_right) == "current"
        assert told in state_of(entry, url=URL, token="s3cret", environment={"PATH": "/nowhere"})
    assert state_of(helper, url=URL, token="s3cret", environment={}) == "current"
    assert "points to" in state_of(helper, url="http://127.0.0.1:1/mcp", token="s3cret", environment={})


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "text",
        [],
        {},
        {"command": 7},
        {"command": []},
        {"command": "uvx", "args": ["serena", "start-mcp-server"]},
        {"url": "http://localhost:9121/mcp"},
        {"url": "https://example.com/mcp", "headers": {"Authorization": "x"}},
        {"url": "http://[", "headersHelper": "'"},
    ],
)
def test_entries_of_others_are_not_taken_for_ours(entry: object) -> None:
    assert not is_ours(entry)
    assert "another server" in state_of(entry, url=URL, token="t", environment={})


def test_what_users_add_to_our_entry_stays_when_it_is_renewed() -> None:
    old = {"command": "/old/serena-proxy", "args": ["--x"], "timeout": 9, "env": {"A": "1"}}
    new = {"url": URL, "headers": {}}
    assert renewed(old, new) == {**new, "timeout": 9, "env": {"A": "1"}}
    assert renewed({"command": "uvx", "timeout": 9}, new) == new


LINUX, MAC, WINDOWS = (Machine(HOME, platform, {}) for platform in ("linux", "darwin", "win32"))
MOVED = Machine(
    HOME,
    "linux",
    {
        "XDG_CONFIG_HOME": "/cfg",
        "CODEX_HOME": "/codex",
        "CLAUDE_CONFIG_DIR": "/claude",
        "CLINE_MCP_SETTINGS_PATH": "/c",
    },
)


@pytest.mark.parametrize(
    ("name", "machine", "file"),
    [
        ("claude-code", LINUX, "/home/me/.claude.json"),
        ("claude-code", MOVED, "/claude/.claude.json"),
        ("codex", MAC, "/home/me/.codex/config.toml"),
        ("codex", MOVED, "/codex/config.toml"),
        ("gemini", LINUX, "/home/me/.gemini/settings.json"),
        ("cursor", WINDOWS, "/home/me/.cursor/mcp.json"),
        ("vscode", LINUX, "/home/me/.config/Code/User/mcp.json"),
        ("vscode", MAC, "/home/me/Library/Application Support/Code/User/mcp.json"),
        ("vscode", WINDOWS, "/home/me/AppData/Roaming/Code/User/mcp.json"),
        ("opencode", MAC, "/home/me/.config/opencode/opencode.json"),
        ("opencode", MOVED, "/cfg/opencode/opencode.json"),
        (
            "cline",
            LINUX,
            "/home/me/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        ("cline", MOVED, "/c"),
        ("windsurf", LINUX, "/home/me/.codeium/windsurf/mcp_config.json"),
        ("zed", MAC, "/home/me/.config/zed/settings.json"),
        ("zed", WINDOWS, "/home/me/AppData/Roaming/Zed/settings.json"),
        ("copilot-cli", LINUX, "/home/me/.copilot/mcp-config.json"),
        ("qwen-code", LINUX, "/home/me/.qwen/settings.json"),
        ("kiro", LINUX, "/home/me/.kiro/settings/mcp.json"),
        (
            "roo-code",
            LINUX,
            "/home/me/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ),
        ("amp", LINUX, "/home/me/.config/amp/settings.json"),
        ("amp", WINDOWS, "/home/me/.config/amp/settings.json"),
        ("junie", LINUX, "/home/me/.junie/mcp/mcp.json"),
        ("kilo-code", LINUX, "/home/me/.kilocode/cli/global/settings/mcp_settings.json"),
        ("claude-desktop", LINUX, "/home/me/.config/Claude/claude_desktop_config.json"),
        ("claude-desktop", MAC, "/home/me/Library/Application Support/Claude/claude_desktop_config.json"),
    ],
)
def test_files_are_where_the_client_looks(name: str, machine: Machine, file: str) -> None:
    assert str(CLIENTS[name].user_files(machine)[0]) == file
