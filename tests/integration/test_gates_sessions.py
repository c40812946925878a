"""What hooks are given and what they leave: variables of the settings, logs without secrets, hooks that run once."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from serena_central.claude_config.reading import read_text
from serena_central.claude_config.tiers import Tier, TierFile
from serena_central.core.errors import HookBlocked, SessionHalted
from serena_central.gates import log
from tests.support.central import RunningCentral, running_central
from tests.support.central import session_of as opened

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c1e5b"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
async def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[RunningCentral]:
    monkeypatch.setenv("CANARY", CANARY)
    async with running_central(tmp_path, {"execute_shell": True}) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop/.claude").mkdir(parents=True)
    return tmp_path / "shop"


def settings(root: Path, event: str, *lines: str, env: dict[str, str] | None = None, **more: Any) -> None:
    hooks = [{"type": "command", "command": line, **more} for line in lines]
    value = {"env": env or {}, "hooks": {event: [{"matcher": "Write", "hooks": hooks}]}}
    (root / ".claude/settings.json").write_text(json.dumps(value))


async def write(running: RunningCentral, root: Path, session: str = "s", text: str = "a") -> str:
    asked = {"project": str(root), "relative_path": "a.txt", "content": text}
    answer = await running.central.caller.call(opened(running.central, explicit_id=session), "create_text_file", asked)
    return "\n".join(answer.blocks)


async def test_a_hook_that_runs_once_runs_until_it_has_passed_in_each_session(
    central: RunningCentral, root: Path
) -> None:
    settings(root, "PreToolUse", "echo x >> runs; [ -f ok ] || exit 2", once=True)
    with pytest.raises(HookBlocked):
        await write(central, root)
    (root / "ok").touch()
    for session in ("s", "s", "another", "another"):
        await write(central, root, session)
    assert (root / "runs").read_text().count("x") == 3


async def test_commands_get_the_settings_variables_and_no_other_secret(central: RunningCentral, root: Path) -> None:
    settings(root, "PreToolUse", "env > seen", env={"TEAM": "shop", "KEY": "${CANARY}", "PROJECT_ROOT": "/elsewhere"})
    await write(central, root)
    seen = dict(line.split("=", 1) for line in (root / "seen").read_text().splitlines() if "=" in line)
    assert (seen["TEAM"], seen["KEY"], seen["PROJECT_ROOT"]) == ("shop", CANARY, str(root))
    assert "CANARY" not in seen
    settings(root, "PreToolUse", "env > seen")
    await write(central, root)
    assert CANARY not in (root / "seen").read_text()


async def test_no_secret_is_in_the_log_the_events_the_pages_or_an_error(
    central: RunningCentral, root: Path, tmp_path: Path
) -> None:
    line = f'echo "$KEY {TOKEN} is wrong" >&2; exit'
    settings(root, "PreToolUse", f"{line} 2", env={"KEY": "${CANARY}"})
    with pytest.raises(HookBlocked, match="is wrong") as blocked:
        await write(central, root, text=f"token = '{TOKEN}'")
    settings(root, "PreToolUse", f"{line} 1", env={"KEY": "${CANARY}"})
    with pytest.raises(SessionHalted, match="is wrong") as halted:
        await write(central, root)
    said = [str(blocked.value), str(halted.value), (root / ".claude/logs/validation.log").read_text()]
    said += [str(central.central.gating.halted())]
    async with central.http() as http:
        for path in ("events", "halted", f"hook-runs?project={root}", "calls"):
            response = await http.get(f"/api/v1/{path}")
            assert response.status_code == 200
            said.append(response.text)
    said += [file.read_text(errors="replace") for file in tmp_path.glob("**/halted*.json")]
    for text in said:
        assert CANARY not in text
        assert TOKEN not in text


async def test_the_log_is_rotated_at_5_mb_and_one_older_is_kept(central: RunningCentral, root: Path) -> None:
    settings(root, "PreToolUse", "true")
    logs = root / ".claude/logs"
    await write(central, root)
    for turn in range(2):
        file = logs / log.NAME
        file.write_bytes(file.read_bytes() + (b"x" * 4999 + b"\n") * 1000)
        await write(central, root, text=str(turn))
        assert file.stat().st_size < 10_000
    assert sorted(one.name for one in logs.iterdir()) == [log.NAME, log.OLDER]
    assert [one.outcome for one in log.newest(root, 10)] == ["passed"]


async def test_a_log_that_a_repository_has_made_a_link_is_not_followed(
    central: RunningCentral, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("mine\n")
    (root / ".claude/logs").mkdir()
    (root / ".claude/logs/validation.log").symlink_to(tmp_path / "outside")
    settings(root, "PreToolUse", "true")
    await write(central, root)
    assert (tmp_path / "outside").read_text() == "mine\n"


SCHEMA = (
    '{"hooks": {"PreToolUse": [{"matcher": "Bash(git commit:*)", "hooks": [{"type": "command", "command": "%s"}]}]}}'
)
AFTER = '{"hooks": {"PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "%s"}]}]}}'


@pytest.mark.parametrize(
    "text",
    [
        SCHEMA % "script.sh || exit 2",
        SCHEMA % "[ -f /tmp/tests-passing ] || exit 2",
        SCHEMA % "./.claude/hooks/scripts/validate-commit.sh",
        AFTER % 'prettier --write \\"$FILE_PATH\\"',
    ],
    ids=["REQ-HOOKS-002", "REQ-HOOKS-005", "REQ-HOOKS-007", "REQ-HOOKS-006"],
)
def test_the_requirements_settings_load_as_they_stand(text: str, tmp_path: Path) -> None:
    file = TierFile(Tier.PROJECT, tmp_path / "settings.json", tmp_path)
    found = read_text(file, text, {})
    assert found.problems == ()
    assert found.value == json.loads(text)
