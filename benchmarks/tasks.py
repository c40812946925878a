"""Rows about tasks: what the server adds to them, with a runner that only waits."""

import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.bench import Bench, Server
from benchmarks.table import Row, percentile, row

TOGETHER = 10
ROUNDS = 5
SHORT_S = 0.5
LONG_S = 1.0


def running_tasks(bench: Bench) -> Iterator[Row]:
    home = bench.fresh_home("tasks")
    project = home / "app"
    shutil.rmtree(project, ignore_errors=True)
    (project / ".git").mkdir(parents=True)
    (project / "shop.py").write_text("def total():\n    return 1\n")
    script = home / "scripts.json"
    steps = {"short": SHORT_S, "long": LONG_S}
    script.write_text(
        json.dumps([{"match": name, "steps": [{"wait_s": wait_s}, {"text": "x"}]} for name, wait_s in steps.items()])
    )
    server = Server(
        home,
        SERENA_CENTRAL_AGENTS_RUNNER="scripted",
        SERENA_CENTRAL_AGENTS_SCRIPT_FILE=str(script),
        SERENA_CENTRAL_ALLOWED_ROOTS=str(project),
    )
    try:

        def run(instruction: str, count: int) -> tuple[float, list[dict[str, Any]]]:
            """Seconds until all are over, and the tasks."""
            began = time.perf_counter()
            asked = {"instruction": instruction, "project": str(project)}
            ids = [server.post("/api/v1/tasks", asked)["id"] for _ in range(count)]
            found = [server.get(f"/api/v1/tasks/{one}?wait_s=30") for one in ids]
            taken = time.perf_counter() - began
            assert all(one["state"] == "done" for one in found), found
            return taken, found

        run("short", TOGETHER)  # the project is opened
        over: list[float] = []
        for _ in range(ROUNDS):
            _, found = run("short", TOGETHER)
            over += [(one["ended_at"] - one["created_at"] - SHORT_S) * 1000 for one in found]
        yield Row(
            "tasks: overhead of each of 10 at once", "≤ 50 ms", sorted(over)[len(over) // 2], percentile(over, 0.95)
        )
        yield row("tasks: three of 1 s at once", "< 1500 ms", [run("long", 3)[0] * 1000 for _ in range(ROUNDS)])
    finally:
        server.stop()
