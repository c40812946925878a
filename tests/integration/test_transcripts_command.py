"""`serena-central transcripts` as it is run, without a server."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from serena_central.transcripts.records import UserMessage
from serena_central.transcripts.writer import TranscriptWriter
from tests.support.child import run_command
from tests.support.transcripts import claude, codex, codex_meta, codex_turn, written

pytestmark = pytest.mark.anyio


async def test_sessions_are_listed_with_the_command_that_resumes_them(tmp_path: Path) -> None:
    user = tmp_path / "user"
    written(user / ".claude" / "projects" / "p" / "s-1.jsonl", claude("m", cwd="/home/u/my shop"))
    rollout = user / ".codex" / "sessions" / "2026" / "11" / "01" / "rollout-1.jsonl"
    written(rollout, codex_meta("c-1"), codex_turn(), codex((1000, 0, 50), at="2026-11-01T11:00:00.000Z"))
    listed = await run_command(tmp_path, "transcripts", "list", "--json")
    assert [(one["session"], one["resume"]) for one in listed.json] == [
        ("c-1", "cd /home/u/shop && codex resume c-1"),
        ("s-1", "cd '/home/u/my shop' && claude --resume s-1"),
    ]
    assert "my shop" in (await run_command(tmp_path, "transcripts", "list", "--client", "claude-code")).out
    resumed = await run_command(tmp_path, "transcripts", "resume", "c-")
    assert resumed.out == "cd /home/u/shop && codex resume c-1\n"
    assert (await run_command(tmp_path, "transcripts", "resume", "x")).code == 2


async def test_own_transcripts_are_listed_pinned_and_deleted(tmp_path: Path) -> None:
    folder, at = tmp_path / "home" / "transcripts", datetime(2026, 1, 1, tzinfo=UTC)
    session = UUID("1f0c2b1a-7d3e-4c55-9a10-5f2d6b8e4c33")  # does not begin with an e
    writer = TranscriptWriter(folder, "/home/u/shop", clock=lambda: at)
    writer.append(UserMessage(session_id=session, timestamp=at, content="Where?"))
    writer.close()
    file = writer.folder / "2026-01-01.jsonl"
    os.utime(file, (at.timestamp(), at.timestamp()))
    assert (await run_command(tmp_path, "transcripts", "pin", str(uuid4()))).code == 2
    refused = await run_command(tmp_path, "transcripts", "pin", "e")  # is somewhere in every line
    assert (refused.code, "own" in refused.err) == (2, True)
    assert (await run_command(tmp_path, "transcripts", "pin", str(session)[:8])).code == 0
    assert (await run_command(tmp_path, "transcripts", "clean", "--json")).json == {"deleted": [], "archived": []}
    resumed = (await run_command(tmp_path, "transcripts", "resume", str(session)[:8])).json
    assert resumed["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}]
    [own] = (await run_command(tmp_path, "transcripts", "own", "--json")).json
    assert (own["session"], own["project"], own["pinned"]) == (str(session), "/home/u/shop", True)
    assert (await run_command(tmp_path, "transcripts", "pin", str(session)[:8], "--off")).code == 0
    assert (await run_command(tmp_path, "transcripts", "own", "--json")).json[0]["pinned"] is False
    assert (await run_command(tmp_path, "transcripts", "pin", str(session), "--off")).code == 2
    settings = tmp_path / "user" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"cleanupPeriodDays": 99999}))
    kept = await run_command(tmp_path, "transcripts", "clean", "--json")
    assert kept.json["deleted"] == []
    settings.write_text("{}")
    cleaned = await run_command(tmp_path, "transcripts", "clean", "--json")
    assert cleaned.json["deleted"] == [str(file)]
