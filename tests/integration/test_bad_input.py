"""Bad input for every tool of the catalogue, by its schema alone: clear errors, nothing hangs, the server stays up.

What is particular to some tools is in `test_bad_calls.py`.
"""

import functools
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.tools.catalogue import PATH_PARAMETERS, Tool
from serena_central.tools.families import CATALOGUE
from tests.support.central import RunningCentral, running_central
from tests.support.generated_arguments import HUGE, OPTIONAL, huge_file, odd_project, plausible, takes
from tests.support.mcp import RawClient, messages_in
from tests.support.scripted import CART

pytestmark = pytest.mark.anyio

ODD_FILES = ("broken.py", "binary.py", "huge.py", "pipe.py", "zero.py", "strange.xyzzy", "folder", "nothing.py", "")

PATIENCE_S = 120


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return huge_file(tmp_path_factory.mktemp("huge"))


@pytest.fixture(scope="module")
async def central(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningCentral]:
    """One server for all: what a wrong call leaves behind shows in the ones after it."""
    settings = {"included_optional_tools": OPTIONAL, "execute_shell": True, "tool_timeout_s": 20}
    settings |= {"task_tool": True, "agents.runner": "scripted"}  # which has no script: no task starts
    async with running_central(tmp_path_factory.mktemp("central"), settings, patience_s=900) as running:
        yield running


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory: pytest.TempPathFactory, huge: Path) -> Path:
    return odd_project(tmp_path_factory.mktemp("odd") / "shop", huge)


@pytest.fixture(scope="module")
def broken_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("broken") / "torn"
    (root / ".serena").mkdir(parents=True)
    (root / "cart.py").write_text(CART)
    (root / ".serena" / "project.yml").write_text("project_name: [\n\tlanguages: {{{\n")
    return root


@pytest.fixture(params=CATALOGUE.names())
def tool(request: pytest.FixtureRequest) -> Tool:
    tool = CATALOGUE.get(request.param)
    assert tool is not None
    return tool


@pytest.fixture(scope="module")
def own_project(tmp_path_factory: pytest.TempPathFactory, huge: Path) -> Callable[[str], Path]:
    """The project of a tool, one for all its tests, since reading a huge file is costly."""
    return functools.cache(lambda tool: odd_project(tmp_path_factory.mktemp(tool) / "shop", huge))


@pytest.fixture
def project(tool: Tool, own_project: Callable[[str], Path], shared_project: Path) -> Path:
    """Tools that change something get a project of their own."""
    return shared_project if tool.read_only else as_new(own_project(tool.name))


def as_new(project: Path) -> Path:
    """The same project, where a tool can change again what it has changed."""
    (project / "cart.py").write_text(CART)
    return project


@pytest.fixture
async def client(central: RunningCentral, project: Path, tool: Tool) -> AsyncGenerator[RawClient]:
    async with central.raw("modern", x_serena_session=f"clumsy-{tool.name}") as client:
        await client.call("activate_project", project=str(project))
        yield client


@pytest.fixture(autouse=True)
def no_bug_is_logged(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    bugs = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert bugs == []


async def answered(client: RawClient, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    """Whether the call was refused, and its words; it was answered in time, and by no failure of ours."""
    with anyio.fail_after(PATIENCE_S):
        response = await client.send("tools/call", {"name": tool, "arguments": arguments})
    where = f"{tool} {str(arguments)[:300]}: {response.text[:600]}"
    assert response.status_code == 200, where
    answer = messages_in(response.text)[-1]
    assert "result" in answer, where
    said = "\n".join(block["text"] for block in answer["result"]["content"])
    assert said or not answer["result"]["isError"], where
    assert "Traceback" not in said, where
    assert "Internal error" not in said, where
    return answer["result"]["isError"], said


async def stays_up(client: RawClient) -> None:
    assert (await client.http.get("/health")).status_code == 200


async def test_a_value_of_another_type_is_refused_by_name(client: RawClient, tool: Tool) -> None:
    for name, schema in tool.schema["properties"].items():
        for value in ({"a": [{}]}, [{"b": 1}]):
            if takes(schema, "object") or (takes(schema, "array") and isinstance(value, list)):
                continue
            refused, said = await answered(client, tool.name, plausible(tool, **{name: value}))
            assert refused, f"{name}={value}: {said[:300]}"
            assert tool.name in said
            assert name in said
    refused, said = await answered(client, tool.name, plausible(tool, nobody_knows_me=1))
    assert refused
    assert "nobody_knows_me" in said
    for name in tool.schema.get("required", []):
        arguments = plausible(tool)
        del arguments[name]
        refused, said = await answered(client, tool.name, arguments)
        assert refused, f"without {name}: {said[:300]}"
        assert name in said
    await stays_up(client)


WORDS = {
    "empty": "",
    "NUL": "\0",
    "NUL inside": "a\0b",
    "a million characters": HUGE,
    "hundreds of parts": "a/" * 450 + "b",
    "hundreds of parts in words": "a." * 300 + "b::" * 100 + "c",
}


async def test_words_that_can_mean_nothing_are_answered(client: RawClient, tool: Tool, project: Path) -> None:
    for kind, value in WORDS.items():
        if not tool.read_only:
            as_new(project)
            # Of what a session has read before, an edit after `as_new` would be a conflict, and nothing else.
            client.http.headers["x-serena-session"] = f"clumsy-{tool.name}-{kind}"
            await client.call("activate_project", project=str(project))
        for name, schema in tool.schema["properties"].items():
            if takes(schema, "string") and "enum" not in schema:
                refused, said = await answered(client, tool.name, plausible(tool, **{name: value}))
                assert not refused or len(said) < 10_000, f"{name} {kind}: an error of {len(said)} characters"
    await stays_up(client)


async def test_files_that_are_no_good_are_answered(client: RawClient, tool: Tool) -> None:
    for name in PATH_PARAMETERS:
        if name in tool.schema["properties"]:
            for path in ODD_FILES:
                refused, said = await answered(client, tool.name, plausible(tool, **{name: path}))
                if path in ("pipe.py", "zero.py", "nothing.py") and not tool.edits:
                    assert refused, f"{path}: {said[:300]}"
    await stays_up(client)


async def test_a_broken_project_yml_is_told_and_harms_no_call(
    client: RawClient, tool: Tool, broken_project: Path
) -> None:
    project = {} if tool.names_project else {"project": str(broken_project)}
    await answered(client, tool.name, plausible(tool, **project))
    refused, said = await answered(client, "read_file", {"relative_path": "cart.py", "project": str(broken_project)})
    assert not refused, said
    events = (await client.http.get("/api/v1/events", params={"kind": "project.settings"})).json()["events"]
    assert any("project.yml" in event["message"] for event in events)


async def test_json_of_a_thousand_levels_is_refused(client: RawClient, tool: Tool) -> None:
    for name in tool.schema["properties"]:
        arguments = plausible(tool, **{name: "@"})
        request = client.request("tools/call", {"name": tool.name, "arguments": arguments})
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            body = request.content.replace(b'"@"', (opening * 1000 + "1" + closing * 1000).encode())
            headers = {key: value for key, value in request.headers.items() if key != "content-length"}
            with anyio.fail_after(PATIENCE_S):
                response = await client.http.post("/mcp", content=body, headers=headers)
            assert response.status_code < 500, response.text[:300]
            (answer,) = messages_in(response.text)
            assert answer.get("error", {}).get("code", 0) != -32603, response.text[:300]
            assert "error" in answer or answer["result"]["isError"]
    over_api = await client.http.post(f"/api/v1/tools/{tool.name}", content='{"arguments":' * 1000 + "1" + "}" * 1000)
    assert over_api.status_code == 400
    await stays_up(client)


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/tools/find_symbol", "/api/v1/sessions"])
async def test_a_body_of_100_mb_is_refused_before_it_is_read(central: RunningCentral, path: str) -> None:
    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    async with central.raw("handshake") as old, central.raw("modern") as new:
        for client in (old, new):
            with anyio.fail_after(PATIENCE_S):
                refused = await client.http.post(path, content=endless(), headers=client.headers("tools/call", {}))
            assert refused.status_code == 413, refused.text
            assert refused.json()["error"]["kind"] == "too_large"
            await stays_up(client)
