"""What templates get on the pages of statistics, tools, settings, clients and the server itself, exactly.

Expected values come from where the facts are (the catalogue, the lock file, the disk), never from the pages.
"""

import json
import os
import platform
import re
import sys
import time
import tomllib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from packaging.markers import Marker

from serena_central.app import Application
from serena_central.clients.client import Machine
from serena_central.clients.table import CLIENTS
from serena_central.config.describe import describe
from serena_central.config.settings import LIVE_SETTINGS
from serena_central.core.places import HOME_VARIABLE, Places
from serena_central.store.rows import ToolCallRow
from serena_central.tools.families import CATALOGUE
from serena_central.web.pages import about, connect, settings, statistics, tool, tools
from serena_central.web.pages.page import Visit
from serena_central.web.pages.plot import Series, Timeline, plot
from serena_central.web.pages.references import PageLink
from tests.support.central import running_parts

pytestmark = pytest.mark.anyio

TODAY = time.time() // 86_400 * 86_400
"""In UTC. Old calls are deleted by the server: these must not be old."""

NOW = TODAY + 51_200
DATE = time.strftime("%Y-%m-%d", time.gmtime(TODAY))


@pytest.fixture
async def central(tmp_path: Path) -> AsyncGenerator[Application]:
    given = {"execute_shell": True, "database_url": f"sqlite:///{tmp_path}/secret-name.db"}
    async with running_parts(tmp_path, given) as parts:
        yield parts


def visit(central: Application, path: Mapping[str, str] = {}, **query: str) -> Visit:
    return Visit(central.dashboard.parts, path, query, NOW)


# --- statistics -------------------------------------------------------------------------------------------------------


def calls_per_day(calls: int, errors: int, says: str) -> Any:
    """The plot of thirty days, of which only the last has calls."""
    quiet = [0] * (statistics.DAYS - 1)
    day_s = 86_400
    starts = [TODAY - back * day_s for back in reversed(range(statistics.DAYS))]
    return plot(
        "Calls",
        "per day (UTC)",
        [Series("calls", [*quiet, calls], "bars"), Series("failed", [*quiet, errors], "bars")],
        Timeline(starts[0], TODAY + day_s, starts, day_s),
        show=lambda value: f"{value:g}",
        says_of=lambda _index: says,
    )


async def test_calls_of_the_window_by_tool_and_all_calls_by_the_day(central: Application) -> None:
    nothing = statistics.Totals(0, 0, 0, "", calls_per_day(0, 0, ""))
    assert await statistics.totals(visit(central)) == nothing
    hours_ago = [(0.1, "find_symbol", 10.0), (0.2, "find_symbol", 30.0), (0.3, "read_file", 5.0), (3.0, "old", 1.0)]
    for number, (ago, name, duration_ms) in enumerate(hours_ago):
        central.store.writer.put(
            ToolCallRow(
                id=f"c-{number}",
                at=NOW - ago * 3600,
                session="s",
                tool=name,
                duration_ms=duration_ms,
                outcome="error" if name == "read_file" else "ok",
                answer_chars=100 * (number + 1),
            )
        )
    find = statistics.ToolRow("find_symbol", 2, 100.0, 0, 20.0, 10.0, 30.0, 30.0, 150, 300)
    read = statistics.ToolRow("read_file", 1, 50.0, 1, 5.0, 5.0, 5.0, 5.0, 300, 300)
    old = statistics.ToolRow("old", 1, 50.0, 0, 1.0, 1.0, 1.0, 1.0, 400, 400)
    await central.store.writer.flush()

    async def shown(**query: str) -> tuple[list[statistics.ToolRow], int, int]:
        tools = await statistics.tools(visit(central, **query))
        return tools.rows, tools.calls, tools.errors

    assert await shown() == ([find, read], 3, 1)
    assert await shown(tools="p95") == ([read, find], 3, 1)
    for length in ("day", "week"):
        assert await shown(range=length) == ([find, old, read], 4, 1)
    alone = msgspec.structs.replace(old, share=100.0)
    own = {"since": f"{DATE}T10:00", "until": f"{DATE}T12:00"}
    assert await shown(**own) == ([alone], 1, 0)
    assert await shown(range="day", tool="old") == ([alone], 1, 0)
    assert await shown(range="day", project="nowhere") == ([], 0, 0)
    drawn = await statistics.plots(visit(central, range="day"))
    assert [mark.says for mark in drawn.calls.marks] == ["1 call, 0 failed", "1 call, 1 failed", "2 calls, 0 failed"]
    assert (drawn.calls.since, drawn.calls.until) == (drawn.memory.since, drawn.memory.until)
    assert await statistics.totals(visit(central)) == statistics.Totals(
        calls=4,
        errors=1,
        chars=1000,
        since=DATE,
        by_day=calls_per_day(4, 1, "4 calls, 1 failed"),
    )


# --- tools ------------------------------------------------------------------------------------------------------------


async def test_all_tools_in_the_order_of_the_catalogue(central: Application) -> None:
    shown = await tools.tools(visit(central))
    off = {row.name for row in shown.rows if row.off}
    assert shown == tools.Tools(
        words="",
        sort="",
        columns=tools.COLUMNS.headings(visit(central), "/tools"),
        rows=[
            tools.ToolRow(
                name=one.name,
                url=f"/dashboard/tools/{one.name}",
                title=one.title,
                summary=" ".join(one.description.split("\n\n")[0].split("\n")),
                effect="reads" if one.read_only else "edits" if one.edits else "acts",
                needs=one.needs or "",
                off=one.name in off,
            )
            for one in CATALOGUE
        ],
        total=len(CATALOGUE.names()),
    )
    effects = {row.name: row.effect for row in shown.rows}
    assert (effects["find_symbol"], effects["rename_symbol"], effects["activate_project"]) == ("reads", "edits", "acts")
    assert "execute_shell_command" not in off
    none = await tools.tools(visit(central, q="no such words"))
    assert (none.words, none.rows, none.total) == ("no such words", [], shown.total)


async def test_tools_that_a_setting_holds_back_are_off(tmp_path: Path) -> None:
    async with running_parts(tmp_path, {"excluded_tools": ["read_file"]}) as central:
        (shell,) = (await tools.tools(visit(central, q="execute_shell_command"))).rows
        (read,) = [row for row in (await tools.tools(visit(central, q="read_file"))).rows if row.name == "read_file"]
    assert (shell.needs, shell.off) == ("execute_shell", True)
    assert (read.needs, read.off) == ("", True)


async def test_a_tool_and_its_form(central: Application) -> None:
    at = {"tool": "list_dir"}
    one = CATALOGUE.get("list_dir")
    assert one
    assert await tool.about(visit(central, at)) == tool.About(
        PageLink("Tools", "/dashboard/tools"), "list_dir", one.title, one.description
    )
    given = replace(visit(central, at), form={"arg-relative_path": ["src"], "arg-recursive": ["true"]})
    form = await tool.form(given)
    schema = json.dumps(one.schema, indent=2, ensure_ascii=False)
    assert form == tool.Form("list_dir", True, False, [], form.parameters, 0, schema)
    said: dict[str, dict[str, Any]] = one.schema["properties"]
    kinds = {
        "relative_path": ("string", True, [], "src"),
        "recursive": ("boolean", False, ["true", "false"], "true"),
        "skip_ignored_files": ("boolean", False, ["true", "false"], ""),
        "limit": ("integer", False, [], ""),
        "cursor": ("string", False, [], ""),
        "max_answer_chars": ("integer", False, [], ""),
        "project": ("string", False, [], ""),
        "semantic_context": ("string", False, [], ""),
    }
    assert form.parameters == [
        tool.Parameter(
            name=name,
            field=f"arg-{name}",
            kind=kind,
            required=required,
            default=json.dumps(said[name]["default"]) if "default" in said[name] else "",
            description=said[name].get("description", ""),
            choices=[tool.Choice(choice, choice, choice == words) for choice in choices],
            given=words,
            long=False,
        )
        for name, (kind, required, choices, words) in kinds.items()
    ]


async def test_what_a_trial_gave(central: Application, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text("x = 1\n")
    given = {"arg-relative_path": ["cart.py"], "arg-project": [str(tmp_path / "shop")]}

    async def tried(form: Mapping[str, list[str]]) -> tool.Trial:
        return await tool.trial(replace(visit(central, {"tool": "read_file"}), form=form))

    assert await tried({}) == tool.Trial()
    read = await tried(given)
    assert read.call_url.startswith("/dashboard/calls/c-")
    assert (read.tool, read.called, read.failed, read.blocks) == ("read_file", True, False, ["x = 1\n"])
    failed = await tried(given | {"arg-relative_path": ["../x"]})
    assert (failed.called, failed.failed, failed.question, failed.diff) == (True, True, "", [])
    assert "../x" in failed.blocks[0]


# --- settings and clients ---------------------------------------------------------------------------------------------


async def test_every_setting_with_its_origin_in_its_group(central: Application) -> None:
    expected: dict[str, list[settings.Value]] = {}
    for row in describe(central.dashboard.parts.loaded):
        group = expected.setdefault(".".join(row.key.split(".")[:-1]), [])
        if row.key not in LIVE_SETTINGS:
            own = row.origin != "default"
            group.append(
                settings.Value(key=row.key, value=row.value, origin=row.origin, description=row.description, own=own)
            )
    shown = await settings.settings(visit(central))
    plain = {group.name: [one for one in group.values if one.key not in LIVE_SETTINGS] for group in shown.groups}
    assert plain == expected
    live = {one.key: one for group in shown.groups for one in group.values if one.key in LIVE_SETTINGS}
    assert live.keys() == LIVE_SETTINGS
    assert live["edit_conflicts"].choices == ["refuse", "warn"]
    assert (live["sessions.max_sessions"].text, live["sessions.max_sessions"].in_file) == ("1000", False)
    rows = {one.key: (one.value, one.origin, one.own) for group in shown.groups for one in group.values}
    assert rows["execute_shell"] == ("true", "flag execute_shell", True)
    assert rows["pool.max_calls"] == ("1000", "default", False)
    assert rows["database_url"] == ("(set; hidden)", "flag database_url", True)


async def test_a_card_for_each_client(central: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    program = str(Path(sys.executable).with_name("serena-proxy"))
    machine = Machine(Path.home(), sys.platform, os.environ)
    shown = await connect.connect(visit(central))
    entries = {client.name: card.entry for client, card in zip(CLIENTS.values(), shown.clients, strict=True)}
    assert shown == connect.Connect(
        [
            connect.ClientCard(
                title=one.title,
                command=f"serena-central connect {one.name}",
                file=str(one.user_files(machine)[0]),
                entry=entries[one.name],
                then=one.then,
            )
            for one in CLIENTS.values()
        ]
    )
    for one in CLIENTS.values():
        servers: Any = one.form.read(entries[one.name])
        for key in one.servers:
            servers = servers[key]
        assert list(servers) == ["serena"]
        assert program in json.dumps(servers["serena"])
    assert json.loads(entries["cursor"]) == {"mcpServers": {"serena": {"command": program, "args": []}}}


# --- the server itself ------------------------------------------------------------------------------------------------


async def test_the_servers_health(central: Application) -> None:
    parts = central.dashboard.parts
    await central.store.writer.flush()
    assert await about.health(visit(central)) == about.Health(
        version=metadata.version("serena-central"),
        started_at=parts.started_at,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        home=str(parts.places.home),
        problem="",
        queued=0,
        lost=0,
    )


def test_what_it_takes_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(tmp_path)
    for file, size in (
        (places.database, 10),
        (Path(f"{places.database}-wal"), 5),
        (places.cache / "one.db", 7),
        (places.logs / "server.log", 3),
        (places.logs / "server.log.1", 4),
        (places.servers / "ty" / "0.0.1" / "ty", 9),
        (places.servers / "gopls" / "0.20" / "gopls", 9),
        (places.servers / ".trash" / "1" / "x", 9),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)

    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(about.shutil, "disk_usage", lambda _path: Usage(1234))
    assert about._disk(places) == about.DiskUse(
        places=[
            about.FolderShown("Database", str(places.database), 15),
            about.FolderShown("Symbol indexes", str(places.cache), 7),
            about.FolderShown("Logs", str(places.logs), 7),
        ],
        free_bytes=1234,
        installed=["gopls 0.20", "ty 0.0.1"],
    )


def test_licences_of_all_that_is_shipped_and_of_all_that_is_installed() -> None:
    shown = about.all_licences()
    own, *rest = shown
    vendored = [one for one in rest if one.kind == "part"]
    libraries = [one for one in rest if one.kind == "library"]
    assert own == about.Licence("serena-central", metadata.version("serena-central"), "MIT", "library")
    assert vendored == [
        about.Licence("htmx", "2.0.11", "Zero-Clause BSD", "part"),
        about.Licence("htmx-ext-sse", "2.2.4", "BSD Zero Clause License", "part"),
        about.Licence("idiomorph", "0.8.0", "Zero-Clause BSD", "part"),
    ]
    assert {normalised(one.name): one.version for one in libraries} == {
        name: metadata.version(name) for name in locked()
    }
    assert [one.name.lower() for one in libraries] == sorted(one.name.lower() for one in libraries)
    assert all(one.licence not in ("", "unknown") for one in libraries), libraries


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> set[str]:
    """What the lock file says that we need here, our extras included where they are installed."""
    packages = tomllib.loads((Path(__file__).parents[4] / "uv.lock").read_text())["package"]
    by_name = {package["name"]: package for package in packages}
    installed = {normalised(one.metadata["Name"]) for one in metadata.distributions()}
    todo = [("serena-central", extra) for extra in ("", *by_name["serena-central"]["optional-dependencies"])]
    for name, extra in todo:  # grows meanwhile
        package = by_name[name]
        wanted = package["optional-dependencies"][extra] if extra else package.get("dependencies", [])
        for one in wanted:
            if "marker" not in one or Marker(one["marker"]).evaluate():
                new = [(one["name"], of) for of in ("", *one.get("extra", ()))]
                todo += [each for each in new if each not in todo and each[0] in installed]
    return {name for name, _ in todo} - {"serena-central"}
