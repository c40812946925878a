"""The usage page of a real server, over transcripts of a user."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.browser import visiting
from tests.support.central import running_central
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
