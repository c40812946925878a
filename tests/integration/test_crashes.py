"""What is left, and what still works, when processes are killed or told to stop: real children of a real `serve`."""

import json
import os
import signal
import socket
from pathlib import Path

import anyio
import psutil
import pytest

from tests.support.central import running_central
from tests.support.child import Child, run_command, serving_child, until_gone
from tests.support.mcp import text_of

pytestmark = pytest.mark.anyio

FIND = {"name_path_pattern": "Cart/total", "include_body": True}
BODY = "def total(self) -> int:\n        return {}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text("class Cart:\n    " + BODY.format(0) + "\n")
    return root


async def working(child: Child, project: Path) -> list[int]:
    """Makes the child start a language server; pids of everything that runs for it, the guard and ty among them."""
    (found,) = await child.call("find_symbol", {**FIND, "project": str(project)})
    assert found["body"] == BODY.format(0)
    (server,) = await child.servers()
    tree = child.tree()
    assert server["pid"] in tree
    assert len(tree) >= 3
    return tree


async def test_killing_the_server_leaves_no_process_and_the_next_one_starts(child: Child, project: Path) -> None:
    tree = await working(child, project)
    assert await child.end(signal.SIGKILL) == -signal.SIGKILL
    await until_gone(tree)
    assert child.server_file.exists()
    ended = await run_command(child.folder, "status")
    assert ended.code == 3
    assert "serena-central serve" in ended.err
    async with serving_child(child.folder) as after:
        await working(after, project)


async def test_a_crash_in_c_code_leaves_the_stacks_in_the_log(child: Child) -> None:
    assert await child.end(signal.SIGSEGV) == -signal.SIGSEGV
    log = (child.folder / "home" / "logs" / "server.log").read_text()
    assert "Fatal Python error: Segmentation fault" in log
    assert "anyio" in log.partition("Fatal Python error")[2]
    assert "Segmentation fault" in (await run_command(child.folder, "logs")).out


async def test_a_second_server_is_refused_and_ctrl_c_stops_the_first_with_its_process_group(
    child: Child, project: Path
) -> None:
    tree = await working(child, project)
    second = await run_command(child.folder, "serve", "--port", "0")
    assert (second.code, second.out) == (1, "")
    assert child.url in second.err
    assert f"pid {child.process.pid}" in second.err
    assert json.loads(child.server_file.read_text())["pid"] == child.process.pid
    os.killpg(child.process.pid, signal.SIGINT)  # as a terminal does
    with anyio.fail_after(60):
        assert await child.process.wait() == 130
    await until_gone(tree)
    assert "Traceback" not in (child.folder / "serve.log").read_text()


async def test_a_taken_port_is_told_with_the_program_that_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await run_command(tmp_path, "serve", "--port", str(port))
    assert ended.code == 1
    assert f"Port {port} is in use by {psutil.Process().name()} (pid {os.getpid()})" in ended.err
    assert "--port" in ended.err
    assert not (tmp_path / "home" / "server.json").exists()


async def test_reads_answer_right_after_their_language_server_was_killed(tmp_path: Path, project: Path) -> None:
    cart = project / "cart.py"
    async with running_central(tmp_path) as central, central.raw("modern", x_serena_session="one") as client:
        await client.call("activate_project", project=str(project))
        killed: set[int] = set()
        for number in range(3):
            cart.write_text(f"{'#' * number}\nclass Cart:\n    {BODY.format(number)}\n")
            result = await client.call("find_symbol", **FIND)
            assert not result["isError"], text_of(result)
            assert json.loads(text_of(result))[0]["body"] == BODY.format(number)
            (server,) = (await client.http.get("/api/v1/servers")).json()["servers"]
            assert server["pid"] not in killed
            os.kill(server["pid"], signal.SIGKILL)
            killed.add(server["pid"])
            result = await client.call("find_referencing_symbols", name_path="Cart")
            assert not result["isError"], text_of(result)
            assert json.loads(text_of(result)) == {}
        await until_gone([*killed])


async def test_calls_under_way_survive_the_death_of_their_language_server(tmp_path: Path, project: Path) -> None:
    (project / "use.py").write_text("from cart import Cart\n\nprint(Cart().total())\n")
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        await client.call("activate_project", project=str(project))
        await client.call("find_symbol", **FIND)
        (server,) = (await client.http.get("/api/v1/servers")).json()["servers"]
        answers: list[str] = []

        async def ask() -> None:
            result = await client.call("find_referencing_symbols", name_path="Cart/total")
            assert not result["isError"], text_of(result)
            answers.append(text_of(result))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask)
                if number == 10:
                    os.kill(server["pid"], signal.SIGKILL)
    assert len(answers) == 20
    assert set(answers) == {answers[0]}
    assert "print(Cart().total())" in answers[0]
