"""What all commands have in common: exit codes, `--json`, examples, completion; and ends without a traceback."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import click
import pytest

from serena_central.cli import remote
from serena_central.cli.exits import EXIT_CODES
from serena_central.cli.main import cli, main
from tests.support.child import PATIENCE_S, PROGRAM, Child, environment, run_command
from tests.support.scripted_http import answer, scripted_http

pytestmark = pytest.mark.anyio

PRINT_NO_DATA = {
    ("completion",),
    ("node",),
    ("hook", "enforce"),
    ("hook", "session-start"),
    ("hook", "session-end"),
    ("hook", "gate"),
    ("usage", "watch"),
    ("usage", "status-line"),
    ("transcripts", "pin"),
}
"""A shell script; what speaks the clients' own protocols; lines for people; what only says that it is done."""

NEEDS_SERVER: dict[tuple[str, ...], list[str]] = {
    ("stop",): [],
    ("status",): [],
    ("dashboard",): ["--print"],
    ("sessions",): [],
    ("kill",): ["s-1"],
    ("resume",): ["s-1"],
    ("projects",): [],
    ("history",): [],
    ("undo",): ["e-1"],
    ("call",): ["list_dir"],
    ("graph",): [],
    ("validate",): ["--unused"],
    ("warm",): [],
    ("hooks", "replay"): ["Bash(git push:*)"],
    ("task", "run"): ["Look around"],
    ("waves", "resume"): ["p-000000000000"],
    ("waves", "approve"): ["p-000000000000"],
    ("waves", "cancel"): ["p-000000000000"],
    ("waves", "undo"): ["p-000000000000"],
    ("waves", "show"): ["p-000000000000"],
    ("waves", "list"): [],
    ("task", "list"): [],
    ("task", "show"): ["t-1"],
    ("task", "cancel"): ["t-1"],
    ("task", "compact"): ["t-1"],
    ("task", "logs"): ["t-1"],
    ("mcp", "get"): ["files"],
    ("mcp", "restart"): ["files"],
    ("mcp", "stop"): ["files"],
    ("mcp", "call"): ["files", "read"],
}

DONE: dict[tuple[str, ...], list[str]] = {
    ("service", "install"): ["--dry-run"],
    ("service", "uninstall"): [],
    ("service", "status"): [],
    ("connect",): ["--list"],
    ("disconnect",): ["cursor", "--dry-run"],
    ("hook", "install"): ["cursor", "--dry-run"],
    ("hook", "uninstall"): ["cursor", "--dry-run"],
    ("hook", "enforce"): [],
    ("hook", "session-start"): [],
    ("hook", "session-end"): [],
    ("hook", "gate"): ["PreToolUse"],
    ("hooks", "list"): [],
    ("hooks", "check"): [],
    ("hooks", "test"): ["PreToolUse", "--tool", "Bash"],
    ("hooks", "log"): [],
    ("trust",): ["--list"],
    ("config", "show"): [],
    ("claude", "show"): [],
    ("claude", "check"): [],
    ("claude", "explain"): ["Read(.env)"],
    ("claude", "memory"): [],
    ("claude", "edit"): ["--print"],
    ("claude", "set"): ["model", "opus"],
    ("claude", "import"): ["--dry-run"],
    ("agents", "list"): [],
    ("users", "list"): [],
    ("agents", "check"): [],
    ("waves", "schema"): [],
    ("mcp", "list"): [],
    ("mcp", "add"): ["files", "--force", "--url", "http://localhost:9/mcp"],
    ("mcp", "add-json"): ["more", '{"command": "true"}', "--force"],
    ("mcp", "import"): ["--dry-run"],
    ("config", "init"): [],
    ("config", "token-file"): [],
    ("languages", "list"): [],
    ("languages", "uninstall"): ["marksman"],
    ("completion",): ["bash"],
    ("usage", "watch"): ["-n", "1"],
    ("transcripts", "list"): [],
    ("transcripts", "own"): [],
    ("transcripts", "clean"): [],
}
"""Without a server, in an empty home."""

FAIL: dict[tuple[str, ...], list[str]] = {
    ("logs",): [],  # there is none
    ("mcp", "logs"): ["files"],  # there is none
    ("trust",): ["{home}/project"],  # nobody can be asked
    ("config", "init"): ["--project", "{home}/project"],  # is there already
    ("superrepo", "init"): ["{home}/project"],  # no modules
    ("route",): ["words", "--project", "{home}/project"],  # no super-repo
    ("languages", "doctor"): ["{home}/project"],  # a language server is missing
    ("doctor",): [],  # a wrong token file
}

ELSEWHERE = {
    ("serve",),
    ("node",),  # tests/cluster
    *(("cluster", name) for name in ("status", "drain", "move", "logs", "doctor")),
    ("restart",),
    ("languages", "install"),
    *(("mcp", name) for name in ("remove", "enable", "disable", "login", "logout")),
    ("usage", "status-line"),
    ("transcripts", "pin"),
    ("transcripts", "resume"),
    ("blame",),
    ("agents", "show"),
    ("waves", "check"),
    ("waves", "run"),
    *(("users", name) for name in ("add", "rotate", "revoke")),
}
"""Start servers, ask registries, read stdin or need an entry or a transcript: tested by what they do (test_background,
test_serving, lsp/test_installers, hub/test_login, test_claude_commands, test_agents_command, test_users,
test_waves_command)."""

WRONG: dict[tuple[str, ...], list[str]] = {
    ("serve",): ["--json"],
    ("node",): ["--root", "/src/*"],
    ("cluster", "drain"): ["a"],
    ("connect",): [],
    ("connect", "http"): ["claude-desktop", "--http"],
    ("disconnect",): ["nobody"],
    ("trust",): ["{home}/nowhere"],
    ("config", "init"): ["--shared"],
    ("claude", "explain"): ["Read("],
    ("claude", "set"): [],
    ("graph",): ["--json", "--format", "svg"],
    ("languages", "install"): ["no-such-language"],
    ("validate",): ["--since", "--output=x"],
    ("hook", "install"): ["codex", "--mode", "ask"],
    ("transcripts", "pin"): ["nobody"],
    ("transcripts", "resume"): ["nobody"],
    ("agents", "show"): ["nobody"],
    ("waves", "check"): ["nowhere.yml"],
    ("waves", "run"): ["nowhere.yml"],
}


def leaves(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, *path, name)
        else:
            yield (*path, name), found


COMMANDS = dict(leaves(cli))
GROUPS = sorted({path[:-1] for path in COMMANDS})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in which the command line is run in this process."""
    (tmp_path / "project").mkdir()
    for name in [name for name in os.environ if name.startswith(("SERENA", "XDG_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "central"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["serena-central", *arguments])
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else -1
    return 0


def named(path: tuple[str, ...]) -> str:
    return " ".join(path) or "serena-central"


def test_each_command_has_its_codes_tested() -> None:
    assert set(NEEDS_SERVER) | set(DONE) | set(FAIL) | ELSEWHERE == set(COMMANDS)


@pytest.mark.parametrize("path", [*GROUPS, *COMMANDS], ids=named)
def test_help_ends_with_0_and_has_an_example(
    path: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if path[:1] == ("hook",) and path[1:] and path[1] not in ("install", "uninstall"):
        pytest.skip("the help of serena-hook, which clients run")
    assert run(monkeypatch, *path, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"serena-central {' '.join(path)}".strip() in shown.partition("xample")[2]
    if not path:
        assert EXIT_CODES in shown


@pytest.mark.parametrize("path", COMMANDS, ids=named)
def test_a_wrong_option_ends_with_2(
    path: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if path == ("call",):
        pytest.skip("its options are the tool's")
    if path[:1] == ("hook",) and path[1:] and path[1] not in ("install", "uninstall"):
        pytest.skip("serena-hook never ends with 2: clients would block their tools")
    assert run(monkeypatch, *path, "--bogus") == 2
    assert "--bogus" in capsys.readouterr().err


@pytest.mark.parametrize(("path", "arguments"), WRONG.items(), ids=lambda value: " ".join(value))
def test_wrong_usage_ends_with_2(
    path: tuple[str, ...],
    arguments: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = path[:1] if path == ("connect", "http") else path
    assert run(monkeypatch, *command, *[one.replace("{home}", str(home)) for one in arguments]) == 2
    shown = capsys.readouterr()
    assert (shown.out, bool(shown.err)) == ("", True)


DEEP = "[" * 100_000
LONG = "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ["call", "--json", "find_symbol", "--name-path-pattern", "Cart"],
        ["call", "--project", ".", "find_symbol"],
        ["hooks", "test", "PreToolUse", "--input", DEEP],
        ["mcp", "add-json", "files", DEEP],
        ["mcp", "add", "files", "--url", "http://["],
        ["mcp", "add", "files", "--url", "http://localhost:x/"],
        ["blame", f"cart.py:{LONG}"],
        ["usage", "--since", f"{LONG}d"],
        ["usage", "watch", "--interval", "nan"],
        ["graph", "--seconds", "nan"],
        ["task", "run", "Look around", "--max-usd", "inf"],
        ["mcp", "login", "files", "--timeout", "nan"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_values_that_mean_nothing_end_with_2(
    arguments: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["trust {}", "hooks list --project {}", "mcp list --project {}", "claude memory {}", "claude explain Read({})"],
)
def test_the_home_folder_of_no_user_is_a_name_like_any_other(
    line: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(monkeypatch, *line.format("~no-such-user-anywhere/x").split(" "))
    assert (code, "~no-such-user-anywhere/x" in "".join(capsys.readouterr())) == (0 if "explain" in line else 2, True)


@pytest.mark.parametrize("path", ["serve", "trust --list", "config show", "route x"])
def test_wrong_settings_end_with_2(
    path: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERENA_CENTRAL_SERVER_PORT", "many")
    assert run(monkeypatch, *path.split()) == 2
    assert "SERENA_CENTRAL_SERVER_PORT" in capsys.readouterr().err


@pytest.mark.parametrize(("path", "arguments"), NEEDS_SERVER.items(), ids=lambda value: " ".join(value))
def test_without_a_server_commands_that_need_one_end_with_3(
    path: tuple[str, ...],
    arguments: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *path, *arguments) == 3
    shown = capsys.readouterr()
    assert (shown.out, "serena-central serve" in shown.err) == ("", True)


@pytest.mark.parametrize(("path", "arguments"), DONE.items(), ids=lambda value: " ".join(value))
def test_what_is_done_ends_with_0(
    path: tuple[str, ...],
    arguments: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *path, *arguments) == 0
    if path not in PRINT_NO_DATA and path != ("config", "init"):  # writes its file once
        capsys.readouterr()
        assert run(monkeypatch, *path, *arguments, "--json") == 0
        json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("path", "arguments"), FAIL.items(), ids=lambda value: " ".join(value))
def test_what_fails_ends_with_1(
    path: tuple[str, ...],
    arguments: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (home / "central").mkdir(mode=0o700)
    (home / "central" / "token").mkdir()
    (home / "project" / ".serena").mkdir()
    (home / "project" / ".serena" / "project.yml").touch()
    (home / "project" / "shop.ml").touch()
    assert run(monkeypatch, *path, *[one.replace("{home}", str(home)) for one in arguments]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "code"), [("invalid_arguments", 2), ("unknown_tool", 2), ("session_not_found", 1), ("internal", 1)]
)
def test_what_a_server_refuses_is_wrong_usage_or_a_failure(
    kind: str, code: int, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = answer(400, value={"error": {"kind": kind, "message": "No."}})
    with scripted_http("secret", lambda _: refusal) as server:
        (home / "central").mkdir(mode=0o700)
        (home / "central/server.json").write_text(json.dumps({"url": f"{server.url}/mcp", "pid": 1}))
        (home / "central/token").write_text("secret")
        (home / "central/token").chmod(0o600)
        assert run(monkeypatch, "sessions", "--state", "odd") == code
    assert capsys.readouterr().err == "serena-central: No.\n"


@pytest.mark.parametrize("path", COMMANDS, ids=named)
def test_each_command_that_prints_data_prints_json(path: tuple[str, ...]) -> None:
    flags = {flag for option in COMMANDS[path].params for flag in option.opts}
    assert ("--json" in flags or path == ("call",)) is (path not in PRINT_NO_DATA)


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["statsu"], "status"), (["languages", "lits"], "list"), (["trust", "--lits"], "--list")]
)
def test_the_nearest_name_is_suggested(
    arguments: list[str],
    meant: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert "Did you mean" in said
    assert f"'{meant}'" in said


# From here on a server is running, whose event loop is none that commands of this process could have besides: tests of
# commands that have one stand above.


async def test_tools_are_listed_in_whole_sentences_or_say_that_they_are_cut(serving: Child) -> None:
    listed = (await run_command(serving.folder, "call")).out.splitlines()
    tools = [line for line in listed if re.match(r"\w+  ", line)]
    assert len(tools) > 30
    assert [line for line in tools if not line.endswith((".", ".)", "…"))] == []


async def test_help_of_a_tool_says_what_its_project_is(serving: Child) -> None:
    shown = " ".join((await run_command(serving.folder, "call", "find_symbol", "--help")).out.split())
    assert "--project TEXT A project's name or folder" in shown
    assert "--semantic-context TEXT The task in words" in shown


async def test_the_nearest_tool_is_suggested(serving: Child) -> None:
    wrong = await run_command(serving.folder, "call", "find_symbl")
    assert wrong.code == 2
    assert "Did you mean find_symbol" in wrong.err


@pytest.mark.parametrize(
    ("words", "complete"),
    [
        (["serena-central", "ca"], ["call"]),
        (["serena-central", "languages", "un"], ["uninstall"]),
        (["serena-central", "call", "find_ref"], ["find_referencing_symbols"]),
        (["serena-central", "call", "find_symbol", "--name"], ["--name-path-pattern"]),
        (["serena-central", "call", "no_such_tool", "--na"], []),
    ],
)
async def test_shells_complete_commands_tools_and_their_options(
    serving: Child, words: list[str], complete: list[str]
) -> None:
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    ended = await run_command(serving.folder, **asked, _SERENA_CENTRAL_COMPLETE="bash_complete")
    assert ended.out.split() == [f"plain,{one}" for one in complete]


async def test_without_a_server_no_tool_is_completed_and_nothing_is_said(tmp_path: Path) -> None:
    asked = {"COMP_WORDS": "serena-central call find", "COMP_CWORD": "2"}
    ended = await run_command(tmp_path, **asked, _SERENA_CENTRAL_COMPLETE="bash_complete")
    assert (ended.out.strip(), ended.err) == ("", "")


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")
async def test_the_script_for_bash_completes(tmp_path: Path) -> None:
    script = (
        f'PATH={PROGRAM.parent}:$PATH; eval "$({PROGRAM} completion bash)"; COMP_WORDS=(serena-central comp); '
        "COMP_CWORD=1; _serena_central_completion serena-central; echo ${COMPREPLY[@]}"
    )
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(["/bin/bash", "-c", script], env=environment(tmp_path))
    assert (ended.stdout.decode().split(), ended.stderr) == (["completion"], b"")


@pytest.mark.parametrize("command", ["trust", "mcp list", "claude show", "agents list"])
def test_in_a_removed_folder_a_command_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    folder = home / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert run(monkeypatch, *command.split()) == 1
    assert "the current folder was removed" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["status", "--json"], ["status"], ["--help"], ["languages", "list"]])
async def test_output_that_nobody_takes_ends_with_1_and_no_traceback(serving: Child, arguments: list[str]) -> None:
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            ["/bin/sh", "-c", 'exec "$0" "$@" >/dev/full', str(PROGRAM), *arguments],
            check=False,
            env=environment(serving.folder),
        )
    assert (ended.returncode, ended.stderr.decode()) == (1, "serena-central: No space left on device\n")


@pytest.mark.parametrize("name", ["", "\udcff", "..", "a?b#c%2F"])
async def test_a_name_of_any_characters_means_nothing_else(
    serving: Child, name: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(serving.server_file.parent))
    for line in ("kill", "resume", "undo", "users rotate", "users revoke", "task show", "task cancel", "mcp get"):
        code = run(monkeypatch, *line.split(), name)
        assert code == (1 if name else 2), line
        assert "Not Found" not in capsys.readouterr().err, line
    for line in ("history --session", "sessions --state", "task list --state", "waves list --project"):
        assert run(monkeypatch, *line.split(), name) in (0, 1, 2), line


async def test_lists_are_whole_although_they_come_in_pages(
    serving: Child, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(serving.server_file.parent))
    monkeypatch.setattr(remote, "PAGE", 2)
    async with serving.http() as http:
        opened = {(await http.post("/api/v1/sessions", json={})).json()["session_id"] for _ in range(5)}
    assert run(monkeypatch, "sessions", "--json") == 0
    assert opened <= {one["session_id"] for one in json.loads(capsys.readouterr().out)}
    for command in ("projects", "status"):
        assert run(monkeypatch, command, "--json") == 0
    assert run(monkeypatch, "sessions", "--state", "terminated") == 0
    assert "No sessions are terminated." in capsys.readouterr().out
