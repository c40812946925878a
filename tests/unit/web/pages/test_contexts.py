"""What templates get, exactly: contexts of the pages of sessions, made from real parts."""

import time
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import ANY

import anyio
import msgspec
import pytest

from serena_central.app import Application
from serena_central.core.errors import SessionNotFound
from serena_central.core.events import Severity
from serena_central.editing.patch import FilePatch
from serena_central.editing.plan import Hunk
from serena_central.pool.key import ServerKey
from serena_central.pool.snapshot import BreakerSnapshot, ServerSnapshot
from serena_central.pool.state import RunState
from serena_central.sessions.session import ActiveProject, RunningCall
from serena_central.web.pages import edit, overview, session, sessions
from serena_central.web.pages.listing import Heading, Option, Pager
from serena_central.web.pages.page import Visit
from serena_central.web.pages.references import PageLink, server_page
from tests.support.central import session_of
from tests.support.events import call_finished, project_opened, server_moved

pytestmark = pytest.mark.anyio


def visit(central: Application, path: Mapping[str, str] = {}, **query: str) -> Visit:
    return Visit(central.dashboard.parts, path, query, time.time())


async def test_the_overview_of_an_empty_server(central: Application) -> None:
    assert await overview.sessions(visit(central)) == overview.Sessions(0, [], [])
    budget = central.pool.memory_budget_bytes
    assert await overview.servers(visit(central)) == overview.ServerCards(0, 0, budget, 0.0, [], 0)
    assert await overview.events(visit(central)) == overview.Events([])
    assert await overview.attention(visit(central)) == overview.Attention([], 0)
    load = await overview.load(visit(central))
    assert (load.calls.empty, load.durations.empty) == (True, True)


async def test_sessions_on_the_overview_by_state_and_newest_first(central: Application) -> None:
    one = session_of(central, explicit_id="one", client_version="2", working_folder="/src/app")
    two = session_of(central, explicit_id="two")
    central.sessions.activate(two, ActiveProject("shop", "/src/shop"))
    two.running["c"] = RunningCall("c", "find_symbol", 0.0, anyio.CancelScope())
    one.last_activity, two.last_activity, two.calls = two.last_activity - 3, one.last_activity, 7
    assert await overview.sessions(visit(central)) == overview.Sessions(
        total=2,
        segments=[
            overview.Segment("connected", 1, 0.0, 50.0, "/dashboard/sessions?state=connected"),
            overview.Segment("active", 1, 50.0, 50.0, "/dashboard/sessions?state=active"),
        ],
        newest=[
            overview.Agent(
                id="two",
                client="test",
                project="shop",
                folder="/src/shop",
                state="active",
                doing="find_symbol",
                since=round(two.last_activity),
                calls=7,
                url="/dashboard/sessions/two",
            ),
            overview.Agent(
                id="one",
                client="test 2",
                project="",
                folder="/src/app",
                state="connected",
                doing="",
                since=round(one.last_activity),
                calls=0,
                url="/dashboard/sessions/one",
            ),
        ],
    )


async def test_what_went_wrong_needs_attention_and_conflicts_do(central: Application) -> None:
    bus = central.bus
    session_of(central, explicit_id="s")
    bus.publish(server_moved(message="in_use → expired (crash)", severity=Severity.ERROR))
    for outcome, error in (("error", "SymbolNotFound"), ("error", "EditConflict")):
        about = {"session": "s", "project": "shop", "tool": "rename_symbol"}
        bus.publish(call_finished(severity=Severity.WARNING, outcome=outcome, error=error, **about))
    bus.publish(project_opened())
    assert await overview.attention(visit(central)) == overview.Attention(
        [
            overview.AttentionItem(
                "error",
                "ty in shop: crash",
                "The next call restarts it. Its page shows its history and stderr.",
                "/dashboard/events?kind=server.moved",
                ANY,
            ),
            overview.AttentionItem(
                "warning",
                "An edit in shop was refused (rename_symbol) because its symbol had changed.",
                "Nothing is lost: the agent received the current text. Two agents may be working on the same code.",
                "/dashboard/calls/c-1",
                ANY,
            ),
        ],
        0,
    )
    newest = (await overview.events(visit(central))).newest
    assert [(one.kind, one.severity, one.about) for one in newest if not one.kind.startswith("session.")] == [
        ("project.opened", "info", [PageLink("shop", "")]),
        ("server.moved", "error", [PageLink("ty", ""), PageLink("shop", "")]),
    ]


def test_open_breakers_and_a_failing_store_need_attention() -> None:
    breaker = BreakerSnapshot("open", 5, 2000.0, "it crashed")
    closed = BreakerSnapshot("closed", 0, None, "")
    servers = [_server("ty", breaker, number) for number in (2, 1)] + [_server("gopls", closed, 1)]
    assert overview._of_servers(servers) == [
        overview.AttentionItem(
            "error",
            "ty in shop failed 5 times: it crashed",
            "Restarts are paused. Fix the cause, or close its breaker to retry now.",
            server_page(servers[0].key),
        )
    ]
    assert [one.text for one in overview._of_store("disk full")] == ["disk full"]


async def test_language_servers_that_run_the_largest_first(
    central: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = BreakerSnapshot("closed", 0, None, "")
    found = [_server(f"server{number}", closed, 1, memory_bytes=number << 20) for number in range(50)]
    gone = _server("gone", closed, 1, state=RunState.DISCONNECTED)
    monkeypatch.setattr(central.pool, "snapshot", lambda: [*found, gone])
    central.pool.memory_budget_bytes = 1000 << 20
    shown = await overview.servers(visit(central))
    assert (shown.running, shown.memory_bytes, shown.share, shown.more) == (50, 1225 << 20, 100.0, 38)
    assert shown.largest[0] == overview.ServerCard(
        server_page(found[49].key), "server49", "shop", "/src/shop", "idle", 49 << 20, 4.9
    )


def _server(
    name: str, breaker: BreakerSnapshot, run: int, *, memory_bytes: int = 0, state: RunState = RunState.IDLE
) -> ServerSnapshot:
    facts = {field.name: None for field in msgspec.structs.fields(ServerSnapshot)} | {
        "key": ServerKey(Path("/src/shop"), name, ""),
        "root": Path("/src/shop"),
        "server": name,
        "state": state,
        "run": run,
        "memory_bytes": memory_bytes,
        "calls": 0,
        "holders": (),
        "processes": (),
        "breaker": breaker,
    }
    return ServerSnapshot(**facts)


async def test_the_table_of_sessions(central: Application) -> None:
    one = session_of(central, explicit_id="one", client_version="2", working_folder="/src/app")
    one.calls, one.errors, one.edits = 5, 2, 1
    killed = session_of(central, explicit_id="two")
    central.sessions.terminate("two", "me")
    killed.last_activity = one.last_activity - 10
    table = await sessions.table(visit(central, q="test", sort="-calls", page="9"))
    base = "/dashboard/sessions?q=test&sort="
    assert table == sessions.SessionsTable(
        columns=[
            Heading("sort-client", "Client", "", "none", f"{base}client"),
            Heading("sort-project", "Project", "", "none", f"{base}project"),
            Heading("sort-state", "State", "", "none", f"{base}state"),
            Heading("sort-age", "Age", "", "none", f"{base}age"),
            Heading("sort-activity", "Last activity", "", "none", f"{base}activity"),
            Heading("sort-calls", "Calls", "number", "descending", f"{base}calls"),
            Heading("sort-errors", "Failed", "number", "none", f"{base}-errors"),
            Heading("sort-edits", "Edits", "number", "none", f"{base}-edits"),
        ],
        rows=[
            sessions.SessionRow(
                id="one",
                url="/dashboard/sessions/one",
                client="test",
                version="2",
                user="",
                project="",
                folder="/src/app",
                state="connected",
                created_at=round(one.created_at),
                last_activity=round(one.last_activity),
                calls=5,
                errors=2,
                edits=1,
                running=0,
                can_kill=True,
            ),
            sessions.SessionRow(
                id="two",
                url="/dashboard/sessions/two",
                client="test",
                version="",
                user="",
                project="",
                folder="",
                state="terminated",
                created_at=round(killed.created_at),
                last_activity=round(killed.last_activity),
                calls=0,
                errors=0,
                edits=0,
                running=0,
                can_kill=False,
            ),
        ],
        pager=Pager(1, 2, 2, "", ""),
        total=2,
    )


async def test_of_many_projects_those_are_offered_that_most_sessions_work_in(central: Application) -> None:
    for number in range(2 * sessions.PROJECTS):
        for twin in range(1 + number % 2):
            one = session_of(central, explicit_id=f"s-{number}-{twin}")
            central.sessions.activate(one, ActiveProject(f"p-{number:03}", f"/src/{number}"))
    shown = await sessions.filters(visit(central))
    assert [one.value for one in shown.projects if one.value] == [
        f"p-{number:03}" for number in range(1, 2 * sessions.PROJECTS, 2)
    ]


async def test_the_filters_offer_what_there_is_and_keep_what_was_chosen(central: Application) -> None:
    central.sessions.activate(session_of(central), ActiveProject("shop", "/src/shop"))
    shown = await sessions.filters(visit(central, q="x", project="gone", state="active", sort="age"))
    assert (shown.words, shown.sort) == ("x", "age")
    assert shown.projects == [
        Option("", "any", chosen=False),
        Option("shop", "shop", chosen=False),
        Option("gone", "gone", chosen=True),
    ]
    assert [one.value for one in shown.states if one.chosen] == ["active"]


async def test_the_details_of_a_killed_session_that_windows_share(central: Application) -> None:
    one = session_of(central, explicit_id=None, client_version="3", context="ide", working_folder="/src")
    central.sessions.terminate(one.id, "me")
    assert one.termination
    assert await session.details(visit(central, {"session": one.id})) == session.Details(
        id=one.id,
        client="test 3",
        era="modern",
        identified_by="shared",
        shared=True,
        state="terminated",
        created_at=round(one.created_at),
        last_activity=round(one.last_activity),
        project="",
        project_url="",
        root="",
        folder="/src",
        context="ide",
        modes=[],
        calls=0,
        errors=0,
        edits=0,
        terminated_by="me",
        terminated_at=one.termination.at,
        until=one.termination.until,
        symbols_seen=0,
        memories_seen=0,
        servers=[],
        others=0,
    )


async def test_a_session_that_nobody_knows_has_no_page(central: Application) -> None:
    with pytest.raises(SessionNotFound):
        await session.details(visit(central, {"session": "nobody"}))


async def test_the_log_by_level_newest_first(central: Application) -> None:
    one = session_of(central)
    one.note("fine", at=1.0)
    one.note("bad", "warning", at=2.0)
    shown = await session.log(visit(central, {"session": "s"}, level="warning"))
    assert shown == session.Log(
        [session.Line(2.0, "warning", "bad", "")],
        Pager(1, 1, 1, "", ""),
        [("info", "/dashboard/sessions/s", False), ("warning", "/dashboard/sessions/s?level=warning", True)],
        "",
        "",
        "warning",
    )
    assert [line.text for line in (await session.log(visit(central, {"session": "s"}))).lines] == ["bad", "fine"]


async def test_tools_of_a_session_by_use(central: Application) -> None:
    one = session_of(central)
    for _ in range(4):
        one.count("find_symbol", 2.0, failed=False, at=0.0)
    one.count("list_dir", 5.0, failed=True, at=0.0)
    found = session.ToolUse("find_symbol", 4, 0, 2.0, 2.0, 100.0)
    listed = session.ToolUse("list_dir", 1, 1, 5.0, 5.0, 25.0)
    at = {"session": "s"}
    headings = session.COLUMNS.headings(visit(central), "/sessions/s")
    assert await session.tools(visit(central, at)) == session.Tools(headings, [found, listed], Pager(1, 2, 2, "", ""))
    assert (await session.tools(visit(central, at, sort="-p95"))).used == [listed, found]


async def test_the_last_hour_of_a_session_is_of_its_own_calls(central: Application) -> None:
    one, looking = session_of(central), visit(central, {"session": "s"})
    one.count("find_symbol", 2.0, failed=False, at=looking.now)
    one.count("find_symbol", 4.0, failed=True, at=looking.now)
    minutes = one.minutes.last_hour(looking.now)
    assert [(minute.calls, minute.errors) for minute in minutes[-2:]] == [(0, 0), (2, 1)]
    assert await session.load(looking) == overview.hour(minutes)


def test_a_diff_shows_lines_by_number_and_is_bounded() -> None:
    patch = FilePatch(path="a.py", hunks=[Hunk(4, b"same\nold\n", b"same\nnew\nmore\n")])
    files, left_out = edit._diffs([patch])
    assert left_out == 0
    assert files == [
        edit.FileDiff(
            "a.py",
            "",
            "changed",
            [
                [
                    edit.DiffLine("same", 5, "same"),
                    edit.DiffLine("removed", None, "old"),
                    edit.DiffLine("added", 6, "new"),
                    edit.DiffLine("added", 7, "more"),
                ]
            ],
        )
    ]
    large = FilePatch(path="b.py", created=True, hunks=[Hunk(0, b"", b"x\n" * 5000), Hunk(9000, b"", b"y" * 5000)])
    files, left_out = edit._diffs([large])
    assert sum(len(hunk) for hunk in files[0].hunks) == edit.LINES
    assert left_out == 5001 - edit.LINES
    assert files[0].fate == "created"
