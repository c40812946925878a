"""A server as it is on a working day: agents of several clients in two small projects, calls, an edit, a kill."""

import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serena_central.analysis.analysis_run import Kind
from serena_central.web.pages.page import BELOW, Page
from tests.support.central import RunningCentral, running_central
from tests.support.example_project import TOTAL, example_project, page_queries
from tests.support.tasks import past_plan, past_task
from tests.support.transcripts import claude, written
from tests.support.upstreams import QUICK, scripted, settings_of_user

KINDS: tuple[Kind, ...] = ("graph", "findings")


@dataclass
class Life:
    """A busy server. `paths` fills the words in pages' paths; `queries` are of pages that need one, by their path."""

    central: RunningCentral
    paths: dict[str, str]
    queries: dict[str, str]

    def address(self, page: Page) -> str:
        """Of a page of the route table: its URL, for the words and query that it needs."""
        return self.central.url + BELOW + page.path.format_map(self.paths) + self.queries.get(page.path, "")


@asynccontextmanager
async def busy_server(home: Path) -> AsyncGenerator[Life]:
    shop, billing = (example_project(home / "src" / name) for name in ("shop", "billing"))
    settings = {"pool.memory_budget_mb": 1024, **QUICK}
    settings_of_user(home / "claude", {"notes": scripted()})
    written(home / "claude" / "projects" / "shop" / "s-1.jsonl", *conversation(shop))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
        async with _busy(home, shop, billing, settings) as life:
            yield life


@asynccontextmanager
async def _busy(home: Path, shop: Path, billing: Path, settings: dict[str, Any]) -> AsyncGenerator[Life]:
    async with running_central(home, settings, patience_s=300) as central, central.http() as http:
        _an_hour_passed(central)

        async def agent(name: str, version: str, root: Path) -> str:
            body = {"client_name": name, "client_version": version, "working_folder": str(root)}
            return (await http.post("/api/v1/sessions", json=body)).json()["session_id"]

        async def call(session: str, tool: str, **arguments: Any) -> None:
            await http.post(f"/api/v1/tools/{tool}", json={"session": session, "arguments": arguments})

        claude = await agent("claude-code", "2.1.4", shop)
        codex = await agent("codex", "0.63.0", billing)
        cursor = await agent("cursor", "2.0.1", shop)
        gone, killed = await agent("zed", "0.211", billing), await agent("opencode", "1.0.80", shop)
        for session, root in ((claude, shop), (codex, billing), (cursor, shop)):
            await call(session, "activate_project", project=str(root))
            for _ in range(4):
                await call(session, "find_symbol", name_path_pattern="Cart/total", include_body=True)
            await call(session, "get_symbols_overview", relative_path="cart.py")
            await call(session, "search_for_pattern", substring_pattern="price")
        await call(codex, "find_symbol", name_path_pattern="[")
        assert (await http.get("/api/v1/upstreams/notes")).json()["tools"]
        await call(claude, "replace_symbol_body", relative_path="cart.py", name_path="Cart/total", body=TOTAL)
        await http.post(f"/api/v1/sessions/{gone}/close")
        await http.delete(f"/api/v1/sessions/{killed}", params={"by": "a user in the dashboard"})
        edits = (await http.get("/api/v1/edits")).json()["edits"]
        (server, *_) = (await http.get("/api/v1/servers")).json()["servers"]
        await _analysis_run(central, shop)
        (made, *_) = (await http.get("/api/v1/calls", params={"tool": "replace_symbol_body"})).json()["calls"]
        central.central.store.writer.put(past_task(shop))
        central.central.store.writer.put(past_plan(shop))
        await central.central.store.writer.flush()
        paths = {
            "session": claude,
            "call": made["id"],
            "edit": edits[0]["id"],
            "server": server["id"],
            "tool": "find_symbol",
            "upstream": "notes",
            "client": "claude-code",
            "conversation": "s-1",
            "task": "t-past",
            "plan": "p-past",
        }
        yield Life(central, paths, page_queries(shop))


def conversation(root: Path) -> list[dict[str, Any]]:
    """A prompt, a call of a tool with its result, an answer."""
    now = datetime.now(UTC).isoformat()
    prompt = {"type": "user", "timestamp": now, "sessionId": "s-1", "message": {"content": "Where is the total?"}}
    call = claude("m", at=now, cwd=str(root), tools={"toolu_1": "mcp__serena__find_symbol"}, output=50_000)
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cart.py, line 4"}
    result = {"type": "user", "timestamp": now, "sessionId": "s-1", "message": {"content": [block]}}
    answer = claude("n", at=now, request="req_2", cwd=str(root))
    answer["message"]["content"] = [{"type": "text", "text": "In cart.py, **line 4**."}]
    return [prompt, call, result, answer]


async def _analysis_run(central: RunningCentral, root: Path) -> None:
    analysis_runs = central.central.dashboard.parts.analysis_runs
    for kind in KINDS:
        with central.central.bus.subscribe() as news:
            analysis_runs.start(root, kind)
            async for event in news:
                if event.kind == "analysis.ended":
                    break


def _an_hour_passed(central: RunningCentral) -> None:
    """Calls as they would have been: two spells of work, and a slow one now and then."""
    minutes, now = central.central.dashboard.parts.tally.minutes, time.time()
    for ago in range(1, 58):
        for number in range(max(0, round(14 * math.sin(ago / 9) ** 2) + ago % 3)):
            slow = number % 7 == 0
            minutes.add(now - 60 * ago, 3 + number + (60 + ago) * slow, failed=number % 11 == 10)
