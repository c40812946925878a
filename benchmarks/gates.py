"""Rows about gates: what hooks of the settings add to a call, and what a client's own hook waits for."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, cast

from benchmarks.bench import Bench, Server
from benchmarks.settings import typical
from benchmarks.table import Row, percentile, row, timed
from serena_central.claude_config.locations import Locations
from serena_central.config.load import load_server_config
from serena_central.core.events import EventBus
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.projects.root_settings import RootSettings
from serena_central.tools.context import ToolCall
from serena_central.tools.families import CATALOGUE
from serena_central.tools.gating import Gating

CALLS = 200
QUICK = 5000
GATES = 40

COMMIT_GATE = {"matcher": "Bash(git commit:*)", "hooks": [{"type": "command", "command": "make test"}]}
TRUE = {"matcher": "list_dir", "hooks": [{"type": "command", "command": "true"}]}


def gating(bench: Bench) -> Iterator[Row]:
    yield _not_concerned()
    projects = bench.home("gates-projects")
    shutil.rmtree(projects, ignore_errors=True)
    for name, hooks in (("none", []), ("one", [TRUE])):
        (projects / name / ".git").mkdir(parents=True)
        (projects / name / ".claude").mkdir()
        settings = {"hooks": {"PreToolUse": [COMMIT_GATE, *hooks]}}
        (projects / name / ".claude/settings.json").write_text(json.dumps(settings))
    home = bench.fresh_home("gates")
    server = Server(home, SERENA_CENTRAL_TRUSTED_ROOTS=f"{projects}/*", SERENA_CENTRAL_ALLOWED_ROOTS=str(projects))
    try:
        client = server.client()

        def call(name: str) -> None:
            client.call("list_dir", project=str(projects / name), relative_path=".", recursive=False)

        # In turn, so that a busy machine is as busy for both.
        both = [timed(lambda name=name: call(name), 1, warm_up=turn == 0) for turn in range(CALLS) for name in _NAMES]
        taken = list(chain.from_iterable(both))
        without, with_one = taken[::2], taken[1::2]
        added = [one - median(without) for one in with_one]
        note = f"a call without it {median(without):.2f} ms"
        yield Row("gates: added by one hook, `true`", "≤ 8 ms", median(added), percentile(added, 0.95), note=note)
        yield _client_hook(home, projects / "one")
        client.close()
    finally:
        server.stop()


_NAMES = ("none", "one")


def _not_concerned() -> Row:
    """A project with 12 hooks at edits and a tool that reads; of it what a call pays for hooks, not for settings."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = typical(Path(folder))
        locations = Locations("linux", Path(folder), home, {"TOKEN": "x"})
        places = Places(home=home / "central")
        settings = RootSettings(load_server_config({}), places, watch=PathWatch(), locations=locations)
        gate = Gating(settings.trust, EventBus(), places.halted_file)
        tool, found = CATALOGUE.get("find_symbol"), settings.claude.of(root)
        assert tool is not None
        assert found is not None
        assert found.has_hooks
        call = cast("ToolCall", None)  # nothing looks at it

        def ask() -> Any:
            assert gate.gated(call, tool, root, None, found) is None

        taken = [one * 1000 for one in timed(ask, QUICK, warm_up=10)]
    return row("gates: a call with no hook that matches", "≤ 20 µs", taken, unit="µs")


def _client_hook(home: Path, project: Path) -> Row:
    said = {
        "session_id": "bench",
        "cwd": str(project),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }
    program = [sys.executable, "-I", "-m", "serena_central.hook", "gate", "PreToolUse", "--client", "codex"]
    environment = {**os.environ, "SERENA_CENTRAL_HOME": str(home)}

    def ask() -> None:
        subprocess.run(program, input=json.dumps(said), env=environment, capture_output=True, text=True, check=True)

    bare = median(timed(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True), GATES, warm_up=2))
    taken = timed(ask, GATES, warm_up=2)
    return row("gates: `serena-hook gate`, start to answer", "≤ 60 ms", taken, peer="python", base=bare)
