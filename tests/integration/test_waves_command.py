"""`serena-central waves`, and the plans of docs/agents.md."""

import json
import re
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import yaml
from click.testing import CliRunner, Result

from serena_central.agents.plans.plan import parse_plan, read_plan
from serena_central.cli.main import cli
from serena_central.core.errors import InvalidArguments
from tests.support.central import running_central
from tests.support.tasks import announce, scripted

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
