"""Rows of answers that are large: what they take, and how long another session waits meanwhile for a find in a project
of its own, which it asks for every 20 ms."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, Server
from benchmarks.django import BUILD
from benchmarks.latency import QUERY
from benchmarks.others import others_calls
from benchmarks.table import Row, row, timed

FILES = 500
USES = 20
"""In each file: 10,000 in all."""

TIMES = 8


def answering_at_length(bench: Bench) -> Iterator[Row]:
    root = _project()
    home = bench.fresh_home("large")
    program = os.environ.get("BENCH_WATCHED", "").split()
    server = Server(home, program=program)
    calls: list[tuple[str, Path, str, dict[str, Any], str]] = [
        (
            "get_symbols_overview of a file of 2,735 lines",
            bench.django,
            "get_symbols_overview",
            {"relative_path": QUERY},
            "≤ 2 ms",
        ),
        (
            "get_symbols_overview of a folder of 87 files",
            bench.django,
            "get_symbols_overview",
            {"relative_path": "django/db/models"},
            "",
        ),
        (
            "find_symbol of a part of a name, all of Django",
            bench.django,
            "find_symbol",
            {"name_path_pattern": "get", "substring_matching": True},
            "",
        ),
        (
            "10,000 references, the first page",
            root,
            "find_referencing_symbols",
            {"name_path": "shared", "relative_path": "lib.py"},
            "",
        ),
        (
            "10,000 references, 5 MB",
            root,
            "find_referencing_symbols",
            {"name_path": "shared", "relative_path": "lib.py", "max_answer_chars": 5_000_000},
            "",
        ),
        (
            "rename in 10,001 places, planned",
            root,
            "rename_symbol",
            {"name_path": "shared", "relative_path": "lib.py", "new_name": "common", "dry_run": True},
            "",
        ),
    ]
    clients = {path: server.client() for path in (bench.django, root)}
    try:
        for path, client in clients.items():
            client.call("activate_project", project=str(path))
            client.call("find_symbol", name_path_pattern="shared")
        server.await_index()
        with others_calls(server) as others:
            for what, path, tool, asked, budget in calls:
                client = clients[path]
                timed(lambda client=client, tool=tool, asked=asked: client.call(tool, **asked), 2)
                others.take()
                taken = timed(lambda client=client, tool=tool, asked=asked: client.call(tool, **asked), TIMES)
                yield row(what, budget, taken)
                yield others.row(what)
    finally:
        for client in clients.values():
            client.close()
        server.stop()


def _project() -> Path:
    """One function, and 500 files that call it twenty times each."""
    root = BUILD / "large"
    if not (root / ".git").exists():
        root.mkdir(parents=True, exist_ok=True)
        # Else ty takes the folder for a part of this repository, and an ignored one.
        (root / "pyproject.toml").write_text('[project]\nname = "large"\nversion = "1"\n')
        (root / "lib.py").write_text("def shared(value):\n    return value\n")
        for number in range(FILES):
            functions = (
                f"def f{number}_{turn}(value):\n    return shared(value) + shared({turn})\n\n\n"
                for turn in range(USES // 2)
            )
            text = "from lib import shared\n\n\n" + "".join(functions)
            (root / f"m{number}.py").write_text(text)
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root
