"""`serena-central claude` and `mcp`: what is said of settings, servers and memory, and what is changed in them."""

import errno
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serena_central.cli import claude_edits
from serena_central.cli.main import main
from serena_central.core.masking import MASK
from serena_central.files.atomic import write_whole
from tests.support.child import PROGRAM, Ended

SECRET = "canary-1234"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a home of its own; commands are run in it, in this process."""
    root = tmp_path / "user" / "shop"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    for name in [name for name in os.environ if name.startswith(("SERENA", "XDG_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(root.parent))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "central"))
    monkeypatch.chdir(root)
    return root


class Commands:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str, **environment: str) -> Ended:
        code = 0
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["serena-central", *arguments])
            for name, value in environment.items():
                patch.setenv(name, value)
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else -1
        out, err = self._capsys.readouterr()
        return Ended(code, out, err)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_show_explain_and_check(root: Path, run: Commands) -> None:
    of_user = {"model": "sonnet", "permissions": {"deny": ["Bash(rm:*)"]}}
    user = write(root.parent / ".claude" / "settings.json", of_user)
    file = write(
        root / ".claude" / "settings.json",
        '{\n  "model": "opus",\n  "env": {"KEY": "${TOKEN}"},\n'
        '  "permissions": {"deny": ["Read(.env)"], "allow": ["Read(src/**)"]}\n}\n',
    )
    told = run("claude", "show", TOKEN=SECRET)
    assert told.json["model"] == "opus"
    assert told.json["env"] == {"KEY": "${TOKEN}"}
    origins = run("claude", "show", "--origins", TOKEN=SECRET)
    assert f"project  {file}:2:3" in origins.out
    one_tier = run("claude", "show", "--tier", "user", TOKEN=SECRET)
    assert one_tier.json == {"model": "sonnet", "permissions": {"deny": ["Bash(rm:*)"]}}

    key = run("claude", "explain", "model", TOKEN=SECRET)
    assert key.out.splitlines() == [
        'model = "opus"',
        f"  counts   project  {file}:2:3",
        f'  shadowed: "sonnet" user  {user}:1:2',
    ]
    for use, said in {
        "Read(.env)": f"denied by Read(.env) in {file}:4:28 (project).",
        "Read(a/.env)": "denied by Read(.env)",
        f"Read({root}/.env)": "denied by Read(.env)",
        "Edit(.env)": "denied by Read(.env)",
        "Read(src/x.py)": "allowed by Read(src/**)",
        "Read(other.py)": "no rule is about it",
        "Bash(ls && rm -r x)": "denied by Bash(rm:*)",
        "Bash(ls)": "no rule is about it",
        "mcp__github__get": "no rule is about it",
    }.items():
        assert said in run("claude", "explain", use, TOKEN=SECRET).out, use
    checked = run("claude", "check", TOKEN=SECRET)
    assert (checked.code, checked.err) == (0, "")
    for ended in (told, origins, key, checked):
        assert SECRET not in ended.out + ended.err


def test_numbers_of_tokens_are_shown_and_passwords_of_digits_are_not(root: Path, run: Commands) -> None:
    env = {"MAX_THINKING_TOKENS": "2468013", "PGPASSWORD": "135791"}
    write(root / ".claude" / "settings.json", {"env": env})
    shown = run("claude", "show").out
    assert "2468013" in shown
    assert "135791" not in shown


def test_secrets_in_commands_headers_and_addresses_are_shown_nowhere(root: Path, run: Commands) -> None:
    hooks: list[dict[str, Any]] = [
        {
            "type": "command",
            "command": f"API_KEY={SECRET} check --token {SECRET} 'https://me:{SECRET}@h/?sig={SECRET}'",
        },
        {"type": "command", "command": "check", "args": ["--password", SECRET]},
        {"type": "http", "url": f"http://127.0.0.1:9/?key={SECRET}", "headers": {"X-Gate": SECRET, "Accept": "text/x"}},
    ]
    settings = {
        "env": {"OTEL_EXPORTER_OTLP_HEADERS": f"x-team={SECRET}", "SOME_KEY": SECRET, "DEBUG": "yes"},
        "apiKeyHelper": f"echo {SECRET}",
        "hooks": {"PreToolUse": [{"matcher": "*", "hooks": hooks}]},
    }
    write(root / ".claude" / "settings.json", settings)
    write(root.parent / ".codex" / "config.toml", f'[mcp_servers.a]\ncommand = "a"\nargs = ["--token", "{SECRET}"]\n')
    for command in (
        ["claude", "show"],
        ["claude", "show", "--json", "--origins"],
        *(["claude", "explain", key] for key in settings),
        ["hooks", "list"],
        ["hooks", "list", "--json"],
        ["connect", "codex", "--dry-run"],
    ):
        ended = run(*command)
        assert (ended.code, ended.err) == (0, ""), command
        assert SECRET not in ended.out, command
        assert MASK in ended.out or command[0] == "connect", command
    assert '"Accept": "text/x"' in run("claude", "show").out
    assert f"check --password {MASK}" in run("hooks", "list", "--json").out


@pytest.mark.parametrize("options", [(), ("--json",), ("--origins",), ("--origins", "--json")])
def test_settings_that_are_empty_are_shown(root: Path, run: Commands, options: tuple[str, ...]) -> None:
    write(root / ".claude" / "settings.json", {})
    assert run("claude", "show", *options).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("show", "--json"),
        ("show", "--origins"),
        ("show", "--tier", "user"),
        *[("explain", key) for key in ("env", "mcpServers")],
        ("explain", "mcpServers", "--json"),
    ],
)
def test_no_secret_of_settings_is_shown(root: Path, run: Commands, command: tuple[str, ...]) -> None:
    server = {
        "command": "x",
        "args": ["--api-key", SECRET, "--password", f"${{NO:-{SECRET * 2}}}"],
        "headers": {"Authorization": f"Bearer {SECRET}"},
        "env": {"DB_PASSWORD": SECRET},
    }
    told = {"env": {"MY_TOKEN": SECRET, "MAX_THINKING_TOKENS": "8000"}, "mcpServers": {"far": server}}
    write(root.parent / ".claude" / "settings.json", told)
    write(root / ".claude" / "settings.local.json", {"env": {"MY_TOKEN": f"{SECRET}-local"}})
    ended = run("claude", *command)
    assert ended.code == 0
    assert SECRET not in ended.out + ended.err
    assert MASK in ended.out or "u2022" in ended.out
    assert "8000" in ended.out or command[-1] != "env"


def test_check_ends_with_2_and_names_file_line_and_key(root: Path, run: Commands) -> None:
    file = write(root / ".claude" / "settings.json", '{\n  "env": {\n    "KEY": "${NOPE}"\n  }\n}')
    write(root / ".mcp.json", {"mcpServers": {"bad": {}}})
    ended = run("claude", "check")
    assert ended.code == 2
    assert f"{file}:3:5: error: env.KEY: the variable NOPE is not set" in ended.out
    assert "mcpServers.bad: the server has neither command nor url" in ended.out
    assert run("claude", "check", NOPE="x").code == 2
    (root / ".mcp.json").unlink()
    assert run("claude", "check", NOPE=SECRET).code == 0


def test_set_keeps_comments_and_can_be_undone(root: Path, run: Commands) -> None:
    text = '{\n  // ours\n  "model": "opus", /* yes */\n  "permissions": {\n    "deny": ["Read(a)"]\n  }\n}\n'
    file = write(root / ".claude" / "settings.json", text)
    ended = run("claude", "set", "permissions.deny", "Read(b)", "--add", "--tier", "project")
    assert ended.code == 0, ended.err
    head, _, tail = text.partition('["Read(a)"]')
    now = file.read_text()
    assert (now[: len(head)], now[-len(tail) :]) == (head, tail)
    assert json.loads(now[len(head) : -len(tail)]) == ["Read(a)", "Read(b)"]
    assert run("claude", "set", "--undo", "--tier", "project").code == 0
    assert file.read_text() == text
    assert run("claude", "set", "--undo", "--tier", "project").code == 2

    local = root / ".claude" / "settings.local.json"
    assert run("claude", "set", "env.A", '"1"').code == 0
    assert json.loads(local.read_text()) == {"env": {"A": "1"}}
    refused = run("claude", "set", "permissions.deny", '["Read([)"]')
    assert refused.code == 2
    assert "Nothing was changed" in refused.err
    assert run("claude", "set", "cleanupPeriodDays", "soon").code == 2
    local.write_text("{}")
    assert run("claude", "set", "--undo").code == 2


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself", "50 MB"])
def test_what_is_no_settings_file_is_refused_at_once(root: Path, run: Commands, kind: str) -> None:
    file = root.parent / ".claude" / "settings.json"
    file.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "50 MB":
        file.write_text('{"x": "' + "a" * 50_000_000 + '"}')
    else:
        file.symlink_to(file)
    for command in ("claude set model opus --tier user", "mcp add files --scope user -- true"):
        ended = run(*command.split())
        assert (ended.code, str(file) in ended.err) == (2, True), ended.err


@pytest.mark.parametrize(("editor", "code"), [("false", 1), ("no-such-editor", 1), ('vi "', 2), (" ", 2)])
def test_an_editor_that_fails_is_named(root: Path, run: Commands, editor: str, code: int) -> None:
    ended = run("claude", "edit", EDITOR=editor, VISUAL="")
    assert (ended.code, "Traceback" in ended.err, bool(ended.err)) == (code, False, True)


def test_what_changes_nothing_does_not_stand_in_the_way_of_undo(root: Path, run: Commands) -> None:
    file = root / ".claude/settings.json"
    file.write_text('{"model": "opus"}')
    for _ in range(2):
        assert run("claude", "set", "model", "sonnet", "--tier", "project").code == 0
        assert run("claude", "set", "permissions.deny", "Read(.env)", "--add", "--tier", "project").code == 0
        assert run("claude", "set", "permissions.deny", "Read(.env)", "--add", "--tier", "project").code == 0
    assert run("claude", "set", "--undo", "--tier", "project").code == 0
    assert file.read_text() == '{"model": "sonnet"}'


def test_undo_leaves_what_other_commands_changed(root: Path, run: Commands) -> None:
    file = root / ".claude/settings.local.json"
    assert run("claude", "set", "env.A", "a").code == 0
    write(root / ".mcp.json", {"mcpServers": {"shared": {"command": "true"}}})
    assert run("mcp", "disable", "shared").code == 0
    disabled = file.read_text()
    assert json.loads(disabled)["disabledMcpjsonServers"] == ["shared"]
    refused = run("claude", "set", "--undo")
    assert (refused.code, "was changed since" in refused.err) == (2, True)
    assert file.read_text() == disabled


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_change_keeps_line_ends_and_byte_order_mark_and_is_undone_to_the_byte(
    root: Path, run: Commands, mark: str
) -> None:
    settings, servers = root / ".claude" / "settings.json", root / ".mcp.json"
    text = f'{mark}{{\r\n  // ours\r\n  "env": {{\r\n    "A": "a"\r\n  }}\r\n}}\r\n'.encode()
    settings.write_bytes(text)
    assert run("claude", "set", "env.B", "b", "--tier", "project").code == 0
    assert settings.read_bytes() == text.replace(b'"a"', b'"a",\r\n    "B": "b"')
    assert run("claude", "set", "--undo", "--tier", "project").code == 0
    assert settings.read_bytes() == text

    text = f'{mark}{{\r\n  "mcpServers": {{\r\n    "old": {{"command": "old"}}\r\n  }}\r\n}}\r\n'.encode()
    servers.write_bytes(text)
    assert run("trust", "--yes").code == 0
    assert run("mcp", "add", "files", "--scope", "project", "--", "true").code == 0
    changed = servers.read_bytes()
    assert changed.decode().replace(mark or "\0", "").count("\n") == changed.count(b"\r\n") > text.count(b"\r\n")
    assert changed.startswith(text[: text.index(b"}")])
    assert run("trust", "--show", "--json").json[0]["state"] == "approved"
    write(root.parent / ".cursor" / "mcp.json", {"mcpServers": {"db": {"command": "dbhub"}}})
    assert "1 server would be added" in run("mcp", "import", "--tier", "project", "--dry-run").out
    assert run("mcp", "remove", "files", "--scope", "project").code == 0
    assert servers.read_bytes() == text


def test_mcp_list_says_state_and_why(root: Path, run: Commands) -> None:
    write(root / ".mcp.json", {"mcpServers": {"web": {"command": "x", "args": ["${TOKEN}"]}}})
    write(root.parent / ".claude" / "settings.json", {"mcpServers": {"mine": {"url": "https://x"}}})
    listed = run("mcp", "list", "--json", TOKEN=SECRET).json["servers"]
    assert [(one["name"], one["state"]) for one in listed] == [("mine", "enabled"), ("web", "pending approval")]
    write(root / ".claude" / "settings.local.json", {"enabledMcpjsonServers": ["web"]})
    assert "not trusted" in run("mcp", "list", TOKEN=SECRET).out
    shown = run("trust", "--yes", TOKEN=SECRET)
    assert '"web"' in shown.out
    listed = run("mcp", "list", TOKEN=SECRET)
    assert SECRET not in listed.out + shown.out
    assert "not trusted" not in listed.out
    write(root / ".mcp.json", {"mcpServers": {"web": {"command": "y"}}})
    assert "not trusted" in run("mcp", "list").out
    difference = run("trust", "--show")
    assert '+      "command": "y"' in difference.out


def test_hooks_of_a_repository_are_among_what_is_approved(root: Path, run: Commands) -> None:
    file, hooks = root / ".claude" / "settings.json", {"Stop": [{"hooks": [{"type": "command", "command": "evil.sh"}]}]}
    brings = {"hooks": hooks, "env": {"LD_PRELOAD": "x"}, "apiKeyHelper": "k"}
    write(file, {"model": "x", **brings})
    shown = run("trust", "--show").out
    assert all(word in shown for word in ("evil.sh", "LD_PRELOAD", "apiKeyHelper"))
    assert '"model"' not in shown
    assert f"{root}: trusted" in run("trust", "--yes").out
    write(file, {"model": "another", **brings})
    assert f"{root}: trusted" in run("trust", "--show").out
    write(file, {"hooks": {**hooks, "SessionStart": hooks["Stop"]}})
    assert "changed since it was trusted" in run("trust", "--show").out


def test_memory_prints_what_an_agent_gets(root: Path, run: Commands) -> None:
    write(root / "CLAUDE.md", "use tabs\n\n@docs/style.md")
    write(root / "docs" / "style.md", "no tabs")
    write(root / "api" / "CLAUDE.md", "the api")
    write(root / "AGENTS.md", "agents")
    printed = run("claude", "memory").out
    assert printed.index("use tabs") < printed.index("no tabs")
    assert "the api" not in printed
    listed = run("claude", "memory", "--json", "--touched", "api/x.py", "--also", "AGENTS.md").json
    assert [Path(part["file"]).name for part in listed["parts"]] == ["CLAUDE.md", "style.md", "AGENTS.md", "CLAUDE.md"]


def test_memory_says_that_there_is_none(root: Path, run: Commands) -> None:
    shown = run("claude", "memory")
    assert (shown.code, shown.out, shown.err) == (0, "", "No memory files.\n")


def test_no_note_is_left_of_the_last_server_that_was_removed(root: Path, run: Commands) -> None:
    assert run("mcp", "add", "files", "--", "npx", "pkg").code == 0
    assert "move them to .mcp.json" in run("claude", "check").out
    assert run("mcp", "remove", "files").code == 0
    assert "move them" not in run("claude", "check").out


def test_import_adds_the_servers_of_other_clients(root: Path, run: Commands) -> None:
    home = root.parent
    write(home / ".cursor" / "mcp.json", {"mcpServers": {"db": {"command": "dbhub"}, "there": {"command": "other"}}})
    write(home / ".codex" / "config.toml", '[mcp_servers.docs]\nurl = "https://docs.example.com/mcp"\n')
    write(home / ".cursor" / "unrelated.json", "{")
    file = write(root / ".mcp.json", '{\n  "mcpServers": {\n    "there": {"command": "mine"}\n  }\n}\n')
    assert "2 servers would be added" in run("claude", "import", "--tier", "project", "--dry-run").out
    assert json.loads(file.read_text())["mcpServers"].keys() == {"there"}
    assert run("claude", "import", "--tier", "project").code == 0
    assert json.loads(file.read_text())["mcpServers"] == {
        "there": {"command": "mine"},
        "docs": {"type": "http", "url": "https://docs.example.com/mcp"},
        "db": {"command": "dbhub"},
    }


WITH_SECRETS = {
    "github": {
        "command": "gh-mcp",
        "args": [
            "--token",
            SECRET,
            f"--api-key={SECRET}",
            "--header",
            f"Authorization: Bearer {SECRET}",
            "--root=/srv",
        ],
        "env": {"GITHUB_TOKEN": SECRET, "HOST": "${HOST}"},
    },
    "gitlab": {
        "url": f"https://ada:{SECRET}@example.com/mcp?access_token={SECRET}&page=1",
        "headers": {"Authorization": f"Bearer {SECRET}", "X-Key": "Bearer ${GITLAB_KEY}"},
    },
    "mirror": {"command": "gh-mcp", "env": {"GITHUB_TOKEN": f"{SECRET}-2"}},
}


def test_imported_servers_go_into_the_users_own_settings_which_nobody_else_reads(root: Path, run: Commands) -> None:
    write(root.parent / ".cursor" / "mcp.json", {"mcpServers": WITH_SECRETS})
    user = write(root.parent / ".claude" / "settings.json", "{}")
    user.chmod(0o644)
    told = run("mcp", "import", "--json")
    assert (told.code, told.json["file"], told.json["variables"]) == (0, str(user), {})
    assert SECRET not in told.out
    assert not (root / ".mcp.json").exists()
    servers = json.loads(user.read_text())["mcpServers"]
    assert servers["github"]["env"]["GITHUB_TOKEN"] == SECRET
    assert servers["gitlab"]["headers"]["Authorization"] == f"Bearer {SECRET}"
    assert user.stat().st_mode & 0o777 == 0o600


def test_imported_secrets_are_variables_in_a_projects_file(root: Path, run: Commands) -> None:
    write(root.parent / ".cursor" / "mcp.json", {"mcpServers": WITH_SECRETS})
    would = run("mcp", "import", "--tier", "project", "--dry-run")
    assert (would.code, "GITHUB_TOKEN" in would.out, SECRET in would.out) == (0, True, False)
    assert not (root / ".mcp.json").exists()
    told = run("mcp", "import", "--tier", "project")
    assert (told.code, SECRET in told.out) == (0, False)
    text = (root / ".mcp.json").read_text()
    assert SECRET not in text
    servers = json.loads(text)["mcpServers"]
    assert servers["github"] == {
        "command": "gh-mcp",
        "args": [
            "--token",
            "${GITHUB_SECRET}",
            "--api-key=${GITHUB_SECRET}",
            "--header",
            "Authorization: ${GITHUB_SECRET_2}",
            "--root=/srv",
        ],
        "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "HOST": "${HOST}"},
    }
    assert servers["gitlab"] == {
        "type": "http",
        "url": "https://${GITLAB_SECRET_2}@example.com/mcp?access_token=${GITLAB_SECRET}&page=1",
        "headers": {"Authorization": "${GITLAB_AUTHORIZATION}", "X-Key": "Bearer ${GITLAB_KEY}"},
    }
    assert servers["mirror"]["env"] == {"GITHUB_TOKEN": "${MIRROR_GITHUB_TOKEN}"}
    for name in ("GITHUB_TOKEN", "GITHUB_SECRET_2", "GITLAB_AUTHORIZATION", "GITLAB_SECRET_2", "MIRROR_GITHUB_TOKEN"):
        assert name in told.out
    assert "before you commit" in told.out


def test_imported_servers_take_variables_and_headers_as_their_client_means_them(root: Path, run: Commands) -> None:
    home = root.parent
    write(
        home / ".codex" / "config.toml",
        '[mcp_servers.docs]\nurl = "https://docs.example.com/mcp"\nbearer_token_env_var = "DOCS_TOKEN"\n'
        'env_http_headers = { X-Team = "TEAM" }\n'
        '[mcp_servers.local]\ncommand = "local"\nenv_vars = ["LOCAL_KEY"]\nenv = { A = "1" }\n'
        '[mcp_servers.off]\ncommand = "off"\nenabled = false\n',
    )
    write(
        home / ".cursor" / "mcp.json",
        {
            "mcpServers": {
                "db": {
                    "command": "dbhub",
                    "args": ["${workspaceFolder}/db", "$HOME"],
                    "env": {"DSN": "${env:DSN}", "KEY": "${input:key}", "D": "${D:-x}"},
                }
            }
        },
    )
    write(home / ".gemini" / "settings.json", {"mcpServers": {"g": {"command": "g", "args": ["$HOME/x", "${Y}"]}}})
    told = run("mcp", "import")
    assert told.code == 0
    assert json.loads((home / ".claude" / "settings.json").read_text())["mcpServers"] == {
        "docs": {
            "type": "http",
            "url": "https://docs.example.com/mcp",
            "headers": {"X-Team": "${TEAM}", "Authorization": "Bearer ${DOCS_TOKEN}"},
        },
        "local": {"command": "local", "env": {"LOCAL_KEY": "${LOCAL_KEY}", "A": "1"}},
        "db": {
            "command": "dbhub",
            "args": ["${workspaceFolder}/db", "$HOME"],
            "env": {"DSN": "${DSN}", "KEY": "${input:key}", "D": "${D:-x}"},
        },
        "g": {"command": "g", "args": ["${HOME}/x", "${Y}"]},
    }
    assert "${workspaceFolder}, ${input:key}: only Cursor knows" in told.out
    assert "off is switched off in Codex" in told.out


@pytest.mark.parametrize(
    "command", [("claude", "set", "model", r'"\ud800"'), ("mcp", "add-json", "x", r'{"command": "\ud800"}')]
)
def test_a_value_that_is_no_text_is_refused(root: Path, run: Commands, command: tuple[str, ...]) -> None:
    file = root / ".claude" / "settings.local.json"
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert f"{file}: " in ended.err
    assert "can't be written as UTF-8" in ended.err
    assert not file.exists()


@pytest.mark.parametrize("text", ['{"mcpServers": {', '{"mcpServers": []}', '{"mcpServers": {"a": 1,,}}'])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_import_leaves_a_file_that_can_not_be_read_and_says_where(
    root: Path, run: Commands, text: str, more: list[str]
) -> None:
    write(root.parent / ".cursor" / "mcp.json", {"mcpServers": {"db": {"command": "dbhub"}}})
    file = write(root / ".mcp.json", text)
    ended = run("mcp", "import", "--tier", "project", *more)
    assert (ended.code, f"{file}:1" in ended.err) == (2, True), ended.err
    assert file.read_text() == text


def test_edit_opens_the_right_file(root: Path, run: Commands, tmp_path: Path) -> None:
    editor = write(tmp_path / "editor", '#!/bin/sh\necho \'{"model": 7}\' > "$1"\n')
    editor.chmod(0o755)
    ended = run("claude", "edit", "--tier", "local", EDITOR=str(editor), VISUAL="")
    assert (root / ".claude" / "settings.local.json").read_text() == '{"model": 7}\n'
    assert "model: a whole number stands here" in ended.err


def test_servers_are_added_to_the_file_of_a_scope_and_removed_again(run: Commands, root: Path) -> None:
    file = write(root / ".mcp.json", '{\n  // kept\n  "mcpServers": {"old": {"command": "old"}}\n}\n')
    before = file.read_text()
    added = run("mcp", "add", "files", "--scope", "project", "--env", "A=${HOME}", "--", "npx", "-y", "--flag", "pkg")
    assert (added.code, added.err) == (0, "")
    assert "pending approval" in added.out
    assert "// kept" in file.read_text()
    assert '"args": ["-y", "--flag", "pkg"]' in file.read_text()
    assert "${HOME}" in file.read_text()
    again = run("mcp", "add", "files", "--scope", "project", "--", "other")
    assert again.code == 2
    assert "--force" in again.err
    assert run("mcp", "add", "files", "--scope", "project", "--force", "--", "other").code == 0
    assert '"command": "other"' in file.read_text()
    assert run("mcp", "remove", "files", "--scope", "project").code == 0
    assert file.read_text() == before
    assert run("mcp", "remove", "files", "--scope", "project").code == 2


def test_a_remote_server_and_one_by_its_entry_are_added_to_the_users_settings(run: Commands, root: Path) -> None:
    header = "Authorization: Bearer ${TOKEN}"
    assert run("mcp", "add", "web", "--url", "https://example.com/mcp", "--header", header, "--scope", "user").code == 0
    entry = json.dumps({"command": "true", "args": ["x"]})
    added = run("mcp", "add-json", "prog", entry, "--scope", "user", "--json").json
    assert (added["state"], added["why"]) == ("enabled", "")
    kept = json.loads(Path(added["file"]).read_text())["mcpServers"]
    assert kept["web"]["headers"] == {"Authorization": "Bearer ${TOKEN}"}
    assert kept["prog"] == {"command": "true", "args": ["x"]}
    for wrong in (
        ("add", "x"),
        ("add", "x", "--url", "u", "--", "p"),
        ("add-json", "x", "[]"),
        ("add", "a b", "--", "p"),
    ):
        assert run("mcp", *wrong).code == 2, wrong
    assert run("mcp", "add", "x", "--url", "http://u", "--header", "nothing").code == 2
    assert run("mcp", "add", "x", "--url", "ftp://u").code == 2


def test_a_server_that_is_not_started_is_reported_with_what_to_run_next(run: Commands, root: Path) -> None:
    for scope, command in (("local", "serena-central trust"), ("project", "serena-central mcp enable one")):
        said = run("mcp", "add", "one", "--scope", scope, "--force", "--", "true").out
        assert "It is not started" in said
        assert f"`{command}`" in said
        run("mcp", "remove", "one", "--scope", scope)
    assert run("mcp", "add-json", "w", '{"type": "ws", "url": "wss://a"}', "--scope", "user").code == 0
    assert run("mcp", "add", "self", "--scope", "user", "--", "uvx", "serena-mcp-server").code == 0
    found = {one["name"]: one for one in run("mcp", "list", "--json").json["servers"]}
    assert found["w"]["state"] == found["self"]["state"] == "not supported"
    assert "ws" in found["w"]["why"]


def test_a_server_whose_variable_is_not_set_is_reported_by_each_command(
    run: Commands, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEB_TOKEN", raising=False)
    entry = json.dumps({"type": "http", "url": "https://example.com/mcp", "headers": {"X": "${WEB_TOKEN}"}})
    for scope in ("local", "project", "user"):
        added = run("mcp", "add-json", "web", entry, "--scope", scope)
        assert (added.code, "WEB_TOKEN is not set" in added.out) == (0, True), scope
        assert "WEB_TOKEN is not set" in run("mcp", "list").err
        assert "WEB_TOKEN is not set" in run("mcp", "login", "web", "--no-browser").err
        run("mcp", "remove", "web", "--scope", scope)
    assert "WEB_TOKEN" not in run("mcp", "list").err


def test_a_server_is_disabled_and_enabled_where_its_entry_stands(run: Commands, root: Path) -> None:
    write(root / ".mcp.json", {"mcpServers": {"shared": {"command": "true"}}})
    local = root / ".claude" / "settings.local.json"
    assert run("mcp", "add", "mine", "--scope", "user", "--", "true").code == 0

    def states() -> dict[str, str]:
        return {one["name"]: one["state"] for one in run("mcp", "list", "--json").json["servers"]}

    assert states() == {"mine": "enabled", "shared": "pending approval"}
    assert run("mcp", "enable", "shared", "--json").json["state"] == "not trusted"
    assert json.loads(local.read_text()) == {"enabledMcpjsonServers": ["shared"]}
    assert run("mcp", "disable", "shared", "--json").json["state"] == "disabled"
    assert json.loads(local.read_text()) == {"enabledMcpjsonServers": [], "disabledMcpjsonServers": ["shared"]}
    assert run("mcp", "disable", "mine", "--json").json["state"] == "disabled"
    assert run("mcp", "enable", "mine", "--json").json["state"] == "enabled"
    assert run("mcp", "enable", "mine", "--json").json["state"] == "enabled"
    assert run("mcp", "disable", "nobody").code == 2


def test_own_changes_leave_a_repository_trusted_and_others_are_asked_about(run: Commands, root: Path) -> None:
    write(root / ".mcp.json", {"mcpServers": {"shared": {"command": "true"}}})
    assert "serena-central trust" in run("mcp", "add", "mine", "--", "true").out

    def state() -> str:
        return run("trust", "--show", "--json").json[0]["state"]

    assert state() == "untrusted"
    run("trust", "--yes")
    assert run("mcp", "add", "other", "--json", "--", "true").json["state"] == "enabled"
    assert run("mcp", "remove", "mine").code == 0
    assert run("claude", "set", "env.A", "b").code == 0
    assert run("claude", "set", "--undo").code == 0
    assert state() == "approved"
    write(root / ".mcp.json", {"mcpServers": {"shared": {"command": "false"}}})
    assert "serena-central trust" in run("mcp", "add", "third", "--", "true").out
    assert state() == "changed"


def test_a_users_settings_that_are_a_link_stay_one_and_a_projects_lead_nowhere(run: Commands, root: Path) -> None:
    dotfiles = write(root.parent / "dotfiles" / "settings.json", {})
    (user := root.parent / ".claude").mkdir()
    (user / "settings.json").symlink_to(dotfiles)
    assert run("claude", "set", "env.A", "b", "--tier", "user").code == 0
    assert (user / "settings.json").is_symlink()
    assert json.loads(dotfiles.read_text()) == {"env": {"A": "b"}}
    assert run("claude", "set", "--undo", "--tier", "user").code == 0
    assert (dotfiles.read_text(), (user / "settings.json").is_symlink()) == ("{}", True)
    (root / ".claude" / "settings.json").symlink_to(dotfiles)
    run("claude", "set", "env.A", "b", "--tier", "project")
    assert dotfiles.read_text() == "{}"


Act = Callable[[Path], None]


@pytest.fixture
def around_writing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Act, Act], None]:
    """Has another program act right before and right after a command writes a file."""

    def install(watched: Path, before: Act, after: Act) -> None:
        def written(path: Path, data: bytes, **options: Any) -> None:
            acts = path == watched
            if acts:
                before(path)
            write_whole(path, data, **options)
            if acts:
                after(path)

        monkeypatch.setattr(claude_edits, "write_whole", written)

    return install


def nothing(_file: Path) -> None: ...


def test_a_change_that_fails_leaves_the_one_before_it_to_be_undone(
    run: Commands, root: Path, around_writing: Callable[[Path, Act, Act], None]
) -> None:
    file = root / ".claude" / "settings.local.json"
    assert run("claude", "set", "env.A", "a").code == 0

    def no_space(_file: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    around_writing(file, no_space, nothing)
    assert run("claude", "set", "env.A", "b").code != 0
    around_writing(file, nothing, nothing)
    assert run("claude", "set", "--undo").code == 0
    assert not file.exists()


def test_what_another_program_writes_meanwhile_stays(
    run: Commands, root: Path, around_writing: Callable[[Path, Act, Act], None]
) -> None:
    file = write(root / ".claude" / "settings.local.json", {"permissions": {"deny": ["Read(a)"]}})

    def other(file: Path) -> None:
        write(file, {"permissions": {"deny": ["Read(a)", "Read(b)"]}})

    around_writing(file, other, nothing)
    assert run("claude", "set", "permissions.deny", "Read(c)", "--add").code == 0
    assert json.loads(file.read_text())["permissions"]["deny"] == ["Read(a)", "Read(b)", "Read(c)"]
    around_writing(file, nothing, nothing)
    assert run("claude", "set", "--undo").code == 0
    assert json.loads(file.read_text())["permissions"]["deny"] == ["Read(a)", "Read(b)"]

    days = itertools.count(1)

    def again_and_again(file: Path) -> None:
        write(file, {"cleanupPeriodDays": next(days)})

    around_writing(file, again_and_again, nothing)
    refused = run("mcp", "add", "mine", "--", "true")
    assert (refused.code, f"{file}: file: another program keeps changing it" in refused.err) == (2, True), refused.err
    assert json.loads(file.read_text()).keys() == {"cleanupPeriodDays"}


def test_servers_that_are_added_at_once_are_all_there(root: Path) -> None:
    names = ["one", "two", "three"]
    command = [str(PROGRAM), "mcp", "add", "--scope", "project"]
    adding = [subprocess.Popen([*command, name, "--", "true"], stdout=subprocess.DEVNULL) for name in names]
    assert [one.wait() for one in adding] == [0, 0, 0]
    assert json.loads((root / ".mcp.json").read_text())["mcpServers"].keys() == set(names)
    assert [one.name for one in root.iterdir() if one.is_file()] == [".mcp.json"]


def test_what_another_program_adds_to_an_own_change_is_asked_about(
    run: Commands, root: Path, around_writing: Callable[[Path, Act, Act], None]
) -> None:
    file = write(root / ".claude" / "settings.local.json", {"env": {"A": "fine"}})
    run("trust", "--yes")

    def more(file: Path) -> None:
        write(file, {"env": {**json.loads(file.read_text())["env"], "LD_PRELOAD": "evil"}})

    around_writing(file, nothing, more)
    assert run("claude", "set", "env.B", "mine").code == 0
    shown = run("trust", "--show", "--json").json[0]
    assert (shown["state"], "evil" in shown["difference"]) == ("changed", True)
