"""`serena-hook` as a client runs it, before a real server."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.child import PATIENCE_S, Child, Ended, environment, serving_child
from tests.support.mcp import RawClient

pytestmark = pytest.mark.anyio

HOOK = (sys.executable, "-I", "-m", "serena_central.hook")
PATIENT = {"SERENA_HOOK_WAIT_MS": "5000"}
"""The cap is a matter of quiet machines; what is asked here is what is decided."""


async def run_hook(folder: Path, said: Any, *arguments: str, **more: str) -> Ended:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            [*HOOK, *arguments], input=text, check=False, env=environment(folder, **(PATIENT | more))
        )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def grep(root: Path, session: str = "s1", **given: Any) -> dict[str, Any]:
    return use(root, "Grep", given, session)


def use(root: Path, tool: str, given: Mapping[str, Any], session: str = "s1") -> dict[str, Any]:
    """What Claude Code says before a tool runs."""
    return {
        "session_id": session,
        "transcript_path": "/nowhere.jsonl",
        "cwd": str(root),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": dict(given),
    }


def verdict_of(ended: Ended) -> tuple[str, str]:
    assert (ended.code, ended.err) == (0, ""), ended
    output = ended.json["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    return output["permissionDecision"], output["permissionDecisionReason"]


def handed_over(reason: str) -> tuple[str, dict[str, Any]]:
    """The first call that an agent is told to make."""
    line = reason.splitlines()[1]
    tool, _, arguments = line.removesuffix(")").partition("(")
    return tool, json.loads(arguments)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work") / "shop"
    (root / "src").mkdir(parents=True)
    (root / "docs").mkdir()
    (root / ".git").mkdir()
    (root / "src" / "cart.py").write_text("class Cart:\n    def total(self) -> int:\n        return 0  # free today\n")
    (root / "docs" / "guide.md").write_text("# Cart\n")
    return root


@pytest.fixture(scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory, shop: Path) -> AsyncGenerator[Child]:
    """One server for all: each test is a session of its own."""
    async with serving_child(tmp_path_factory.mktemp("serving")) as serving:
        await serving.call("find_symbol", {"project": str(shop), "name_path_pattern": "Cart"})
        yield serving


async def test_a_search_for_a_class_is_stopped_and_the_call_handed_over_finds_it(child: Child, shop: Path) -> None:
    ended = await run_hook(child.folder, grep(shop, pattern="class Cart", path=str(shop / "src"), type="py"), "enforce")
    verdict, reason = verdict_of(ended)
    assert verdict == "deny"
    tool, arguments = handed_over(reason)
    assert (tool, arguments["name_path_pattern"], arguments["relative_path"]) == ("find_symbol", "Cart", "src")
    assert arguments["project"] == str(shop)
    assert {"Cart", "*.py", "shop"} <= set(arguments["semantic_context"].split())
    assert "class" not in arguments["semantic_context"].split()
    (found,) = await child.call(tool, arguments)
    assert found["relative_path"] == "src/cart.py"


async def test_a_decision_is_made_with_the_standard_library_alone(child: Child, shop: Path) -> None:
    script = (
        "import sys; bare = {*sys.modules}; from serena_central.hook.main import run; run('serena-hook', ['enforce']);"
        "print(*({*sys.modules} - bare), file=sys.stderr)"
    )
    said = json.dumps(grep(shop, "alone", pattern="class Cart")).encode()
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            [sys.executable, "-I", "-c", script], input=said, env=environment(child.folder, **PATIENT)
        )
    assert b'"permissionDecision": "deny"' in ended.stdout
    loaded = {name for name in ended.stderr.decode().split() if not name.startswith("serena_central.")}
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"serena_central"}
    assert not loaded & {"asyncio", "http.client", "ssl", "subprocess", "email", "importlib.metadata", "logging"}


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Bash", {"command": "cd src && grep -rniE 'free\\s+TODAY' --include='*.py' ."}, {"src/cart.py"}),
        ("Glob", {"pattern": "**/*.py"}, ["src/cart.py"]),
        ("Bash", {"command": "find . -name 'c*.py'"}, ["src/cart.py"]),
        ("Grep", {"pattern": "free today", "glob": "*.{py,pyi}"}, {"src/cart.py"}),
    ],
)
async def test_what_is_no_symbol_is_handed_over_as_a_search_that_finds_the_same(
    child: Child, shop: Path, tool: str, given: dict[str, str], answer: Any
) -> None:
    verdict, reason = verdict_of(await run_hook(child.folder, use(shop, tool, given), "enforce"))
    assert verdict == "deny"
    called, arguments = handed_over(reason)
    found = await child.call(called, arguments)
    assert (found["files"] if isinstance(answer, list) else set(found)) == answer


async def test_what_the_server_can_not_answer_better_runs(child: Child, shop: Path, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    (unknown / "src").mkdir(parents=True)
    (unknown / "src" / "cart.py").write_text("class Cart: ...\n")
    for said in (
        grep(unknown, pattern="class Cart", path="src"),
        grep(shop, pattern="class Cart", path="docs"),
        grep(shop, pattern="class Cart", glob="*.f90"),
        grep(shop, pattern="free today"),
        grep(shop, pattern="class Cart", path="/"),
        use(shop, "Bash", {"command": "ps aux | grep CartServer"}),
        use(shop, "Read", {"file_path": str(shop / "src" / "cart.py")}),
    ):
        ended = await run_hook(child.folder, said, "enforce")
        assert (ended.code, ended.out, ended.err) == (0, "", ""), said


async def test_the_same_search_passes_the_second_time_and_the_third_of_another_session_is_nudged(
    child: Child, shop: Path
) -> None:
    said = grep(shop, "again", pattern="class Cart")
    assert [(await run_hook(child.folder, said, "enforce")).out != "" for _ in range(3)] == [True, False, False]
    nudged = [
        await run_hook(child.folder, grep(shop, "s2", pattern=f"class Cart{n}"), "enforce", "--mode", "nudge")
        for n in range(6)
    ]
    assert [ended.out != "" for ended in nudged] == [False, False, True] * 2


async def test_a_person_may_be_asked_or_nobody_stopped(child: Child, shop: Path) -> None:
    said = grep(shop, "asked", pattern="class Cart")
    off = await run_hook(child.folder, said, "enforce", SERENA_HOOK_MODE="off")
    assert (off.code, off.out) == (0, "")
    asked = verdict_of(await run_hook(child.folder, said, "enforce", "--mode", "ask"))
    assert asked[0] == "ask"


async def test_the_end_of_a_conversation_is_told_to_the_server(child: Child, shop: Path) -> None:
    async with child.http() as http:
        client = RawClient(http, "modern", name="codex")
        await client.call("list_dir", {"sessionId": "talk-1"}, relative_path=".", project=str(shop))
        (session,) = [
            one for one in (await http.get("/api/v1/sessions")).json()["sessions"] if one["client_name"] == "codex"
        ]
        said = {"session_id": "talk-1", "cwd": str(shop), "hook_event_name": "SessionEnd", "reason": "exit"}
        ended = await run_hook(child.folder, said, "session-end")
        assert (ended.code, ended.out, ended.err) == (0, "", "")
        shown = await http.get(f"/api/v1/sessions/{session['session_id']}")
        assert shown.json()["state"] == "disconnected"
        unknown = await http.post("/api/v1/conversations/close", json={"conversation": "nobody"})
        assert (unknown.status_code, unknown.json()["error"]["kind"]) == (404, "session_not_found")


async def test_a_conversation_that_begins_warms_its_project_up_and_tells_the_model(
    child: Child, tmp_path: Path
) -> None:
    root = tmp_path / "fresh"
    (root / ".git").mkdir(parents=True)
    (root / "new.py").write_text("class New: ...\n")
    said = {"session_id": "s9", "cwd": str(root), "hook_event_name": "SessionStart", "source": "startup"}
    ended = await run_hook(child.folder, said, "session-start")
    assert "find_symbol" in ended.json["hookSpecificOutput"]["additionalContext"]
    async with child.http() as http:
        with anyio.fail_after(PATIENCE_S):
            while "fresh" not in (await http.get("/api/v1/projects?open=true")).text:
                await anyio.sleep(0.05)
    asked = await run_hook(child.folder, grep(root, "s9", pattern="class New"), "enforce")
    assert verdict_of(asked)[0] == "deny"


async def test_without_a_server_and_with_nonsense_every_tool_runs(tmp_path: Path, shop: Path) -> None:
    (tmp_path / "home" / "logs").mkdir(parents=True)
    ended = await run_hook(tmp_path, grep(shop, pattern="class Cart"), "enforce")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    for nonsense in (b"", b"[]", b"{", b"\xff\xfe", b'{"tool_name": 5, "tool_input": [1]}', b"[" * 100_000):
        ended = await run_hook(tmp_path, nonsense, "enforce")
        assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert "Error" in (tmp_path / "home" / "logs" / "hook.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        (("enforce", "--mode", "block"), ""),
        (("enforce", "--client", "emacs"), ""),
        (("enforce", "--new-option"), ""),
        (("before-everything",), ""),
        ((), ""),
        (("enforce",), "block"),
    ],
)
async def test_what_a_hook_does_not_know_blocks_nothing_and_is_logged(
    tmp_path: Path, shop: Path, arguments: tuple[str, ...], mode: str
) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    ended = await run_hook(tmp_path, grep(shop, pattern="class Cart"), *arguments, SERENA_HOOK_MODE=mode)
    assert (ended.code, ended.out) == (0, "")
    logged = (tmp_path / "home" / "logs" / "hook.log").read_text()
    assert "serena-hook" in logged or "SERENA_HOOK_MODE=block" in logged


async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_the_cap(tmp_path: Path, shop: Path) -> None:
    (tmp_path / "home" / "logs").mkdir(parents=True)
    token = tmp_path / "home" / "token"
    token.write_text("secret")
    token.chmod(0o600)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        (tmp_path / "home" / "server.json").write_text(json.dumps({"url": f"http://127.0.0.1:{port}/mcp", "pid": 1}))
        # Nobody accepts: the connection stands, and no answer ever comes.
        ended = await run_hook(tmp_path, grep(shop, pattern="class Cart"), "enforce", SERENA_HOOK_WAIT_MS="")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert "did not answer in time: GET /api/v1/coverage" in (tmp_path / "home" / "logs" / "hook.log").read_text()
