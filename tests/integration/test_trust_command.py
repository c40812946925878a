"""`serena-central trust`: what a repository names runs once a person said so, and no more when it changed since."""

import json
import os
from pathlib import Path

import pytest

from tests.support.child import Child, run_command
from tests.support.terminal import CTRL_C, in_terminal

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository that names a program of its own for Python's server; the program leaves a mark."""
    return repository(tmp_path / "shop")


def repository(root: Path, program: str = "evil") -> Path:
    (root / ".git").mkdir(parents=True)
    (root / "cart.py").write_text("class Cart:\n    pass\n")
    name_program(root, program)
    return root


def name_program(root: Path, program: str) -> None:
    file = root / program
    file.write_text(f'#!/bin/sh\necho ran > "{root}/{program}.ran"\n')
    file.chmod(0o755)
    (root / ".serena").mkdir(exist_ok=True)
    (root / ".serena" / "project.yml").write_text(f"language_servers: {{python: {{command: {file}}}}}\n")


async def ran(serving: Child, root: Path, program: str = "evil") -> bool:
    """Whether a call on the project made its program run."""
    async with serving.http() as http:
        arguments = {"name_path_pattern": "Cart", "project": str(root)}
        await http.post("/api/v1/tools/find_symbol", json={"arguments": arguments})
    mark = root / f"{program}.ran"
    found = mark.exists()
    mark.unlink(missing_ok=True)
    return found


async def test_a_running_server_goes_by_it_at_the_next_call(serving: Child, repo: Path) -> None:
    assert not await ran(serving, repo)
    trusted = await run_command(serving.folder, "trust", str(repo), "--yes")
    assert (trusted.code, trusted.err) == (0, "")
    assert f"command: {repo}/evil" in trusted.out
    assert f"{repo}: trusted" in trusted.out
    assert await ran(serving, repo)

    name_program(repo, "worse")
    assert not await ran(serving, repo, "worse")
    shown = await run_command(serving.folder, "trust", "--show", cwd=repo)
    assert shown.code == 0
    assert f"-    command: {repo}/evil" in shown.out
    assert f"+    command: {repo}/worse" in shown.out
    assert (await run_command(serving.folder, "trust", "--yes", cwd=repo)).code == 0
    assert await ran(serving, repo, "worse")

    revoked = await run_command(serving.folder, "trust", "--revoke", str(repo))
    assert "not trusted any more" in revoked.out
    assert not await ran(serving, repo, "worse")


async def test_a_terminal_is_asked_and_no_is_the_default(tmp_path: Path, repo: Path) -> None:
    for keys, says in ((b"\n", "It remains restricted"), (b"n\n", "It remains restricted"), (b"y\n", "shop: trusted")):
        async with in_terminal(tmp_path, "trust", str(repo)) as terminal:
            await terminal.until(r"Trust .*/shop\? \[y/N\]")
            assert f"command: {repo}/evil" in terminal.text
            assert "build scripts" in terminal.text
            terminal.press(keys)
            await terminal.until(says)
            assert await terminal.end() == 0
    (approved,) = (await run_command(tmp_path, "trust", "--list", "--json")).json["approved"]
    assert (approved["root"], approved["trusted"]) == (str(repo), True)
    assert approved["approved_by"].endswith(", at the command line")


async def test_nobody_is_trusted_where_nobody_can_be_asked(tmp_path: Path, repo: Path) -> None:
    for more in ([], ["--json"]):
        ended = await run_command(tmp_path, "trust", str(repo), *more)
        assert ended.code == 1
        assert "pass --yes" in ended.err
    assert (await run_command(tmp_path, "trust", "--list", "--json")).json == {"trusted_roots": [], "approved": []}


async def test_a_super_repo_is_trusted_with_its_own_modules_and_nothing_else_in_it(tmp_path: Path) -> None:
    root = repository(tmp_path / "all")
    with (root / ".serena" / "project.yml").open("a") as settings:
        settings.write("type: super-repo\nmodules: {api: {path: api}}\n")
    repository(root / "api")
    foreign = repository(root / "vendor" / "foreign")
    done = await run_command(tmp_path, "trust", str(root), "--yes", "--json")
    assert [(one["root"], one["trusted"]) for one in done.json] == [(str(root), True), (str(root / "api"), True)]
    (alone,) = (await run_command(tmp_path, "trust", str(foreign), "--show", "--json")).json
    assert not alone["trusted"]
    name_program(root / "api", "worse")
    states = (await run_command(tmp_path, "trust", str(root), "--show", "--json")).json
    assert [one["state"] for one in states] == ["approved", "changed"]
    assert (await run_command(tmp_path, "trust", str(root), "--revoke")).code == 0
    assert (await run_command(tmp_path, "trust", "--list", "--json")).json["approved"] == []


async def test_patterns_of_the_users_settings_trust_without_a_question(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "user" / ".serena").mkdir(parents=True)
    (tmp_path / "user" / ".serena" / "serena_config.yml").write_text(f'trusted_roots: ["{tmp_path}/sh*"]\n')
    (found,) = (await run_command(tmp_path, "trust", "--show", "--json", str(repo))).json
    assert (found["state"], found["trusted"]) == ("settings", True)
    revoked = await run_command(tmp_path, "trust", "--revoke", str(repo))
    assert "still trusted by trusted_roots" in revoked.out


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives files away")
async def test_what_another_user_has_put_above_a_repository_is_named(tmp_path: Path, repo: Path) -> None:
    file = tmp_path / "go.work"
    file.write_text("")
    os.chown(file, 65534, -1)
    trusted = await run_command(tmp_path, "trust", str(repo), "--yes")
    assert f"Language servers of {repo} stay restricted, trusted or not: '{file}' or its folder" in trusted.out
    file.unlink()
    assert "stay restricted" not in (await run_command(tmp_path, "trust", "--show", str(repo))).out


async def test_what_is_no_repository_is_refused(tmp_path: Path, repo: Path) -> None:
    for folder, code in (("/", 1), (str(tmp_path / "user"), 1), (str(tmp_path), 1), (str(tmp_path / "missing"), 2)):
        ended = await run_command(tmp_path, "trust", folder, "--yes")
        assert ended.code == code, ended.err
    usage = await run_command(tmp_path, "trust", str(repo), "--yes", "--show")
    assert usage.code == 2


async def test_what_a_repository_writes_reaches_the_terminal_as_plain_text(tmp_path: Path, repo: Path) -> None:
    settings = {"language_servers": {"python": {"command": "a\x1b[2Jb\u202ec\nTrust it: trusted"}}}
    (repo / ".serena" / "project.yml").write_text(json.dumps(settings))
    shown = await run_command(tmp_path, "trust", str(repo), "--show")
    assert 'command: "a\\e[2Jb\\u202Ec\\nTrust it: trusted"' in shown.out


def settings_file(folder: Path) -> Path:
    return folder / "user" / ".serena" / "serena_config.yml"


@pytest.mark.parametrize(
    ("keys", "written"),
    [
        (b"y\n", "~/src/*"),
        (b"~/mine/*, /srv/**\n", "~/mine/*,/srv/**"),
        (b"\n", None),
        (b"no\n", None),
        (b"~/**\n", None),
        (b"whatever\n", None),
    ],
)
async def test_connect_asks_once_which_folders_are_trusted(tmp_path: Path, keys: bytes, written: str | None) -> None:
    settings_file(tmp_path).parent.mkdir(parents=True)
    mine = b"\xef\xbb\xbf# mine\r\nlog_level: debug # loud\r\n"
    settings_file(tmp_path).write_bytes(mine)
    async with in_terminal(tmp_path, "connect", "cursor") as terminal:
        await terminal.until(r"Trust all repositories in ~/src/\*\? \[y / other patterns, separated by commas / N\]")
        terminal.press(keys)
        assert await terminal.end() == 0
    text = settings_file(tmp_path).read_bytes()
    assert text.startswith(mine)
    assert text.count(b"\n") == text.count(b"\r\n")
    trusted = (await run_command(tmp_path, "trust", "--list", "--json")).json["trusted_roots"]
    assert trusted == (written.split(",") if written else [])
    for command in (["connect", "cursor"], ["connect", "gemini"]):
        async with in_terminal(tmp_path, *command) as terminal:
            assert await terminal.end() == 0
            assert "Trust all" not in terminal.text


async def test_the_first_serve_asks_and_goes_by_the_answer(tmp_path: Path) -> None:
    async with in_terminal(tmp_path, "serve", "--port", "0") as terminal:
        await terminal.until("Trust all repositories")
        terminal.press(b"y\n")
        await terminal.until("serves MCP at")
        terminal.press(CTRL_C)
        await terminal.end()
    assert 'trusted_roots:\n  - "~/src/*"\n' in settings_file(tmp_path).read_text()


async def test_nobody_is_asked_without_a_terminal(tmp_path: Path) -> None:
    ended = await run_command(tmp_path, "connect", "cursor")
    assert ended.code == 0
    assert "Trust all" not in ended.out
    assert not settings_file(tmp_path).exists()
