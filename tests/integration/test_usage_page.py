"""The usage page of a real server, over transcripts of a user."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from serena_central.store.rows import EditRow
from serena_central.web.transcripts import MOST_EDITS
from tests.support.browser import visiting
from tests.support.central import running_central, session_of
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio


async def test_the_page_shows_cost_by_group_and_what_is_missing_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    rows = [
        claude("m", at=now, output=200_000, tools={"toolu_1": "mcp__github__search"}),
        claude("n", at=now, request="req_2", model="<b>homemade</b>", tools={"toolu_2": "Read"}),
    ]
    written(tmp_path / "claude" / "projects" / "p" / "s.jsonl", *rows)
    async with running_central(tmp_path, {"usage_budgets": {"day": 1}}) as running, visiting(running) as visitor:
        first = (await visitor.see("/usage")).replace("<wbr>", "")
        assert "$3.00</b> today" in first
        assert "/home/u/shop" in first
        assert "above the budget of $1.00" in first
        assert "The price of &lt;b&gt;homemade" in first
        assert "$3.00+" in first
        assert "github" in (await visitor.see("/usage?by=upstream&window=all")).replace("<wbr>", "")
        by_tool = await visitor.see("/usage?by=tool&window=all")
        assert "$3.00<" in by_tool
        assert "$0.00+" in by_tool
        assert "claude-sonnet-4-5" in (await visitor.see("/usage?by=model&window=30 days")).replace("<wbr>", "")
        assert (await visitor.see("/usage?by=nonsense&window=")).count("chosen") == 2


async def test_what_could_not_be_read_is_said_on_the_pages_and_in_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "p"
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    written(folder / "s.jsonl", claude("m", at=now), b'{torn "usage":\n')
    for number in range(7):
        written(folder / os.fsdecode(b"s-\xff%d.jsonl" % number), claude("n", at=now))
    named = [f"{folder}/s-\ufffd{number}.jsonl: its name is not UTF-8" for number in range(7)]
    async with running_central(tmp_path) as running, visiting(running) as visitor, running.http() as http:
        page = await visitor.see("/usage")
        assert "1 line could not be read" in page
        assert sum(one in page for one in named) == 5
        assert "Not read: 2 more files or folders." in page
        assert (await visitor.see("/usage/transcripts")).count("its name is not UTF-8") == 5
        for by in ("day", "edit", "symbol"):
            found = (await http.get("/api/v1/usage", params={"by": by})).json()
            assert (found["lines_not_read"], sorted(found["not_read"])) == (1, named)
        assert sorted((await http.get("/api/v1/transcripts")).json()["not_read"]) == named


async def test_the_page_plots_cost_and_tokens_by_day_model_and_project_and_the_running_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    now = datetime.now(UTC)
    rows = [
        claude(f"m-{number}", session=f"s-{number}", at=at.isoformat(), cwd=f"/home/u/p{number}", output=200_000)
        for number, at in enumerate([now, now, now, now, now, now - timedelta(days=1)])
    ]
    written(tmp_path / "claude" / "projects" / "p" / "s.jsonl", *rows)
    async with running_central(tmp_path) as running, visiting(running) as visitor:
        page = await visitor.see("/usage")
    titles = re.findall(r"<figcaption>(.*?) <span", page)
    days = ["Cost", "Tokens", "Cost by model", "Tokens by model", "Cost by project", "Tokens by project"]
    assert titles == ["Burn rate of the 5-hour block", *days]
    assert re.findall(r'class="key s\d">([^<]*)', page)[-5:] == ["p5", "p4", "p3", "p2", "others"]
    assert "$15.00" in page  # today, of five requests
    labels = re.findall(r'<text class="y"[^>]*>([^<]*)', page)
    assert any(label.endswith(("M", "k")) for label in labels)
    assert max(map(len, labels)) <= len("$20.00")  # no more fits beside the axis
    yesterday = f"{now - timedelta(days=1):%b %d}: $3.00"
    assert yesterday in page


async def test_the_page_and_the_api_show_edits_with_the_conversations_that_asked_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "notes.txt").write_text("one\n")
    now = datetime.now(UTC).isoformat()
    async with (
        running_central(tmp_path) as running,
        running.http() as http,
        visiting(running) as visitor,
    ):
        given = {
            "project": str(root),
            "relative_path": "notes.txt",
            "mode": "literal",
            "needle": "one",
            "repl": "<two>",
        }
        answer = await running.central.caller.call(session_of(running.central), "replace_content", given)
        text = "".join(map(str, answer.blocks))
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": text}]}
        written(
            tmp_path / "claude" / "projects" / "p" / "s-1.jsonl",
            claude("m", at=now, output=100_000, input=0, tools={"toolu_1": "mcp__serena__replace_content"}),
            {"type": "user", "timestamp": now, "sessionId": "s-1", "message": {"content": [result]}},
        )
        by_edit = await visitor.see("/usage?by=edit&window=all")
        assert "/dashboard/usage/transcripts/claude-code/s-1" in by_edit
        assert "$1.50</b> for 1 edit, 0 undone" in by_edit
        assert ">Undone</a></th>" in await visitor.see("/usage?by=symbol&window=all")
        [row] = (await http.get("/api/v1/usage", params={"by": "edit"})).json()["rows"]
        assert (row["session"], row["tool"], row["files"], row["cost"]) == (
            "s-1",
            "replace_content",
            ["notes.txt"],
            1.5,
        )
        assert (await http.get("/api/v1/usage", params={"by": "edit"})).json()["unknown_models"] == {}
        [row] = (await http.get("/api/v1/usage", params={"by": "symbol"})).json()["rows"]
        assert (row["key"], row["calls"], row["failed"]) == ("(no symbol)  shop/notes.txt", 1, 0)


async def test_the_cost_of_edits_is_that_of_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    now = datetime.now(UTC)
    count = MOST_EDITS + 2
    ids = [f"e-{number:012x}" for number in range(count)]  # the first is the oldest
    async with running_central(tmp_path) as running, visiting(running) as visitor, running.http() as http:
        for number, one in enumerate(ids):
            row = EditRow(
                id=one, at=now.timestamp() - count + number, call=one, tool="t", session="s", project_root="/p",
                files=[{"path": "a"}], undoes=ids[0] if number == 1 else None,
            )  # fmt: skip
            running.central.store.writer.put(row)
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": json.dumps({"edit": ids[0]})}
        written(
            tmp_path / "claude" / "projects" / "p" / "s-1.jsonl",
            claude("m", at=now.isoformat(), output=100_000, input=0, tools={"toolu_1": "mcp__serena__t"}),
            {"type": "user", "timestamp": now.isoformat(), "sessionId": "s-1", "message": {"content": [result]}},
        )
        by_edit = (await http.get("/api/v1/usage", params={"by": "edit"})).json()
        assert (by_edit["total"]["calls"], by_edit["total"]["failed"], by_edit["total"]["cost"]) == (count, 1, 1.5)
        assert ([row["key"] for row in by_edit["rows"]], by_edit["more"]) == (ids[:1:-1], True)
        by_symbol = (await http.get("/api/v1/usage", params={"by": "symbol"})).json()
        assert ([row["calls"] for row in by_symbol["rows"]], by_symbol["more"]) == ([count], False)
        assert f"$1.50+</b> for {count:,} edits, 1 undone" in await visitor.see("/usage?by=edit&window=all")
        assert (await http.get("/api/v1/usage")).json()["more"] is False
