"""Machines that are not kind: a home copied while it is written, a stopped server, little memory, floods of clients."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import msgspec
import psutil
import pytest

from serena_central.core.places import Places
from serena_central.editing.journal import Entry, Journal, Step
from serena_central.files.text import digest_of
from serena_central.mcp_server.transports import HandshakeTransports
from tests.support.central import RunningCentral, running_central
from tests.support.child import PATIENCE_S, PROGRAM, alive, serving_child
from tests.support.mcp import RawClient, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals and limits")]

CART = "class Cart:\n    def total(self) -> int:\n        return 1\n"
FIND = {"name_path_pattern": "Cart/total"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "cart.py").write_text(CART)
    return root


def copy(home: Path, folder: Path) -> Path:
    """`cp -a`, which meets files that come and go."""
    folder.mkdir()
    subprocess.run(["cp", "-a", str(home), str(folder / "home")], check=False, stderr=subprocess.DEVNULL)
    return folder / "home"


# --- a home that was copied --------------------------------------------------------------------------------------


def cut_off(home: Path, project: Path) -> dict[str, str]:
    """Leaves a journal as a server does that is killed between two renames; what stands in the project then."""
    done, waiting = project / "one.py", project / "two.py"
    fresh, kept = project / ".serena-e-1-1.new", project / ".serena-e-1-0.old"
    for path, text in ((done, "new\n"), (kept, "old\n"), (waiting, "old\n"), (fresh, "new\n")):
        path.write_text(text)
    old, new = digest_of(b"old\n"), digest_of(b"new\n")
    journal = Journal(Places(home).journal)
    journal.open()
    steps = [Step(str(done), old, new, str(project / ".serena-e-1-0.new"), str(kept))]
    steps.append(Step(str(waiting), old, new, str(fresh), None))
    journal.begin(Entry("e-1", steps, msgspec.msgpack.encode({})))
    journal.close()
    return texts(project)


def texts(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in project.iterdir() if path.suffix in {".py", ".new", ".old"}}


async def test_the_server_of_a_copied_home_does_not_mend_the_edits_of_the_original(
    tmp_path: Path, project: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    before = cut_off(home, project)
    copied = copy(home, tmp_path / "elsewhere")
    async with serving_child(tmp_path / "elsewhere") as child:
        found = await child.call("find_symbol", {**FIND, "project": str(project)})
        assert [one["name_path"] for one in found] == ["Cart/total"]
    assert texts(project) == before
    log = (copied / "logs/server.log").read_text()
    assert f"is a copy of {home / 'edits.journal'}" in log
    assert str(project / "two.py") in log
    assert list(copied.glob("edits.journal.copied-*"))
    async with serving_child(tmp_path):  # the original's own server does
        pass
    assert texts(project) == {"cart.py": CART, "one.py": "new\n", "two.py": "new\n"}


async def test_a_home_can_be_copied_while_its_server_works_and_neither_disturbs_the_other(
    tmp_path: Path, project: Path
) -> None:
    async with serving_child(tmp_path) as child:
        await child.call("find_symbol", {**FIND, "project": str(project)})
        (server,) = await child.servers()
        copies: list[Path] = []
        made: list[int] = []

        async def edit() -> None:
            while len(copies) < 5:
                await child.call(
                    "insert_after_symbol",
                    {
                        "project": str(project),
                        "name_path": "Cart",
                        "relative_path": "cart.py",
                        "body": f"\ndef extra_{len(made)}() -> int:\n    return 1\n",
                    },
                )
                made.append(len(made))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            while len(copies) < 5:
                folder = tmp_path / f"copy-{len(copies)}"
                copies.append(await anyio.to_thread.run_sync(copy, tmp_path / "home", folder))
        text = (project / "cart.py").read_text()
        assert [text.count(f"def extra_{number}(") for number in made] == [1] * len(made)
        for copied in copies[:2]:
            with (copied / "edits.journal").open("r+b") as journal:
                journal.truncate(max(0, copied.joinpath("edits.journal").stat().st_size - 3))  # torn at its end
            async with serving_child(copied.parent) as other:
                found = await other.call("find_symbol", {**FIND, "project": str(project)})
                assert [one["name_path"] for one in found] == ["Cart/total"]
            assert "Traceback" not in (copied / "logs/server.log").read_text()
            assert (project / "cart.py").read_text() == text
        assert alive(server["pid"])
        assert [one["pid"] for one in await child.servers()] == [server["pid"]]


async def test_a_database_copied_without_its_log_is_used_or_set_aside_and_never_a_crash(
    tmp_path: Path, project: Path
) -> None:
    async with serving_child(tmp_path) as child:
        await child.call("find_symbol", {**FIND, "project": str(project)})
        home = tmp_path / "home"
        async with child.http() as http:
            assert (await http.get("/api/v1/events")).status_code == 200  # the database is open
        copied = tmp_path / "elsewhere" / "home"
        copied.mkdir(parents=True, mode=0o700)
        data = (home / "serena-central.db").read_bytes()
        (copied / "serena-central.db").write_bytes(data[: len(data) // 2 // 4096 * 4096 + 100])
        shutil.copy2(home / "serena-central.db-wal", copied)
    async with serving_child(tmp_path / "elsewhere") as child:
        await child.call("find_symbol", {**FIND, "project": str(project)})
        async with child.http() as http:
            assert (await http.get("/health")).json()["status"] == "ok"
            with anyio.fail_after(PATIENCE_S):
                while (await http.get("/api/v1/stats")).json()["store"]["problem"]:
                    await anyio.sleep(0.05)
    assert "Traceback" not in (copied / "logs/server.log").read_text()


# --- a server that is stopped for a while ------------------------------------------------------------------------


@pytest.mark.slow
async def test_nobody_is_taken_for_dead_because_the_server_was_stopped(tmp_path: Path, project: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    settings = {
        "SERENA_CENTRAL_SESSIONS_MODERN_DISCONNECT_S": "15",
        "SERENA_CENTRAL_SESSIONS_SWEEP_S": "0.2",
        "SERENA_CENTRAL_SESSIONS_IDLE_AFTER_S": "10",
        "SERENA_CENTRAL_POOL_HEALTH_INTERVAL_S": "0.2",
        "SERENA_CENTRAL_POOL_HEALTH_TIMEOUT_S": "5",
        "SERENA_CENTRAL_POOL_IDLE_CHECK_S": "0.1",
        "SERENA_CENTRAL_TOOL_TIMEOUTS_S": json.dumps({"execute_shell_command": 15}),
        "SERENA_CENTRAL_EXECUTE_SHELL": "true",
        "SERENA_CENTRAL_INCLUDED_OPTIONAL_TOOLS": "execute_shell_command",
    }
    async with serving_child(tmp_path, **settings) as child, child.http() as http:
        client = RawClient(http, "handshake")
        await client.open()
        await client.call("activate_project", project=str(project))
        await client.call("find_symbol", **FIND)
        (server,) = await child.servers()
        answers: list[str] = []

        async def call() -> None:
            answers.append(text_of(await client.call("execute_shell_command", command="sleep 3; echo done")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            with anyio.fail_after(PATIENCE_S):
                while not (await http.get(f"/api/v1/sessions/{client.session_id}")).json()["running"]:
                    await anyio.sleep(0.05)
            child.process.send_signal(signal.SIGSTOP)
            await anyio.sleep(20)  # what is tested is that time passes
            child.process.send_signal(signal.SIGCONT)
        assert "done" in answers[0]
        state = (await http.get(f"/api/v1/sessions/{client.session_id}")).json()["state"]
        assert state == "connected"
        assert [one["pid"] for one in await child.servers()] == [server["pid"]]
        kinds = [event["kind"] for event in (await http.get("/api/v1/events")).json()["events"]]
        assert "session.disconnected" not in kinds
        assert "session.idle" not in kinds
    assert "this process was suspended for" in (tmp_path / "home/logs/server.log").read_text()


# --- little memory, no watches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit_kb", [2_000_000, 1_200_000])
async def test_with_little_address_space_the_server_works_or_says_what_does_not(
    tmp_path: Path, project: Path, limit_kb: int
) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    limited = ["/bin/sh", "-c", f'ulimit -v {limit_kb}; exec "$0" "$@"']
    async with serving_child(tmp_path, program=(*limited, str(PROGRAM))) as child, child.http() as http:
        answer = (
            await http.post("/api/v1/tools/find_symbol", json={"arguments": {**FIND, "project": str(project)}})
        ).json()
        assert "Cart/total" in json.dumps(answer), answer
        assert (await http.get("/health")).json()["status"] == "ok"


async def test_a_call_without_memory_says_so_and_the_others_go_on(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_arguments: object, **_named: object) -> None:
        raise MemoryError

    async with running_central(tmp_path) as central, central.raw("modern", x_serena_session="a") as client:
        await client.call("activate_project", project=str(project))
        monkeypatch.setattr("serena_central.tools.files.search", no_memory, raising=False)
        monkeypatch.setattr("serena_central.projects.project.Project.fresh", no_memory)
        failed = await client.call("search_for_pattern", substring_pattern="Cart")
        assert failed["isError"]
        assert "Out of memory" in text_of(failed)
        monkeypatch.undo()
        assert not (await client.call("search_for_pattern", substring_pattern="Cart"))["isError"]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
async def test_without_watches_answers_are_right_and_say_that_files_are_compared(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    from serena_central.files import inotify

    def refused(*_arguments: object, **_named: object) -> None:
        raise OSError(code, os.strerror(code))

    if code == errno.EMFILE:
        monkeypatch.setattr(inotify, "INotify", refused)
    else:
        monkeypatch.setattr(inotify.INotify, "add_watch", refused)
    async with running_central(tmp_path) as central, central.raw("modern", x_serena_session="a") as client:
        await client.call("activate_project", project=str(project))
        for name in ("first", "second"):
            (project / "cart.py").write_text(f"def {name}() -> int:\n    return 1\n")
            answer = await client.call("find_symbol", name_path_pattern=name)
            assert json.loads(text_of(answer))[0]["name_path"] == name
            assert "inotify" in json.dumps(answer)


# --- a client that begins ever more conversations ----------------------------------------------------------------


def conversations(central: RunningCentral) -> int:
    transports = central.central.endpoint._handshake
    assert isinstance(transports, HandshakeTransports)
    return len(transports._known)


async def test_a_flood_of_initialize_takes_no_room_from_those_who_work(tmp_path: Path) -> None:
    async with (
        running_central(tmp_path, {"sessions.max_sessions": 20}) as central,
        central.raw("handshake") as worker,
        central.raw("handshake") as listener,
        listener.http.stream("GET", "/mcp", headers=listener.headers("", {})) as stream,
        central.http() as http,
    ):
        await worker.call("list_projects")
        assert stream.status_code == 200
        flood: list[RawClient] = []
        for _ in range(100):
            client = RawClient(http, "handshake")
            await client.open()
            flood.append(client)
        kept = {session.id for session in central.central.sessions.sessions()}
        assert len(kept) <= 20
        assert {worker.session_id, listener.session_id} <= kept
        assert conversations(central) <= 22
        assert not (await worker.call("list_projects"))["isError"]
        assert not (await listener.call("list_projects"))["isError"]
        # One that was forgotten goes on where it was: it is taken back by how it began.
        assert flood[0].session_id not in kept
        assert not (await flood[0].call("list_projects"))["isError"]


async def test_where_all_sessions_are_in_use_a_new_one_is_refused_in_words(tmp_path: Path) -> None:
    async with running_central(tmp_path, {"sessions.max_sessions": 2}) as central, central.http() as http:
        for _ in range(2):
            client = RawClient(http, "handshake")
            await client.open()
            await client.call("list_projects")
        refused = await initialize(http)
        assert refused.status_code == 429
        assert "limit of 2 sessions" in refused.json()["error"]["message"]
        assert not (await client.call("list_projects"))["isError"]


async def initialize(http: httpx.AsyncClient) -> httpx.Response:
    said = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "flood", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": said}
    return await http.post("/mcp", json=body, headers={"accept": "application/json, text/event-stream"})


@pytest.mark.slow
async def test_five_thousand_initialize_leave_the_servers_memory_bounded(tmp_path: Path) -> None:
    async with serving_child(tmp_path) as child, child.http() as http:
        process = psutil.Process(child.process.pid)
        sizes: list[int] = []
        for number in range(5001):
            assert (await initialize(http)).status_code == 200
            if number % 1000 == 0:
                sizes.append(process.memory_info().rss)
        assert sizes[5] - sizes[2] < 40_000_000, [size // 1_000_000 for size in sizes]
