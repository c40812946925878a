"""Edits that are sent twice over real connections are made once, across hang-ups, crashes and restarts."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest

from tests.support.central import running_central
from tests.support.child import serving_child
from tests.support.mcp import Era, RawClient, messages_in, text_of

pytestmark = pytest.mark.anyio

SETTINGS = {"edit_diagnostics_s": 0}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()
    path = folder / "mod.py"
    path.write_text("def first():\n    return 1\n")
    return path


def insertion(client: RawClient, file: Path, **headers: str) -> httpx.Request:
    """One request that adds a function; it can be sent again as it is."""
    arguments = {"name_path": "first", "body": "def added():\n    return 2", "project": str(file.parent)}
    request = client.request("tools/call", {"name": "insert_after_symbol", "arguments": arguments})
    request.headers.update(headers)
    return request


def answer_in(response: httpx.Response) -> str:
    return text_of(messages_in(response.text)[-1]["result"])


async def test_the_same_request_of_one_conversation_is_made_once(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path, SETTINGS) as running, running.raw("handshake") as client:
        request = insertion(client, file)
        answers = [answer_in(await client.http.send(request)) for _ in range(2)]
        another = answer_in(await client.http.send(insertion(client, file)))

    assert answers[0] == answers[1] != another
    assert file.read_text().count("def added") == 2


async def test_the_id_of_a_proxy_counts_in_both_eras(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path, SETTINGS) as running:
        for era in ("handshake", "modern"):
            async with running.raw(era, x_serena_session=f"proxy-{era}") as client:
                for _ in range(2):
                    await client.http.send(insertion(client, file, **{"x-serena-call": "c-1"}))

    assert file.read_text().count("def added") == 2


async def test_an_id_of_any_bytes_counts_as_one(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern", x_serena_session="s") as client:
        for key in (b"\xff\xfe", b"\xff\xff", "\u00e9".encode(), b"x" * 5000):
            request = insertion(client, file)
            request.headers = httpx.Headers(
                [*request.headers.raw, (b"x-serena-call", key), (b"x-serena-context", b"\xff")]
            )
            for _ in range(2):
                assert "e-" in answer_in(await client.http.send(request))

    assert file.read_text().count("def added") == 4


async def test_modern_requests_without_a_proxy_are_never_taken_for_repetitions(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern", x_serena_session="s") as client:
        request = insertion(client, file)
        for _ in range(2):
            await client.http.send(request)

    assert file.read_text().count("def added") == 2


async def test_in_a_shared_session_no_call_is_taken_for_a_repetition(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path, SETTINGS) as running, running.raw("modern") as client:
        for _ in range(2):
            await client.http.send(insertion(client, file, **{"x-serena-call": "c-1"}))

    assert file.read_text().count("def added") == 2


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_who_hangs_up_and_asks_again_finds_the_edit_made_once(tmp_path: Path, file: Path, era: Era) -> None:
    async with running_central(tmp_path, SETTINGS) as running, running.raw(era, x_serena_session="proxy") as client:
        for number, pause_s in enumerate((0.0, 0.002, 0.005, 0.01, 0.02)):
            request = insertion(client, file, **{"x-serena-call": f"c-{number}"})
            with anyio.move_on_after(pause_s):
                await client.http.send(request)
            assert "edit" in answer_in(await client.http.send(request))

    assert file.read_text().count("def added") == 5


async def test_who_asks_again_before_the_answer_gets_the_same_one(tmp_path: Path, file: Path) -> None:
    answers: list[str] = []
    async with running_central(tmp_path, SETTINGS) as running, running.raw("handshake") as client:
        request = insertion(client, file)

        async def ask() -> None:
            answers.append(answer_in(await client.http.send(request)))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(ask)

    assert len(answers) == 8
    assert len(set(answers)) == 1
    assert file.read_text().count("def added") == 1


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[tuple[Any, httpx.AsyncClient]]:
    async with serving_child(folder) as child, child.http() as http:
        yield child, http


async def test_an_edit_is_known_after_the_server_was_killed_and_started_again(tmp_path: Path, file: Path) -> None:
    async with served(tmp_path) as (child, http):
        http.headers["x-serena-session"] = "proxy"
        client = RawClient(http, "modern")
        request = insertion(client, file, **{"x-serena-call": "c-1"})
        first = answer_in(await http.send(request))
        await child.end(signal.SIGKILL)
    async with served(tmp_path) as (child, http):
        http.headers["x-serena-session"] = "proxy"
        client = RawClient(http, "modern")
        second = answer_in(await http.send(insertion(client, file, **{"x-serena-call": "c-1"})))

    assert file.read_text().count("def added") == 1
    assert second == first or "already made" in second


async def test_a_language_server_that_dies_makes_no_edit_happen_twice(tmp_path: Path, file: Path) -> None:
    async with running_central(tmp_path) as running, running.raw("handshake") as client:
        await client.http.send(insertion(client, file))
        for number in range(5):
            for process in psutil.Process().children(recursive=True):
                if "ty" in process.name():
                    process.kill()
            answer = answer_in(await client.http.send(insertion(client, file)))
            assert file.read_text().count("def added") == number + 2, answer
