"""Transcripts that real clients write, read back: what they asked a scripted model for is what is counted."""

import json
import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.native_transcripts import Native
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.audit import Audit
from serena_central.transcripts.counting import update
from serena_central.transcripts.messages import messages
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import report
from serena_central.transcripts.roots import roots_of, transcripts_in
from tests.clients.agents import CLAUDE_CODE, CODEX, GEMINI, INSTALLED, Agent, run_agent
from tests.support.models import Call, Request, Text, scripted_model
from tests.support.models.script import Turn

pytestmark = pytest.mark.anyio

NATIVE = {"claude-code": "Bash", "codex": "exec_command", "gemini": "run_shell_command"}


@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX, GEMINI], ids=lambda agent: agent.name)
async def test_what_a_client_asked_its_model_is_counted(agent: Agent, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    (tmp_path / "user").mkdir()
    agent.settings(tmp_path / "user")
    script = [[Text("Looking."), agent.shell("ls")], agent.shell("ls -a"), Text("There.")]
    async with scripted_model(script) as model:
        ended = await run_agent(agent, tmp_path, project, model.url)
    assert ended.code == 0, ended
    with UsageStore(tmp_path / "usage.db") as store:
        done = update(store, roots_of(tmp_path / "user", {}), Prices())
        assert (done.dropped, done.unreadable) == (0, [])
        sessions = report(store, "session", now=datetime.now(UTC))
        projects = report(store, "project", now=datetime.now(UTC))
        tools = report(store, "tool", now=datetime.now(UTC))
    [session], [folder], [tool] = sessions.rows, projects.rows, tools.rows
    # The scripted model counts one token each way.
    assert (session.requests, session.input, session.output) == (3, 3, 3)
    assert folder.key == str(project)
    assert (tool.key, tool.calls, tool.failed) == (NATIVE[agent.name], 2, 0)


async def test_sub_agents_of_claude_code_are_counted_apart(tmp_path: Path) -> None:
    def answer(request: Request) -> Turn:
        if any("COUNT THE CARTS" in prompt for prompt in request.prompts):
            return Text("One cart.")
        if request.turns == 0:
            asked = {"description": "Count", "prompt": "COUNT THE CARTS", "subagent_type": "general-purpose"}
            return Call("Agent", asked)
        return Text("There is one.")

    project = tmp_path / "shop"
    project.mkdir()
    (tmp_path / "user").mkdir()
    async with scripted_model(answer) as model:
        ended = await run_agent(CLAUDE_CODE, tmp_path, project, model.url)
    assert ended.code == 0, ended
    with UsageStore(tmp_path / "usage.db") as store:
        update(store, roots_of(tmp_path / "user", {}), Prices())
        agents = {row.key: row.requests for row in report(store, "agent", now=datetime.now(UTC)).rows}
    assert agents["general-purpose"] == 1
    assert agents["(main conversation)"] >= 2


async def test_a_conversation_that_claude_code_compacts_is_counted_and_read_whole(tmp_path: Path) -> None:
    """What it writes of a compaction: `compact_boundary`, a summary in the user's place, the command and its output."""

    def saying(*words: str) -> Agent:
        return replace(CLAUDE_CODE, command=lambda url: [*list(CLAUDE_CODE.command(url))[:-1], *words])

    project = tmp_path / "shop"
    project.mkdir()
    (tmp_path / "user").mkdir()

    def answer(request: Request) -> Turn:
        return Text("<summary>It is in shop.py.</summary>" if "summary" in request.prompts[-1] else "There.")

    async with scripted_model(answer) as model:
        for words in (["Where is the cart?"], ["--continue", "/compact"], ["--continue", "And the till?"]):
            ended = await run_agent(saying(*words), tmp_path, project, model.url)
            assert ended.code == 0, ended
    roots = roots_of(tmp_path / "user", {})
    [file] = transcripts_in(roots)
    assert '"subtype":"compact_boundary"' in Path(file.path).read_text()
    said = [(one.role, one.text) for one in messages(file)]
    [summary] = [text for role, text in said if role == "summary"]
    assert "It is in shop.py." in summary
    assert [one for one in said if one[0] != "summary"] == [
        ("user", "Where is the cart?"),
        ("assistant", "There."),
        ("user", "/compact"),
        ("user", "And the till?"),
        ("assistant", "There."),
    ]
    with UsageStore(tmp_path / "usage.db") as store:
        done = update(store, roots, Prices())
        [session] = report(store, "session", now=datetime.now(UTC)).rows
    # The request for the summary stands in no row: Claude Code adds it to the session's cost alone.
    assert (done.dropped, session.requests, session.input, session.output) == (0, 2, 2, 2)


def test_totals_are_those_of_ccusage(tmp_path: Path) -> None:
    """On 200 MB, streamed rows, sub-agents, replays and forks among them."""
    Native(tmp_path / ".claude" / "projects").write(200_000_000)
    program = tmp_path / "ccusage"
    program.write_bytes((INSTALLED / "@ccusage" / "ccusage-linux-x64" / "bin" / "ccusage").read_bytes())
    program.chmod(0o700)
    environment = {"HOME": str(tmp_path), "TZ": "UTC", "PATH": os.environ["PATH"]}
    shown = subprocess.run([program, "daily", "--offline", "--json"], env=environment, capture_output=True, check=True)
    theirs = json.loads(shown.stdout)
    with UsageStore(tmp_path / "usage.db") as store:
        update(store, roots_of(tmp_path, {}), Prices())
        ours = report(store, "day", zone=UTC, now=datetime.now(UTC))
    keys = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    expected = {
        day.get("date") or day["period"]: (*(day[key] for key in keys), pytest.approx(day["totalCost"], abs=1e-6))
        for day in theirs["daily"]
    }
    found = {row.key: (row.input, row.output, row.cache_write, row.cache_read, row.cost) for row in ours.rows}
    assert found == expected
    audit = Audit(roots_of(tmp_path, {}))
    assert sum(1 for _ in audit.rows()) + len(audit.requests) == audit.rows_read
