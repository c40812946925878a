"""Tasks of the runner `messages` in usage: a real server with real tools, its model is scripted."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serena_central import sdk
from serena_central.sdk import UnknownSession
from tests.integration.test_messages_runner import LISTING, tasks
from tests.integration.test_task_transcripts import ran
from tests.support.child import run_command
from tests.support.models import Call, Request, Text
from tests.support.models.script import Turn
from tests.support.transcripts import claude, written

pytestmark = pytest.mark.anyio

AGENT = "---\nname: finder\ndescription: Finds\n---\nYou are the finder.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / ".claude" / "agents").mkdir(parents=True)
    (root / ".claude" / "agents" / "finder.md").write_text(AGENT)
    (root / "shop.py").write_text("class Cart:\n    total = 0\n")
    return root


def working(request: Request) -> Turn:
    """Lists, edits a line, calls what fails, and ends."""
    edit = {"relative_path": "shop.py", "needle": "total = 0", "repl": "total = 1", "mode": "literal"}
    steps: list[Turn] = [
        [Text("Looking."), LISTING],
        Call("replace_content", edit),
        Call("find_symbol", {"name_path_pattern": ""}),
        Text("The total is one."),
    ]
    return steps[len(request.results)] if len(request.results) < len(steps) else Text("And that is all.")


async def shown(folder: Path, *arguments: str) -> dict[str, Any]:
    found = await run_command(folder, "usage", *arguments, "--json")
    assert found.code == 0, found
    return found.json


async def test_tasks_of_the_messages_api_count_once_in_each_grouping(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with tasks(tmp_path, monkeypatch, working, input_tokens=lambda _: 2000) as (_, http):
        done = await ran(http, "Make the total one.\nPlease.", project, agent="finder")
        again = await ran(http, "Is it?", project, resume=done["id"], runner="messages")
        session, cost = done["resume_id"], done["cost_usd"] + again["cost_usd"]
        # A client's conversation beside it, whose calls this server writes without tokens.
        other = claude("m", input=0, output=0, write=9, at="2025-01-05T10:00:00.000Z")
        written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", other)
        by_http = (await http.get("/api/v1/usage", params={"by": "client"})).json()
        listed = (
            await http.get("/api/v1/transcripts", params={"text": "make the total", "client": "messages"})
        ).json()["sessions"]
        read = (await http.get(f"/api/v1/transcripts/messages/{session}")).json()["entries"]
    assert [(row["key"], row["requests"]) for row in by_http["rows"] if row["key"] == "messages"] == [("messages", 5)]
    assert [(one["session"], one["client"], one["prompt"]) for one in listed] == [
        (session, "messages", "Make the total one.")
    ]
    kinds = [one["kind"] for one in read]
    assert kinds == ["user", "assistant", "tool", "tool", "tool", "assistant", "user", "assistant"]
    assert [one["failed"] for one in read if one["kind"] == "tool"] == [False, False, True]
    assert "shop.py" in read[2]["result"]

    for by in ("day", "week", "month", "model", "project", "session", "agent", "client", "block"):
        rows = [row for row in (await shown(tmp_path, "--by", by))["rows"] if row["input"] == 10_000]
        assert [(row["requests"], round(row["cost"], 4)) for row in rows] == [(5, round(cost, 4))] or by == "agent", by
        if by in ("model", "project", "session"):
            assert rows[0]["key"] == {"project": str(project), "session": session}.get(by, "claude-sonnet-5-5")
    agents = {row["key"]: row["requests"] for row in (await shown(tmp_path, "--by", "agent"))["rows"]}
    assert agents == {"finder": 4, "(main conversation)": 2}
    tools = {row["key"]: (row["calls"], row["failed"]) for row in (await shown(tmp_path, "--by", "tool"))["rows"]}
    assert tools == {"list_dir": (1, 0), "replace_content": (1, 0), "find_symbol": (1, 1)}
    assert [row["key"] for row in (await shown(tmp_path, "--by", "upstream"))["rows"]] == ["serena-central"]
    [edit] = (await shown(tmp_path, "--by", "edit"))["rows"]
    assert (edit["session"], edit["client"], edit["prompt"]) == (session, "messages", "Make the total one.")
    assert edit["cost"] > 0
    # A second reading of the same, from the start too, adds nothing.
    for usage in (tmp_path / "home").glob("usage.db*"):
        usage.unlink()
    assert (await shown(tmp_path))["total"]["requests"] == 6
    audit = await shown(tmp_path, "--audit")
    assert (audit["requests"], audit["dropped"], audit["other_kinds"]) == (6, {}, {})
    blamed = await run_command(tmp_path, "blame", f"{project / 'shop.py'}:2", "--json")
    assert (blamed.json["session"], round(blamed.json["session_cost"], 4)) == (session, round(cost, 4))

    resumed = await run_command(tmp_path, "transcripts", "resume", session[:8])
    assert (resumed.code, json.loads(resumed.out)["session"]) == (0, session)
    rows = (await run_command(tmp_path, "transcripts", "list", "--client", "messages", "--json")).json
    assert [(row["session"], f"--resume {session}" in row["resume"]) for row in rows] == [(session, True)]

    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "home"))
    [known] = [one for one in sdk.sessions() if one.client == "messages"]
    said = list(sdk.messages(known))
    assert [one.text for one in said if one.role == "user"] == ["Make the total one.\nPlease.", "Is it?"]
    assert {one.session for one in said} == {session}
    for file in (tmp_path / "home" / "transcripts").glob("*/*.jsonl"):
        file.unlink()
    with suppress(UnknownSession):
        pytest.fail(str(list(sdk.messages(known))))
    assert sdk.usage("client").total.requests >= 5


async def test_what_counts_by_a_clients_transcript_does_not_count_by_ours(tmp_path: Path, project: Path) -> None:
    folder = tmp_path / "home" / "transcripts"
    now = datetime.now(UTC).isoformat()
    line: dict[str, Any] = {"role": "assistant", "sessionId": "3f0c1e5a-0000-4000-8000-000000000000", "timestamp": now}
    line |= {"content": "There.", "toolCalls": [{"id": "toolu_1", "name": "Bash"}]}
    tokens = {"inputTokens": 5, "outputTokens": 5, "cost": 1.25}
    day = folder / "p" / f"{now[:10]}.jsonl"
    written(day, line, line | tokens, line | tokens | {"timestamp": "9999-12-31T23:59:59+00:00"})
    (folder / "p" / "project.json").write_text(json.dumps({"root": str(project)}))
    written(tmp_path / "user" / ".claude" / "projects" / "p" / "s-1.jsonl", claude("m", tools={"toolu_1": "Bash"}))
    # No model is named: the cost is what the line states.
    rows = {row["key"]: row for row in (await shown(tmp_path, "--by", "project"))["rows"]}
    assert (rows[str(project)]["requests"], rows[str(project)]["cost"]) == (1, 1.25)
    assert [row["calls"] for row in (await shown(tmp_path, "--by", "tool"))["rows"]] == [2]
    audit = await shown(tmp_path, "--audit")
    assert (audit["requests"], sum(audit["dropped"].values())) == (2, 2)
    assert {(row["file"], row["line"]) for row in audit["rows"]} == {(str(day), 1), (str(day), 3)}
