"""Transcripts of clients on a real server: the list, the search, one of them, and the routes of the API."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import visiting
from tests.support.central import RunningCentral, running_central
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1B2" * 9


def said(text: str, session: str = "s-1") -> dict[str, Any]:
    return {"type": "user", "timestamp": _now(), "sessionId": session, "message": {"content": text}}


def _now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.fixture
async def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[RunningCentral]:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "p"
    call = claude("m", at=_now(), tools={"toolu_1": "Bash"}, output=200_000)
    call["message"]["content"][0]["input"] = {"command": f"curl -H 'Authorization: {SECRET}'"}
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "<b>Größe</b> \x1b[31m", "is_error": True}
    written(
        folder / "s-1.jsonl",
        said("Where is the <i>cart</i>?\nPlease."),
        call,
        said("", "s-1") | {"message": {"content": [block]}},
    )
    many = [said(f"prompt number {number}", "s-2") for number in range(230)]
    written(folder / "s-2.jsonl", *many, claude("n", at=_now(), request="req_2", session="s-2", cwd="/home/u/other"))
    async with running_central(tmp_path) as running:
        yield running


async def test_sessions_are_listed_searched_and_read_by_the_api(central: RunningCentral) -> None:
    async with central.http() as http:

        async def sessions(**query: str) -> list[str]:
            answer = await http.get("/api/v1/transcripts", params=query)
            assert answer.status_code == 200, answer.text
            return sorted(one["session"] for one in answer.json()["sessions"])

        assert await sessions() == ["s-1", "s-2"]
        assert await sessions(project="other") == ["s-2"]
        assert await sessions(client="codex") == []
        assert await sessions(text="NUMBER 229") == ["s-2"]
        assert await sessions(text="größe") == ["s-1"]
        assert await sessions(text="where is the <I>cart</I>?") == ["s-1"]
        assert await sessions(text="toolu_1") == []  # ids were not said
        one = (await http.get("/api/v1/transcripts/claude-code/s-1")).json()
        assert [entry["kind"] for entry in one["entries"]] == ["user", "tool"]
        tool = one["entries"][1]
        assert (tool["tool"], tool["failed"], "Größe" in tool["result"]) == ("Bash", True, True)
        assert SECRET not in str(one)
        part = (await http.get("/api/v1/transcripts/claude-code/s-2?start=200&limit=20")).json()
        assert (part["entries"][0]["text"], len(part["entries"]), part["more"]) == ("prompt number 200", 20, True)
        last = (await http.get("/api/v1/transcripts/claude-code/s-2?start=225&limit=20")).json()
        assert (len(last["entries"]), last["more"]) == (5, False)
        for path in ("claude-code/s-9", "codex/s-1", "claude-code/s"):
            assert (await http.get(f"/api/v1/transcripts/{path}")).status_code == 404
        assert (await http.get("/api/v1/transcripts?start=-1")).status_code == 400
        usage = (await http.get("/api/v1/usage?by=model")).json()
        assert [round(row["cost"], 4) for row in usage["rows"]] == [round(usage["total"]["cost"], 4)]
        assert (await http.get("/api/v1/usage?by=nonsense")).status_code == 400


async def test_the_pages_show_them(central: RunningCentral) -> None:
    async with visiting(central) as visitor:
        listed = await visitor.see("/usage/transcripts")
        assert "Where is the &lt;i&gt;cart&lt;/i&gt;?" in listed
        assert "$3.00" in listed
        assert "No transcript matches" in await visitor.see("/usage/transcripts?q=nobody+said+this")
        assert "prompt number 229" in await visitor.see("/usage/transcripts?q=number+229&client=claude-code")
        one = await visitor.see("/usage/transcripts/claude-code/s-1")
        assert "&lt;b&gt;Größe" in one
        assert "\x1b" not in one
        assert SECRET not in one
        assert "failed" in one
        assert "prompt number 150" in await visitor.see("/usage/transcripts/claude-code/s-2?from=100")
        assert "Nothing more" in await visitor.see("/usage/transcripts/claude-code/s-2?from=9000")
