"""`serena-central waves`, and the plans of docs/agents.md."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml
from click.testing import CliRunner, Result

from serena_central.agents.plans.plan import parse_plan, read_plan
from serena_central.cli.main import cli
from serena_central.core.errors import InvalidArguments
from tests.support.central import running_central
from tests.support.child import PATIENCE_S
from tests.support.tasks import announce, over_plan, scripted, start_plan

pytestmark = pytest.mark.anyio

DOCS = (Path(__file__).parents[2] / "docs/agents.md").read_text(encoding="utf-8")

PLAN = """\
name: pricing
waves:
  - name: discovery
    tasks:
      - {name: map, instruction: Map it, targets: [shop.py]}
      - {name: other, instruction: Map it, targets: [shop.py]}
  - tasks:
      - instruction: "Write by ${waves.1.tasks.map}"
    checks:
      - command: test -e new.py
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    (root / "shop.py").write_text("def total():\n    return 1\n")
    (root / "plan.yml").write_text(PLAN)
    monkeypatch.setenv("SERENA_CENTRAL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(root)
    return root


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["waves", *arguments])


async def running(*arguments: str) -> Result:
    return await anyio.to_thread.run_sync(lambda: run(*arguments))


def test_check_without_a_server_shows_problems_with_their_lines(project: Path) -> None:
    assert run("check", "plan.yml").exit_code == 0
    (project / "plan.yml").write_text(PLAN.replace("instruction: Map it", "instrucion: Map it"))
    found = run("check", "plan.yml")
    assert found.exit_code == 2
    assert "plan.yml:5:" in found.stdout
    assert "do you mean instruction?" in found.stdout
    assert json.loads(run("check", "plan.yml", "--json").stdout)["problems"][0]["line"] == 5


async def test_check_ends_with_2_where_the_server_cannot_run_a_task(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plan.yml").write_text(PLAN.replace("name: map,", "name: map, agent: nobody,"))
    async with running_central(tmp_path, scripted(tmp_path, {})) as central:
        announce(central, tmp_path, monkeypatch)
        found = await running("check", "plan.yml")
        assert found.exit_code == 2
        assert "plan.yml:5:1: error: waves[0].tasks[0]: There is no agent 'nobody'" in found.stderr
        found = await running("check", "plan.yml", "--json")
        assert found.exit_code == 2
        assert "nobody" in json.loads(found.stdout)["problems"][0]["problem"]


async def test_a_plan_is_run_shown_listed_and_undone(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = {"call": "create_text_file", "arguments": {"relative_path": "new.py", "content": "x = 1\n"}}
    scripts: dict[str, Any] = {"Map": [{"text": "mapped"}], "Write": [create, {"text": "${instruction}"}]}
    settings = {**scripted(tmp_path, scripts), "trusted_roots": []}
    async with running_central(tmp_path, settings) as central:
        announce(central, tmp_path, monkeypatch)
        checked = await running("check", "plan.yml")
        assert "discovery: other runs after map: both concern shop.py." in checked.stdout
        assert "Runs, if you allow it: test -e new.py" in checked.stdout
        asked = await running("run", "plan.yml")
        assert (type(asked.exception), "test -e new.py" in asked.stdout) == (InvalidArguments, True)
        done = await running("run", "plan.yml", "--allow-commands")
        assert (done.exit_code, "pricing: done" in done.stdout) == (0, True), done.output
        assert "pricing" in (await running("list")).stdout
        shown = await running("show", "plan.yml")
        assert "mapped" in shown.stdout
        assert "files" in shown.stdout
        assert json.loads((await running("show", "pricing", "--json")).stdout)["state"] == "done"
        assert (await running("resume", "pricing")).exit_code == 1
        assert "Undone: e-" in (await running("undo", "plan.yml", "--wave", "2", "--task", "1")).stdout
        assert not (project / "new.py").exists()
        assert (await running("undo", "plan.yml", "--wave", "9")).exit_code == 1
        assert isinstance((await running("show", "nothing")).exception, InvalidArguments)
        assert (await running("approve", "pricing")).exit_code == 1


def test_the_plans_of_the_docs_can_be_run() -> None:
    plans = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(name:.*?)```", DOCS, re.DOTALL)]
    assert plans
    for one in plans:
        assert read_plan(one) == parse_plan(yaml.safe_dump(one, sort_keys=False), "plan.yml")


CART = {
    "src/cart.py": "class Cart:\n    def total(self) -> int:\n        return 0\n",
    "src/shop.py": "from cart import Cart\n\n\ndef buy(cart: Cart) -> int:\n    return cart.total()\n",
    "Makefile": "test:\n\ttest -f src/cart.py\n",
    ".claude/agents/explorer.md": "---\nname: explorer\ndescription: Reads\ntools: Read\n---\nLook.\n",
    ".claude/agents/writer.md": "---\nname: writer\ndescription: Writes\ntools: Read, Edit\n---\nEdit.\n",
}


async def test_req_agent_005_the_plan_of_the_docs_runs_to_its_end(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REQ-SERENA-004: discovery and analysis, an edit as a transaction, checks, and a person's approval."""
    for name, text in CART.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    total = {"name_path": "Cart/total", "relative_path": "src/cart.py"}
    scripts = {
        "^List what": [
            {"call": "get_symbols_overview", "arguments": {"relative_path": "src/cart.py"}},
            {"text": "${last}"},
        ],
        "^List the callers": [{"call": "find_referencing_symbols", "arguments": total}, {"text": "${last}"}],
        "^Rename": [
            {"call": "rename_symbol", "arguments": {**total, "new_name": "sum"}},
            {"text": "${instruction}"},
        ],
    }
    (plan,) = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(name:.*?)```", DOCS, re.DOTALL)]
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as server, server.http() as http:
        begun = await start_plan(http, plan, project)
        with anyio.fail_after(PATIENCE_S):
            found = await over_plan(http, begun)
            assert found["state"] == "waiting", found
            await http.post(f"/api/v1/plans/{begun}/decision", json={"approved": True})
            found = await over_plan(http, begun)
        assert (found["state"], found["says"]) == ("done", "")
        discovery, implementation = found["waves"]
        assert "src/shop.py" in discovery["tasks"][1]["text"]
        assert "src/shop.py" in implementation["tasks"][0]["text"]  # what it was given of the first wave
        assert "cart.sum()" in (project / "src/shop.py").read_text()


async def test_req_agent_005_the_waves_of_the_docs_run_as_written(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = [one for one in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL) if "execute_wave" in one]
    scripts = {
        "^Implement": [
            {"call": "create_text_file", "arguments": {"relative_path": "new.py", "content": "x = 1\n"}},
            {"text": "${instruction}"},
        ],
        "": [{"text": "${instruction}: fine"}],
    }
    async with running_central(tmp_path, scripted(tmp_path, scripts)) as server:
        announce(server, tmp_path, monkeypatch)
        ran = await anyio.run_process([sys.executable, "-c", example], cwd=project, env=dict(os.environ), check=False)
    shown = ran.stdout.decode()
    assert ran.returncode == 0, ran.stderr.decode()
    assert shown.startswith("Validate: ")
    assert "'files': ['new.py']" in shown
