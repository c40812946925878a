"""Rows about settings in Claude Code's format: the first reading of a typical project, and what each call pays."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.bench import Bench
from benchmarks.table import Row, row, timed
from serena_central.claude_config.locations import Locations
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.projects.root_settings import RootSettings

TIMES = 3000

FRESH = 20
"""Processes that read for the first time."""

COLD = """
import sys, time
from pathlib import Path
from serena_central.claude_config.locations import Locations
from serena_central.projects.root_settings import ClaudeSettings
import serena_central.files.text, serena_central.config.load
root, home = map(Path, sys.argv[1:])
started, used = time.perf_counter(), time.process_time()
settings = ClaudeSettings(Locations("linux", home.parent, home, {"TOKEN": "x"}))
assert settings.access(root).reading("secrets/key")
from serena_central.claude_config.sources import servers_of
assert servers_of(settings.of(root), trusted=True).usable()
print((time.perf_counter() - started) * 1000, (time.process_time() - used) * 1000)
"""
"""What the first call of a server pays: the package's import, all tiers, rules compiled, MCP servers of all sources."""


def typical(folder: Path) -> tuple[Path, Path]:
    """A root and a home with settings as people have them: 150 rules, 12 hooks, 8 servers."""
    home, root = folder / "home", folder / "home" / "src" / "app"
    hooks = {
        event: [
            {
                "matcher": "Edit|Write",
                "hooks": [{"type": "command", "command": f"check-{event}-{n}.sh"} for n in (1, 2)],
            }
        ]
        for event in ("PreToolUse", "PostToolUse", "Stop")
    }
    deny = ["Read(./.env)", "Read(./secrets/**)", "Read(**/*.pem)", "Bash(rm -rf:*)", "Edit(vendor/**)"]
    files: dict[Path, Any] = {
        home / ".claude/settings.json": {
            "model": "opus",
            "permissions": {"allow": [f"Bash(tool{n}:*)" for n in range(60)], "deny": deny},
            "hooks": hooks,
            "env": {f"VAR_{n}": "1" for n in range(10)},
        },
        root / ".claude/settings.json": {
            "permissions": {"allow": [f"Edit(src/part{n}/**)" for n in range(30)], "deny": deny},
            "hooks": hooks,
            "enableAllProjectMcpServers": True,
        },
        root / ".claude/settings.local.json": {"permissions": {"allow": [f"Bash(run {n})" for n in range(60)]}},
        root / ".mcp.json": {
            "mcpServers": {
                f"s{n}": {"command": "npx", "args": ["-y", f"s{n}"], "env": {"T": "${TOKEN}"}} for n in range(8)
            }
        },
    }
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2))
    (root / ".git").mkdir()
    return root, home


def reading_settings(_bench: Bench) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root, home = typical(Path(folder))
        program = [sys.executable, "-c", COLD, str(root), str(home)]
        runs = [subprocess.run(program, capture_output=True, text=True, check=True).stdout for _ in range(FRESH)]
        cold, used = zip(*(map(float, run.split()) for run in runs), strict=True)
        note = f"a fresh process each time; processor {median(used):.0f} ms"
        yield row("settings: first reading, import included", "≤ 50 ms", cold, note=note)
        locations = Locations("linux", Path(folder), home, {"TOKEN": "x"})
        yield _per_call("settings: per call, four tiers", root, locations)
        bare = home / "src" / "bare"
        bare.mkdir()
        nobody = Path(folder) / "nobody"
        nobody.mkdir()
        yield _per_call("settings: per call, without any file", bare, Locations("linux", nobody, nobody, {}))


def _per_call(name: str, root: Path, locations: Locations) -> Row:
    """What a call asks: the super-repo around it, the project's stamp, whether the tool is allowed, what is wrong."""
    places = Places(home=locations.home / "central")
    settings = RootSettings(load_server_config({}), places, watch=PathWatch(), locations=locations)

    def one_call() -> None:
        settings.super_repos.at(root)
        settings.stamp(root)
        found = settings.claude.of(root)
        if found is not None:
            found.permissions.tool("find_symbol", "read", ("Read",))
            assert not found.errors

    before = process_time()
    taken = timed(one_call, TIMES, warm_up=10)
    used_us = (process_time() - before) * 1e6 / TIMES
    return row(name, "≤ 0.2 ms", taken, note=f"processor {used_us:.0f} µs")
