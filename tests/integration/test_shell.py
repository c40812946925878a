"""Shell commands: off by default, and when allowed, bounded in every way, with nothing left behind."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from serena_central.app import Application
from serena_central.core.errors import DeadlineExceeded, InvalidArguments, PathOutsideProject, ToolRefused
from serena_central.tools import shell
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    return root


@asynccontextmanager
async def allowing(folder: Path, **settings: Any) -> AsyncGenerator[Application]:
    with anyio.fail_after(60):
        async with running_parts(folder, {"execute_shell": True, **settings}) as central:
            yield central


async def run(central: Application, project: Path, command: str, **arguments: Any) -> dict[str, Any]:
    asked = {"command": command, "project": str(project), **arguments}
    answer = await central.caller.call(session_of(central), "execute_shell_command", asked)
    return {**json.loads(answer.blocks[0]), "notes": answer.blocks[1:]}


async def test_it_is_off_unless_the_person_allows_it(tmp_path: Path, project: Path) -> None:
    (project / ".serena").mkdir()
    (project / ".serena/project.yml").write_text(
        "execute_shell: true\nincluded_optional_tools: [execute_shell_command]\n"
    )
    async with running_parts(tmp_path, {"included_optional_tools": ["execute_shell_command"]}) as central:
        with pytest.raises(ToolRefused, match="execute_shell: true"):
            await run(central, project, "true")
        listed = [tool.name for tool in central.caller.tools_for(session_of(central))]
        assert "execute_shell_command" not in listed
    async with allowing(tmp_path) as central:
        listed = [tool.name for tool in central.caller.tools_for(session_of(central))]
        assert "execute_shell_command" in listed


async def test_output_code_and_folder_are_answered(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path) as central:
        ran = await run(central, project, "pwd; echo wrong >&2; cat; exit 3", cwd="sub")
        assert ran == {
            "stdout": f"{project}/sub\n",
            "stderr": "wrong",
            "return_code": 3,
            "cwd": str(project / "sub"),
            "notes": [],
        }
        assert (await run(central, project, "echo wrong >&2", capture_stderr=False))["stderr"] is None


async def test_it_stays_in_the_project(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path) as central:
        with pytest.raises(PathOutsideProject):
            await run(central, project, "true", cwd="..")


async def test_the_environment_holds_no_secrets(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("SERENA_CENTRAL_DATABASE_URL", "secret")
    async with allowing(tmp_path) as central:
        names = {line.partition("=")[0] for line in (await run(central, project, "env"))["stdout"].splitlines()}
        assert {"PATH", "HOME"} <= names
        assert not {"GITHUB_TOKEN", "SERENA_CENTRAL_DATABASE_URL"} & names


async def test_long_output_is_cut_and_says_so(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path) as central:
        ran = await run(central, project, f"head -c {shell.OUTPUT_BYTES + 10} /dev/zero | tr '\\0' x; echo end >&2")
        assert len(ran["stdout"]) == shell.OUTPUT_BYTES
        assert (ran["stderr"], ran["return_code"]) == ("end", 0)
        assert ran["notes"] == [f"Truncated: 10 bytes of output after the first {shell.OUTPUT_BYTES} were dropped."]


async def test_a_command_ends_at_its_deadline_with_all_that_it_started(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path, tool_timeouts_s={"execute_shell_command": 1}) as central:
        with pytest.raises(DeadlineExceeded):
            await run(central, project, "setsid sleep 4711 & echo $! > pid; sleep 4711")
        with anyio.fail_after(60):
            while psutil.pid_exists(int((project / "pid").read_text())):
                await anyio.sleep(0.01)


async def test_what_can_be_no_command_is_refused(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path) as central:
        for command in ("", "  ", "a\0b", "x" * (shell.MAX_COMMAND + 1)):
            with pytest.raises(InvalidArguments):
                await run(central, project, command)


async def test_read_only_projects_run_nothing(tmp_path: Path, project: Path) -> None:
    async with allowing(tmp_path, read_only=True) as central:
        with pytest.raises(ToolRefused, match="read_only"):
            await run(central, project, "true")
