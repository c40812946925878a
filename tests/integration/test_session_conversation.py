"""The conversation on a session's page: a real server, calls by HTTP, a transcript as the client writes it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serena_central.web.pages import session_conversation
from tests.support.browser import visiting
from tests.support.central import running_central, session_of
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What prices are read from may take seconds to import on a busy machine."""
    monkeypatch.setattr(session_conversation, "PATIENCE_S", 60)


def prompt(text: str, session: str) -> dict[str, Any]:
    return {"type": "user", "timestamp": _now(), "sessionId": session, "message": {"content": text}}


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def test_a_sessions_page_shows_the_conversation_that_its_calls_are_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    transcript = tmp_path / "claude" / "projects" / "p" / "conv-1.jsonl"
    async with running_central(tmp_path) as running, visiting(running) as visitor:
        session, began = session_of(running.central, working_folder=str(root)), _now()
        await running.central.caller.call(session, "list_dir", {"project": str(root), "relative_path": "."})
        page = f"/sessions/{session.id}"
        assert "holds calls of this session" in await visitor.see(page)
        called = claude("m", at=began, session="conv-1", cwd=str(root), tools={"toolu_1": "mcp__serena__list_dir"})
        written(transcript, prompt("Where is the <b>cart</b>?", "conv-1"), called)
        seen = await visitor.see(page)
        assert "/dashboard/usage/transcripts/claude-code/conv-1" in seen
        assert "Where is the &lt;b&gt;cart&lt;/b&gt;?" in seen
        assert "1 of the newest 1 call are in it" in seen


async def test_the_id_that_a_clients_hook_gives_names_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    written(
        tmp_path / "claude" / "projects" / "p" / "conv-2.jsonl",
        prompt("Count the carts", "conv-2"),
        claude("m", at=_now(), session="conv-2", cwd=str(root)),
    )
    async with running_central(tmp_path) as running, running.http() as http, visiting(running) as visitor:
        said = {"session_id": "conv-2", "cwd": str(root)}
        body = {"client": "claude-code", "said": said, "ancestors": [4_000_001]}
        assert (await http.post("/api/v1/gates/UserPromptSubmit", json=body)).status_code == 200
        [session] = running.central.sessions.sessions()
        seen = await visitor.see(f"/sessions/{session.id}")
        assert "Count the carts" in seen
        assert "its client gave its id" in seen
