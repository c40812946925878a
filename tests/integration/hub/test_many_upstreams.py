"""A configuration with more servers than a machine can start at once."""

import json
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from serena_central.core.event_kinds import UpstreamMoved
from serena_central.core.events import Event
from serena_central.hub import hub as hub_module
from serena_central.hub.callers import Caller
from serena_central.hub.hub import KEPT_RUNNING, LEARNED_AT_ONCE
from serena_central.processes.usage import usage_of
from tests.support.central import running_central
from tests.support.mcp import text_of
from tests.support.upstreams import QUICK, SCRIPT, events_in, scripted, settings_of_user

pytestmark = pytest.mark.anyio

SERVERS = KEPT_RUNNING + LEARNED_AT_ONCE


async def test_a_few_are_started_at_a_time_to_learn_their_tools_and_only_some_of_them_stay(
    tmp_path: Path, user: Path
) -> None:
    """Three hundred at once all exceeded the deadline of their start, and no tool was ever listed."""
    settings_of_user(user, {f"s{number}": scripted(version=str(number)) for number in range(SERVERS)})
    states: dict[str, str] = {}
    most: Counter[str] = Counter()

    def moved(event: Event) -> None:
        if isinstance(event, UpstreamMoved):
            states[event.server or ""] = event.to
            for state, count in Counter(states.values()).items():
                most[state] = max(most[state], count)

    async with running_central(tmp_path, QUICK | {"hub.learn_wait_s": 60}) as running, running.raw("modern") as client:
        end_tap = running.central.bus.tap(moved)
        hub = await running.central.upstreams.hub()
        found = await client.call("search_tools", query="echo", max_results=1)
        specs = hub.of(tmp_path).specs.values()
        assert len(specs) == SERVERS
        assert all(hub.catalogs.get(spec.key) is not None for spec in specs), text_of(found)
        assert most["starting"] == LEARNED_AT_ONCE
        with anyio.fail_after(60):
            while Counter(states.values())["ready"] > KEPT_RUNNING:
                await anyio.sleep(0.02)
        end_tap()
        for number in (0, SERVERS - 1):  # whichever was stopped
            assert text_of(await client.call(f"s{number}__echo", text="again")) == "again"


async def test_what_hangs_gives_up_its_turn_and_who_waits_is_not_started_for_a_session_that_has_ended(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "TURN_S", 0.2)
    log, both_log = tmp_path / "log.jsonl", tmp_path / "both.jsonl"
    hang = {f"h{number}": {"command": "sleep", "args": [str(1000 + number)]} for number in range(LEARNED_AT_ONCE)}
    waiting = {"left": scripted(log=str(log)), "both": scripted(log=str(both_log)), "after": scripted()}
    settings_of_user(user, hang | {name: {**one, "sharing": "session"} for name, one in waiting.items()})
    async with running_central(tmp_path, QUICK | {"hub.start_timeout_s": 1000}) as running:
        hub = await running.central.upstreams.hub()
        specs = hub.of(tmp_path).specs
        first, second = (Caller(session=session, root=tmp_path) for session in ("first", "second"))
        await hub.known([specs[name] for name in (*hang, "left", "both")], first, wait_s=0)
        await hub.known([specs["both"], specs["after"]], second, wait_s=0)
        hub.session_ended("first")
        found = await hub.known([specs["both"], specs["after"]], second, wait_s=60)
        assert found.keys() == {"both", "after"}
        assert {one.state for one in hub.upstreams() if one.name in hang} == {"starting"}
        assert events_in(log, "started") == []
        assert len(events_in(both_log, "started")) == 1
        assert (await hub.known([specs["left"]], second, wait_s=60)).keys() == {"left"}


BUSY = """
import os, runpy, sys
while not os.path.exists(sys.argv[3]):
    pass
del sys.argv[0], sys.argv[2]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


async def test_what_needs_the_cpu_for_longer_keeps_its_turn(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that were started meanwhile slowed each other down, until all exceeded the deadline of their start."""
    monkeypatch.setattr(hub_module, "LEARNED_AT_ONCE", 1)
    monkeypatch.setattr(hub_module, "TURN_S", 0.5)
    ready, log = tmp_path / "ready", tmp_path / "log.jsonl"
    busy = {"command": sys.executable, "args": ["-I", "-S", "-c", BUSY, str(SCRIPT), json.dumps({}), str(ready)]}
    settings_of_user(user, {"busy": busy, "next": scripted(log=str(log))})
    async with running_central(tmp_path, QUICK | {"hub.start_timeout_s": 1000}) as running:
        hub = await running.central.upstreams.hub()
        specs = hub.of(tmp_path).specs
        caller = Caller(session="one", root=tmp_path)
        await hub.known([specs["busy"], specs["next"]], caller, wait_s=0)
        with anyio.fail_after(60):
            while True:
                pid = next((one.pid for one in hub.upstreams() if one.name == "busy"), None)
                if pid is not None and usage_of(pid).cpu_s > 2:
                    break
                await anyio.sleep(0.05)
        assert events_in(log, "started") == []
        ready.touch()
        assert (await hub.known([specs["busy"], specs["next"]], caller, wait_s=60)).keys() == {"busy", "next"}
