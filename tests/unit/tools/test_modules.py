"""What sessions in a super-repo are told of it, and how changes of its configuration reach them without a restart."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.app import Application
from serena_central.core.errors import ToolRefused
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio

TWO = """\
name: platform
type: super-repo
default_module: api
modules:
  api: {path: modules/api, languages: [python], concerns: [backend, jobs]}
  web: {path: modules/web}
"""


class Desk:
    """A session that works at the root of a super-repo."""

    def __init__(self, central: Application, root: Path) -> None:
        self.central = central
        self.root = root
        self.session = session_of(central, working_folder=str(root))

    def configure(self, text: str) -> None:
        file = self.root / ".serena/project.yml"
        file.parent.mkdir(exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(file)

    async def call(self, tool: str, **arguments: Any) -> tuple[str, list[str]]:
        """The answer and its notes."""
        answer = await self.central.caller.call(self.session, tool, arguments)
        return answer.blocks[0], "\n".join(answer.blocks[1:]).splitlines()

    async def ask(self, tool: str, **arguments: Any) -> Any:
        return json.loads((await self.call(tool, **arguments))[0])


@asynccontextmanager
async def platform(folder: Path, text: str = TWO) -> AsyncGenerator[Desk]:
    root = folder.resolve() / "super"
    for name in ("api", "web", *(f"module-number-{number}" for number in range(16))):
        (root / "modules" / name).mkdir(parents=True)
        (root / "modules" / name / f"{name}.py").write_text("def main(): ...\n")
    (root / "docs").mkdir()
    (root / "docs/guide.py").write_text("def guide(): ...\n")
    with anyio.fail_after(60):
        async with running_parts(folder) as central:
            desk = Desk(central, root)
            desk.configure(text)
            yield desk


async def test_activating_the_super_repo_tells_its_modules_and_how_to_reach_them(tmp_path: Path) -> None:
    async with platform(tmp_path) as desk:
        answer, _ = await desk.call("activate_project", project=str(desk.root))
        assert answer == (
            "'platform' is a super-repo of 2 modules. Each call goes to one module: name it in project= (\"*\": all), "
            "pass a path inside it, or describe the task in semantic_context. Nothing needs to be "
            "activated. The default module is 'api'. Modules: 'api' (python; 'backend', 'jobs'), 'web'."
        )
        activated, _ = await desk.call("activate_project", project="web")
        assert activated.startswith(f"'web' is active ('{desk.root}/modules/web', 1 files")


async def test_configuration_and_projects_are_shown_with_the_modules(tmp_path: Path) -> None:
    async with platform(tmp_path) as desk:
        shown = await desk.ask("get_current_config")
        assert shown["super_repo"] == {
            "name": "platform",
            "root": str(desk.root),
            "default_module": "api",
            "modules": {"api": "modules/api", "web": "modules/web"},
        }
        listed = {one["name"]: one.get("module_of") for one in await desk.ask("list_projects")}
        assert listed == {"platform": None, "api": "platform", "web": "platform"}


async def test_a_changed_configuration_counts_from_the_next_call_on(tmp_path: Path) -> None:
    async with platform(tmp_path) as desk:
        assert list(await desk.ask("find_symbol", name_path_pattern="main", project="*")) == ["api", "web"]
        desk.configure(TWO.replace("  web:", "  shop:").replace("languages: [python]", "languages: [go]"))
        groups = await desk.ask("find_symbol", name_path_pattern="main", project="*")
        assert {name: len(found) for name, found in groups.items()} == {"api": 0, "shop": 1}
        desk.configure(TWO.replace("modules/web", "modules/module-number-1"))
        groups = await desk.ask("find_symbol", name_path_pattern="main", project="*")
        assert {name: [one["relative_path"] for one in found] for name, found in groups.items()} == {
            "api": ["api.py"],
            "web": ["module-number-1.py"],
        }


async def test_what_the_super_repo_commits_in_claude_serena_counts_for_open_modules_too(tmp_path: Path) -> None:
    async with platform(tmp_path) as desk:
        await desk.ask("find_symbol", name_path_pattern="main", project="web")
        committed = desk.root / ".claude/.serena/serena_config.yml"
        committed.parent.mkdir(parents=True)
        committed.write_text("excluded_tools: [find_symbol]\n")
        with pytest.raises(ToolRefused, match="excluded_tools"):
            await desk.ask("find_symbol", name_path_pattern="main", project="web")
        committed.unlink()
        assert await desk.ask("find_symbol", name_path_pattern="main", project="web")


async def test_what_is_wrong_is_told_with_file_line_and_key_and_the_rest_works(tmp_path: Path) -> None:
    async with platform(tmp_path, TWO + "  gone: {path: modules/gone}\ncolour: red\n") as desk:
        _, notes = await desk.call("activate_project", project=str(desk.root))
        file = desk.root / ".serena/project.yml"
        assert any(line.startswith(f"Settings: {file}:7: modules.gone: ") for line in notes), notes
        assert any(line.startswith(f"Settings: {file}:8: colour: ") for line in notes), notes
        assert list(await desk.ask("find_symbol", name_path_pattern="main", project="*")) == ["api", "web"]
        desk.configure("type: [super-repo\n")
        _, notes = await desk.call("get_current_config")
        assert any(line.startswith(f"Settings: {file}:") for line in notes), notes
        assert list(await desk.ask("find_symbol", name_path_pattern="main", project="*")) == ["api", "web"]


async def test_infrastructure_is_refused_with_the_way_out_and_can_still_be_read(tmp_path: Path) -> None:
    async with platform(tmp_path) as desk:
        with pytest.raises(ToolRefused, match=r"of the super-repo 'platform' .* \(modules: 'api', 'web'\)"):
            await desk.call("get_symbols_overview", relative_path="docs/guide.py")
        text, _ = await desk.call("read_file", relative_path="docs/guide.py")
        assert "def guide" in text


@pytest.mark.parametrize("count", [2, 16])
async def test_the_initial_instructions_tell_modules_and_routing_and_stay_short(tmp_path: Path, count: int) -> None:
    concerns = ", ".join(f"concern-{number}" for number in range(8))
    modules = "".join(
        f"  module-number-{number}: {{path: modules/module-number-{number}, concerns: [{concerns}]}}\n"
        for number in range(count)
    )
    async with platform(tmp_path, f"name: platform\ntype: super-repo\nmodules:\n{modules}") as desk:
        text, _ = await desk.call("initial_instructions")
        assert f"super-repo of {count} modules" in text
        assert "semantic_context" in text
        assert f"module-number-{count - 1}" in text
        assert len(text) <= 2500
