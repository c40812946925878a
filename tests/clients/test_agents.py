"""Real coding agents with a scripted model use a real server, as `serena-central connect` writes it for them."""

import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest

from serena_central.mcp_server.tool_methods import SHOWN_AT_ONCE
from tests.clients.agents import CLAUDE_CODE, CODEX, GEMINI, Agent, run_agent
from tests.support.child import Ended, free_port, run_command, serving_child
from tests.support.models import Call, Request, Script, Text, scripted_model

pytestmark = pytest.mark.anyio

TRANSPORTS = ([], ["--http"])
transports = pytest.mark.parametrize("transport", TRANSPORTS, ids=["stdio", "http"])


def project_in(folder: Path, name: str, file: str) -> Path:
    root = folder / name
    (root / ".git").mkdir(parents=True)
    (root / file).write_text("class Cart:\n    def total(self) -> int:\n        return 0\n")
    return root


async def connect(agent: Agent, folder: Path, *flags: str) -> None:
    """Writes the agent's configuration, and where a server listens that a proxy starts."""
    settings = folder / "user" / ".serena" / "serena_config.yml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"central_server_port: {free_port()}\nauto_install: 'off'\n")
    agent.settings(folder / "user")
    done(await run_command(folder, "connect", agent.name, *flags))


def done(ended: Ended) -> None:
    assert (ended.code, ended.err) == (0, ""), ended


async def run(agent: Agent, project: Path, script: Script) -> Request:
    """Runs the agent until its script has ended; the last request of its model, which has all results."""
    async with scripted_model(script) as model:
        ended = await run_agent(agent, project.parent, project, model.url)
        assert not model.faults, (model.faults, ended)
        assert ended.code == 0, ended
    return model.requests[-1]


def held(request: Request, *texts: str) -> None:
    """The last results of the request have these texts, and none of them is an error."""
    for result, text in zip(request.results[-len(texts) :], texts, strict=True):
        assert text in result.text, request.results
        assert not result.failed, request.results


@asynccontextmanager
async def no_server_left(folder: Path) -> AsyncGenerator[None]:
    """Ends the server that a proxy has started; it has outlived the proxy."""
    try:
        yield
        done(await run_command(folder, "status", "--json"))
    finally:
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("SERENA_CENTRAL_HOME") == str(folder / "home"):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


@transports
async def test_an_agent_finds_a_symbol(agent: Agent, transport: list[str], tmp_path: Path) -> None:
    project = project_in(tmp_path, "shop", "cart.py")
    async with serving_child(tmp_path):
        await connect(agent, tmp_path, *transport)
        last = await run(agent, project, [*agent.preparing, agent.find("Cart"), Text("There.")])
    held(last, "cart.py")
    assert last.results[-1].tool == agent.tools.format("find_symbol")


@transports
async def test_two_windows_work_on_their_own_projects(agent: Agent, transport: list[str], tmp_path: Path) -> None:
    """Each asks once more when both have had their first answer."""
    projects = [project_in(tmp_path, "shop", "cart.py"), project_in(tmp_path, "market", "trolley.py")]
    begun = anyio.Event()
    answered: list[Request] = []
    both = anyio.Event()
    last: dict[Path, Request] = {}

    def first(_request: Request) -> Call:
        begun.set()
        return agent.find("Cart")

    async def again(request: Request) -> Call:
        answered.append(request)
        if len(answered) == len(projects):
            both.set()
        await both.wait()
        return agent.find("Cart")

    async def window(project: Path) -> None:
        last[project] = await run(agent, project, [*agent.preparing, first, again, Text("There.")])

    async with serving_child(tmp_path):
        await connect(agent, tmp_path, *transport)
        async with anyio.create_task_group() as tasks:
            for project in projects:
                tasks.start_soon(window, project)
                await begun.wait()  # two that make opencode's database at once disturb each other
        listed = await run_command(tmp_path, "sessions", "--json")
    for project, (own, others) in zip(projects, (("cart.py", "trolley.py"), ("trolley.py", "cart.py")), strict=True):
        held(last[project], own, own)
        assert others not in str(last[project].results)
    assert len({session["session_id"] for session in listed.json}) == len(projects), listed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@transports
async def test_the_server_may_go_between_two_calls(
    agent: Agent, transport: list[str], number: signal.Signals, tmp_path: Path
) -> None:
    """A proxy starts the next one. Over HTTP a person does, at the same port."""
    project = project_in(tmp_path, "shop", "cart.py")
    port = str(free_port())
    async with serving_child(tmp_path, "--port", port) as first, anyio.create_task_group() as servers:
        await connect(agent, tmp_path, *transport)
        ended = anyio.Event()

        async def next_server(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with serving_child(tmp_path, "--port", port):
                task_status.started()
                await ended.wait()

        async def stopped(_request: Request) -> Call:
            await first.end(number)
            if transport:
                await servers.start(next_server)
            return agent.find("Cart")

        async with nullcontext() if transport else no_server_left(tmp_path):
            last = await run(agent, project, [*agent.preparing, agent.find("Cart"), stopped, Text("There.")])
        ended.set()
    held(last, "cart.py", "cart.py")


async def test_an_agent_has_its_tools_though_no_server_runs(agent: Agent, tmp_path: Path) -> None:
    project = project_in(tmp_path, "shop", "cart.py")
    await connect(agent, tmp_path)
    async with no_server_left(tmp_path):
        held(await run(agent, project, [*agent.preparing, agent.find("Cart"), Text("There.")]), "cart.py")


async def test_over_http_a_call_while_the_server_is_down_fails_and_the_next_one_is_answered(
    agent: Agent, tmp_path: Path
) -> None:
    project = project_in(tmp_path, "shop", "cart.py")
    port = str(free_port())
    async with serving_child(tmp_path, "--port", port) as first, anyio.create_task_group() as servers:
        await connect(agent, tmp_path, "--http")
        ended = anyio.Event()

        async def next_server(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with serving_child(tmp_path, "--port", port):
                task_status.started()
                await ended.wait()

        async def stopped(_request: Request) -> Call:
            await first.end(signal.SIGTERM)
            return agent.find("Cart")

        async def started(request: Request) -> Call:
            assert "cart.py" not in request.results[-1].text, request.results
            await servers.start(next_server)
            return agent.find("Cart")

        last = await run(agent, project, [*agent.preparing, agent.find("Cart"), stopped, started, Text("There.")])
        ended.set()
    held(last, "cart.py")


@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX, GEMINI], ids=lambda agent: agent.name)
async def test_a_search_is_stopped_by_the_hook_and_its_hint_is_a_call_that_answers(
    agent: Agent, tmp_path: Path
) -> None:
    """opencode has no hooks that a configuration file could hold."""
    project = project_in(tmp_path, "shop", "cart.py")
    search = agent.shell("grep -rn 'class Cart' --include=*.py .")

    def hinted(request: Request) -> Call:
        """The call of the hint, as it stands."""
        said = request.results[-1].text
        found = re.search(r"^(find_symbol)\((\{.*\})\)", said, re.MULTILINE)
        assert found, said
        return agent.call(found[1], **json.loads(found[2]))

    async with serving_child(tmp_path, SERENA_HOOK_WAIT_MS="20000") as child:
        await connect(agent, tmp_path)
        done(await run_command(tmp_path, "hook", "install", agent.name))
        await child.call("find_symbol", {"project": str(project), "name_path_pattern": "Cart"})
        last = await run(agent, project, [*agent.preparing, search, hinted, search, Text("There.")])
    stopped, answered, repeated = last.results[-3:]
    assert "find_symbol(" in stopped.text
    assert "cart.py" in answered.text
    assert not answered.failed
    assert "class Cart:" in repeated.text


async def test_claude_code_shows_the_main_tools_without_a_search_for_tools(tmp_path: Path) -> None:
    # It would not wait for servers: what comes after its first request is found by a search in any case.
    more = {"ENABLE_TOOL_SEARCH": "true", "MCP_CONNECTION_NONBLOCKING": "false"}

    def searching(home: Path, url: str) -> dict[str, str]:
        return CLAUDE_CODE.variables(home, url) | more

    agent = replace(CLAUDE_CODE, variables=searching)
    project = project_in(tmp_path, "shop", "cart.py")
    async with serving_child(tmp_path):
        await connect(agent, tmp_path)
        last = await run(agent, project, [agent.find("Cart"), Text("There.")])
    held(last, "cart.py")
    at_once = {name for name, tool in last.tools.items() if not tool.get("defer_loading")}
    ours = {name.removeprefix("mcp__serena__") for name in at_once if name.startswith("mcp__serena__")}
    assert ours == SHOWN_AT_ONCE
