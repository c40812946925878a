"""REQ-SERENA-004, REQ-INTEGRATION-005 and REQ-AGENT-006: the document's refactoring in four waves, and how its tasks
share what they found."""

from pathlib import Path

import pytest

from tests.support.central import running_central
from tests.support.tasks import over, over_plan, scripted, start, start_plan

pytestmark = pytest.mark.anyio

FILES = {
    "cart.py": "def total() -> int:\n    return 0\n",
    "shop.py": "from cart import total\n\n\ndef buy() -> int:\n    return total()\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root


async def test_req_serena_004_and_integration_005_four_waves_discover_analyze_rename_and_validate(
    tmp_path: Path, root: Path
) -> None:
    symbol = {"name_path": "total", "relative_path": "cart.py"}
    scripts = {
        "^Discover": [
            {"call": "get_symbols_overview", "arguments": {"relative_path": "cart.py"}},
            {"call": "write_memory", "arguments": {"memory_name": "findings", "content": "total is to be whole"}},
            {"text": "cart.py has total"},
        ],
        "^Analyze": [{"call": "find_referencing_symbols", "arguments": symbol}, {"text": "${last}"}],
        "^Implement": [
            {"call": "read_memory", "arguments": {"memory_name": "findings"}},
            {"text": "${last}"},
            {"call": "rename_symbol", "arguments": {**symbol, "new_name": "whole"}},
        ],
        "^Validate": [{"call": "check_references", "arguments": {}}, {"text": "${instruction}"}],
    }
    plan = {
        "name": "rename",
        "waves": [
            {"name": "discovery", "tasks": [{"instruction": "Discover the architecture"}]},
            {"name": "analysis", "tasks": [{"instruction": "Analyze ${waves.discovery.results}"}]},
            {
                "name": "implementation",
                "transaction": True,
                "tasks": [{"instruction": "Implement ${waves.analysis.results}", "targets": ["total"]}],
                "checks": ["no-new-errors"],
            },
            {
                "name": "validation",
                "tasks": [{"instruction": "Validate ${waves.implementation.verified}"}],
                "checks": ["no-broken-references"],
            },
        ],
    }
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as running, running.http() as http:
        found = await over_plan(http, await start_plan(http, plan, root))
        assert (found["state"], found["says"]) == ("done", "")
        _, analysis, implementation, validation = found["waves"]
        assert "shop.py" in analysis["tasks"][0]["text"]
        assert "total is to be whole" in implementation["tasks"][0]["text"]
        assert implementation["verified"]["files"] == ["cart.py", "shop.py"]
        assert implementation["verified"]["broken_references"] == []
        assert '"files":["cart.py","shop.py"]' in validation["tasks"][0]["text"]
        assert "return whole()" in (root / "shop.py").read_text()


async def test_req_agent_006_a_task_can_neither_read_nor_cancel_another(tmp_path: Path, root: Path) -> None:
    ask = {"call": "task_result", "arguments": {"task": "${last}", "cancel": True}}
    scripts = {"^first": [{"text": "mine"}], "^second": [{"run": ["cat", "other"]}, ask]}
    settings = {**scripted(tmp_path, scripts), "task_tool": True}
    async with running_central(tmp_path, settings) as running, running.http() as http:
        first = await over(http, (await start(http, "first", root))["id"])
        (root / "other").write_text(first["id"])
        second = await over(http, (await start(http, "second", root))["id"])
        assert second["state"] == "failed"
        assert "was not started by this session" in second["error"]
