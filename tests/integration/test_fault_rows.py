"""One test for each fault by name: what the caller sees over MCP, and what /api tells of the state afterwards.

The language server is scripted (`tests/support/scripted.py`); all else is the real server.
"""

import dataclasses
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from serena_central.core.errors import references_unknown
from serena_central.projects.navigation.possible_references import Examined, Possible
from serena_central.tools.catalogue import Catalogue
from serena_central.tools.families import CATALOGUE
from tests.support.central import RunningCentral, running_central
from tests.support.child import PATIENCE_S, alive, environment, serving_child
from tests.support.fakes import log_of, logged, methods_of
from tests.support.mcp import RawClient, text_of
from tests.support.scripted import CART, DEFINITION, REFERENCES, SYMBOLS, behave, log_in, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio


OVERVIEW = ("get_symbols_overview", {"relative_path": "cart.py"})
WHO_USES = ("find_referencing_symbols", {"name_path": "Cart/total"})


class Observer:
    """A client with the project `shop`, and what people see of it."""

    def __init__(self, folder: Path, central: RunningCentral, client: RawClient) -> None:
        self.folder = folder
        self.central = central
        self.client = client

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of an answer."""
        result = await self.client.call(tool, **arguments)
        assert not result["isError"], text_of(result)
        return "\n".join(block["text"] for block in result["content"])

    async def refused(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of an error."""
        with anyio.fail_after(60):
            result = await self.client.call(tool, **arguments)
        assert result["isError"], text_of(result)
        return text_of(result)

    async def server(self) -> dict[str, Any]:
        (only,) = (await self.client.http.get("/api/v1/servers")).json()["servers"]
        return only

    async def settled(self, state: str) -> dict[str, Any]:
        """The language server, once it is in that state."""
        with anyio.fail_after(60):
            while (shown := await self.server())["state"] != state:
                await anyio.sleep(0.01)
        return shown

    async def moves(self) -> list[str]:
        """`from → to (reason)` of the language server's moves, oldest first."""
        events = (await self.client.http.get("/api/v1/events", params={"kind": "server.moved"})).json()["events"]
        return [event["message"] for event in reversed(events)]

    async def outcomes(self, tool: str) -> list[str]:
        """How the calls of a tool ended, oldest first."""
        events = (await self.client.http.get("/api/v1/events", params={"kind": "call.finished"})).json()["events"]
        return [event["data"]["outcome"] for event in reversed(events) if event["data"]["tool"] == tool]

    def starts(self) -> int:
        """How often the language server's process was started."""
        return sum(entry.get("event") == "started" for entry in log_of(log_in(self.folder)))


@asynccontextmanager
async def observing(
    folder: Path, settings: dict[str, Any], catalogue: Catalogue = CATALOGUE, **script: Any
) -> AsyncGenerator[Observer]:
    scripted_ty(folder)
    root = scripted_project(folder, **script)
    async with (
        running_central(folder, settings, catalogue=catalogue) as central,
        central.raw("modern", x_serena_session="one") as client,
    ):
        await client.call("activate_project", project=str(root))
        yield Observer(folder, central, client)


async def test_start_timeout(tmp_path: Path) -> None:
    async with observing(tmp_path, {"pool.start_timeout_s": 0.3}, never_initialize=True) as seen:
        assert "ty did not finish its handshake within 0.3 s" in await seen.refused(*WHO_USES)
        shown = await seen.settled("disconnected")
        assert shown["pid"] is None
        assert shown["breaker"]["failures"] >= 1
        assert "start deadline passed" in (await seen.moves())[-1]
        assert await seen.outcomes("find_referencing_symbols") == ["error"]
        by_syntax = await seen.call(*OVERVIEW)
        assert "By syntax only" in by_syntax
        assert "ty did not finish its handshake" in by_syntax
        behave(tmp_path)
        cart = tmp_path / "shop" / "cart.py"
        cart.write_text(cart.read_text() + "\n")  # what failed a moment ago is asked again when it has changed
        assert "Cart" in await seen.call(*OVERVIEW)


async def test_calls_that_wait_for_one_failing_start_are_told_of_their_own_symbols_alone(tmp_path: Path) -> None:
    async with observing(tmp_path, {"pool.start_timeout_s": 2}, never_initialize=True) as seen:
        said: dict[str, str] = {}

        async def ask(name_path: str) -> None:
            said[name_path] = await seen.refused("find_referencing_symbols", {"name_path": name_path})

        async with anyio.create_task_group() as tasks:
            for name_path in ("Cart", "Cart/total"):
                tasks.start_soon(ask, name_path)
        for name_path, text in said.items():
            assert text.startswith(f"The references to {name_path} are not known, ")
            assert text.count("The references to") == 1


async def test_looking_for_places_does_not_lose_what_the_server_failed_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(_self: Possible, _hit: Any) -> Examined:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(Possible, "in_code", endless)
    async with observing(tmp_path, {"pool.start_timeout_s": 0.3, "tool_timeout_s": 5}, never_initialize=True) as seen:
        said = await seen.refused(*WHO_USES)
        assert "There was no time to look for places of its name; search_for_pattern finds them." in said
        assert "ty did not finish its handshake within 0.3 s" in said


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"hang_on": [REFERENCES, DEFINITION]}, " Reason: "),
        ({"errors": {REFERENCES: [-32603] * 9, DEFINITION: [-32603] * 9}}, " The language server ty refused "),
    ],
    ids=["silent", "refusing"],
)
async def test_each_of_several_projects_names_the_places_that_its_server_does_not_tell(
    tmp_path: Path, fault: dict[str, Any], reason: str
) -> None:
    async with observing(tmp_path, {"tool_timeout_s": 10}, **fault) as seen:
        shop, shelf = tmp_path / "shop", scripted_project(tmp_path, "shelf", answers={SYMBOLS: []}, **fault)
        (shop / "cart.py").write_text(CART + "\n\nprint(Cart().total())\n")
        (shelf / "cart.py").unlink()
        (shelf / "use.py").write_text("from cart import Cart\n\n\nprint(Cart().total())\n")
        both = {"name_path": "Cart/total", "project": [str(shop), str(shelf)]}
        answers = json.loads(text_of(await seen.client.call("find_referencing_symbols", **both)))
    for name, place in {"shop": "cart.py:5", "shelf": "use.py:3"}.items():
        assert answers[name]["error"].startswith(references_unknown("Cart/total", [place]) + reason)


@pytest.mark.parametrize(
    ("places", "more", "known"),
    [
        (["a.py:1", "b\n.py:2"], 0, "Its name occurs in code at a.py:1, b\\n.py:2; each place may refer to it."),
        (["a.py:1"], 3, "Its name occurs in code at a.py:1 and 3 more; each place may refer to it."),
        ([], 3, "Its name occurs at 3 further places, which were not examined; each may refer to it."),
        ([], 0, "No other place of its name in code is known."),
    ],
)
def test_what_is_known_without_a_server_is_told_with_what_is_not(places: list[str], more: int, known: str) -> None:
    told = references_unknown("Cart", places, more)
    assert told == f"The references to Cart are not known, which does not mean that it is unused. {known}"


async def test_call_timeout(tmp_path: Path) -> None:
    async with observing(tmp_path, {"tool_timeout_s": 1}, hang_on=[REFERENCES]) as seen:
        await seen.call(*OVERVIEW)
        before = await seen.server()
        said = await seen.refused(*WHO_USES)
        assert "are not known, " in said
        assert "Reason: the language server ty has not answered for 1 s. Call again later" in said
        asked = await logged(log_in(tmp_path), method=REFERENCES)
        assert (await logged(log_in(tmp_path), method="$/cancelRequest"))["params"] == {"id": asked["id"]}
        after = await seen.server()
        assert (after["state"], after["pid"], after["leases"]) == ("idle", before["pid"], 0)
        assert await seen.outcomes("find_referencing_symbols") == ["deadline"]
        assert "Cart" in await seen.call(*OVERVIEW)


async def test_process_crash_is_made_good_for_a_read(tmp_path: Path) -> None:
    crashes = tmp_path / "crashes"
    crashes.write_text("2")
    async with observing(tmp_path, {}, crash_on=[REFERENCES], crash_times=str(crashes)) as seen:
        assert (await seen.call(*WHO_USES)).startswith("{}\n")
        shown = await seen.server()
        assert (shown["state"], shown["restarts"], shown["breaker"]["failures"]) == ("idle", 2, 0)
        assert sum("in_use → expired (crash: exit code -9)" in move for move in await seen.moves()) == 2
        assert await seen.outcomes("find_referencing_symbols") == ["ok"]


async def test_process_crash_that_comes_again_is_told_after_three_retries_with_growing_pauses(tmp_path: Path) -> None:
    async with observing(tmp_path, {}, crash_on=[REFERENCES]) as seen:
        said = await seen.refused(*WHO_USES)
        assert "ty exited unexpectedly (exit code -9). The next call restarts it." in said
        assert [entry for entry in methods_of(log_in(tmp_path)) if entry == REFERENCES] == [REFERENCES] * 4
        shown = await seen.settled("disconnected")
        assert (shown["run"], shown["pid"], shown["leases"], shown["breaker"]["failures"]) == (4, None, 0, 4)
        events = (await seen.client.http.get("/api/v1/events", params={"kind": "server.moved"})).json()["events"]
        moves = [(event["at"], event["data"]) for event in reversed(events)]
        asked = [at for at, move in moves if move["to"] == "connecting"][1:]
        came = [at for at, move in moves if move["to"] == "idle" and move["from"] == "connecting"][1:]
        pauses = [came_at - asked_at for asked_at, came_at in zip(asked, came, strict=True)]
        assert pauses[1] >= 0.5  # the pool's own delays, of which a start takes more and never less
        assert pauses[2] >= 1.0


async def test_crash_loop_opens_the_breaker(tmp_path: Path) -> None:
    async with observing(tmp_path, {"pool.breaker_failures": 3}, crash_on=[REFERENCES]) as seen:
        await seen.refused(*WHO_USES)
        begun = seen.starts()
        for _ in range(5):
            said = await seen.refused(*WHO_USES)
            assert "is not available: it failed 3 times in a row (last: crash: exit code -9)" in said
            assert "the next restart is attempted in" in said
        assert seen.starts() == begun == 3
        breaker = (await seen.server())["breaker"]
        assert (breaker["state"], breaker["failures"]) == ("open", 3)
        assert breaker["opens_until"] is not None
        assert "Cart" in await seen.call(*OVERVIEW)  # what is known needs no server


@pytest.mark.parametrize("garbage", ["json", "shape"])
async def test_unparseable_answer(tmp_path: Path, garbage: str) -> None:
    async with observing(tmp_path, {}, garbage_on={REFERENCES: garbage}) as seen:
        await seen.call(*OVERVIEW)
        before = await seen.server()
        said = await seen.refused(*WHO_USES)
        assert "textDocument/references" in said
        assert "a response that" in said
        after = await seen.server()
        assert (after["state"], after["pid"], after["breaker"]["failures"]) == ("idle", before["pid"], 0)
        assert await seen.outcomes("find_referencing_symbols") == ["error"]


async def test_lsp_error(tmp_path: Path) -> None:
    async with observing(
        tmp_path, {}, errors={REFERENCES: [-32603] * 2}
    ) as seen:  # asked again once it is shown the file
        await seen.call(*OVERVIEW)
        before = await seen.server()
        assert "ty refused textDocument/references: 'as scripted' (-32603)" in await seen.refused(*WHO_USES)
        assert (await seen.call(*WHO_USES)).startswith("{}\n")
        after = await seen.server()
        assert (after["state"], after["pid"], after["restarts"]) == ("idle", before["pid"], 0)
        assert await seen.outcomes("find_referencing_symbols") == ["error", "ok"]


async def test_project_or_module_not_found(tmp_path: Path) -> None:
    async with observing(tmp_path, {}) as seen:
        for named in ("no-such-module", str(tmp_path / "nowhere")):
            said = await seen.refused("find_symbol", {"name_path_pattern": "Cart", "project": named})
            assert "Known projects: 'shop'" in said
        events = (await seen.client.http.get("/api/v1/events", params={"kind": "project.opened"})).json()["events"]
        assert [event["project"] for event in events] == ["shop"]
        roots = {server["root"] for server in (await seen.client.http.get("/api/v1/servers")).json()["servers"]}
        assert roots <= {str(tmp_path / "shop")}


async def test_program_not_found_spawns_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with observing(tmp_path, {}) as seen:
        (tmp_path / "shop" / "cart.py").unlink()
        (tmp_path / "shop" / "go.mod").write_text("module shop\n\ngo 1.21\n")
        (tmp_path / "shop" / "main.go").write_text("package main\n\nfunc Run() {}\n\nfunc main() { Run() } // Run\n")
        said = await seen.refused("find_referencing_symbols", {"name_path": "Run", "relative_path": "main.go"})
        assert "Its name occurs in code at main.go:4; each place may refer to it. " in said
        assert "The language server gopls for go is not installed. To install it: " in said
        shown = [
            one for one in (await seen.client.http.get("/api/v1/servers")).json()["servers"] if one["server"] != "ty"
        ]
        assert all(one["pid"] is None and one["breaker"]["failures"] == 0 for one in shown)
        assert not [child for child in psutil.Process().children(recursive=True) if "gopls" in child.name()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
async def test_signal_ends_serve_with_its_exit_code(tmp_path: Path, number: int, code: int) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    async with serving_child(tmp_path) as child, child.http() as http:
        await child.call("find_symbol", {"name_path_pattern": "Cart", "project": str(root)})
        await http.get("/health")  # its connection stays open
        tree = child.tree()
        assert len(tree) >= 3
        with anyio.fail_after(60):
            assert await child.end(number) == code
    assert not any(alive(pid) for pid in tree)
    assert not child.server_file.exists()
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


async def test_uncaught_exception_in_a_tool(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(*_arguments: Any, **_named: Any) -> str:
        raise ZeroDivisionError("a secret of the inside")

    tool = CATALOGUE.get("list_dir")
    assert tool is not None
    catalogue = CATALOGUE.replacing(dataclasses.replace(tool, function=broken))
    async with observing(tmp_path, {}, catalogue=catalogue) as seen:
        said = await seen.refused("list_dir", {"relative_path": "."})
        assert "Internal error. See the server's log, " in said
        assert "secret" not in said
        over_api = await seen.client.http.post(
            "/api/v1/tools/list_dir", json={"session": "one", "arguments": {"relative_path": "."}}
        )
        assert (over_api.status_code, over_api.json()["error"]["kind"]) == (500, "internal")
        for text in (said, over_api.json()["error"]["message"]):
            assert text.rpartition("log, ")[2].rstrip(".") in caplog.text
        assert caplog.text.count("ZeroDivisionError: a secret of the inside") == 2
        assert await seen.outcomes("list_dir") == ["error", "error"]
        assert "Cart" in await seen.call(*OVERVIEW)


async def test_uncaught_exception_in_work_that_comes_round_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with observing(tmp_path, {"sessions.sweep_s": 0.05}) as seen:
        failed = anyio.Event()

        def broken() -> None:
            failed.set()
            raise ZeroDivisionError("a bug")

        sessions = seen.central.central.sessions
        with monkeypatch.context() as patch:
            patch.setattr(sessions.policy.__class__, "idle_after_s", property(lambda _policy: broken()))
            with anyio.fail_after(60):
                await failed.wait()
        assert "Cart" in await seen.call(*OVERVIEW)
    assert "sweeping sessions failed; retrying in 0.05 s" in caplog.text


FAILING = """
import anyio
from serena_central.sessions.manager import SessionManager

async def run(self, *, task_status=anyio.TASK_STATUS_IGNORED):
    task_status.started()
    await anyio.sleep(0.2)
    raise ZeroDivisionError("a part that is broken")

SessionManager.run = run
import sys
from serena_central.cli.main import main
sys.argv = ["serena-central", "serve", "--port", "0"]
main()
"""


async def test_uncaught_exception_that_ends_a_part_stops_the_server_with_exit_code_1(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process(
            [sys.executable, "-c", FAILING], check=False, cwd=tmp_path, env=environment(tmp_path)
        )
    assert ended.returncode == 1
    assert b"A part of the server failed, and so the server stops" in ended.stderr
    assert b"a part that is broken" in ended.stderr
    assert not (tmp_path / "home" / "server.json").exists()


async def test_hung_server_of_one_project_delays_no_other(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    hung, other = scripted_project(tmp_path, "hung"), scripted_project(tmp_path, "other")
    async with (
        running_central(tmp_path, {"tool_timeout_s": 4}) as central,
        central.raw("modern", x_serena_session="one") as one,
        central.raw("handshake") as two,
    ):
        for client, root in ((one, hung), (two, other)):
            await client.call("activate_project", project=str(root))
            assert "Cart" in text_of(await client.call(OVERVIEW[0], **OVERVIEW[1]))
        servers = (await one.http.get("/api/v1/servers")).json()["servers"]
        (pid,) = [server["pid"] for server in servers if server["root"] == str(hung)]
        os.kill(pid, signal.SIGSTOP)
        said: list[dict[str, Any]] = []
        answered = 0

        async def ask() -> None:
            said.append(await one.call(WHO_USES[0], **WHO_USES[1]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.fail_after(60):
                while not said:
                    assert json.loads(text_of(await two.call(WHO_USES[0], **WHO_USES[1]))) == {}
                    answered += 1
        assert answered > 3  # within the time that the hung server's caller waited
        assert said[0]["isError"]
        assert re.search(
            r"are not known, .* Reason: the language server ty has not answered for \d s", text_of(said[0])
        )


async def test_references_that_a_silent_server_leaves_open_are_an_error_that_names_the_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.pool.run.PROGRESS_S", 0.2)
    monkeypatch.setattr("serena_central.pool.run.FURTHER_S", 0.2)
    async with observing(tmp_path, {"tool_timeout_s": 8}, hang_on=[REFERENCES, DEFINITION]) as seen:
        with (tmp_path / "shop/cart.py").open("a") as file:
            file.write("\n\nx = Cart().total()  # total\n")
        await seen.call(*OVERVIEW)
        refused = await seen.refused(*WHO_USES)
        assert "the language server ty has not answered for" in refused
        assert "does not mean that it is unused. Its name occurs in code at cart.py:5; each place may refer" in refused
        again = await seen.refused(*WHO_USES)
        assert "and left an earlier call without an answer" in again
        assert "cart.py:5" in again
