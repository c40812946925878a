"""The row of a file that everybody edits: forty sessions insert into one file of 500 lines at once, with the settings
that users have. The floor is the same number of edits by one careful writer, one after the other (`written`)."""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import median

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.edits import written
from benchmarks.table import Row, timed

SESSIONS = 40
EDITS_EACH = 6
FUNCTIONS = 125
"""Of four lines each."""

_numbers = count()


def crowding_a_file(bench: Bench) -> Iterator[Row]:
    home = bench.fresh_home("hot")
    root = bench.fresh_home("hot-project")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)  # else this repository's ignore rules apply
    file = root / "shared.py"
    file.write_text("".join(f"def f{number}(value):\n    return value + {number}\n\n\n" for number in range(FUNCTIONS)))
    server = Server(home)
    clients: list[Client] = []
    try:
        for _ in range(SESSIONS):
            clients.append(server.client())
            clients[-1].call("activate_project", project=str(root))
        for number in range(3):
            _insert(clients[0], number)
        server.await_quiet()
        used = server.processor_ms()
        ends, taken_s = _all_at_once(clients)
        used = (server.processor_ms() - used) / (SESSIONS * EDITS_EACH)
        text = file.read_text()
        lost = [number for number in range(3, next(_numbers)) if text.count(f"def added_{number}()") != 1]
        data = file.read_bytes()
        floor_ms = median(timed(lambda: written(file, data), 40, warm_up=5))
    finally:
        for client in clients:
            client.close()
        server.stop()
    rate = SESSIONS * EDITS_EACH / taken_s
    early = (max(ends) - min(ends)) / taken_s
    note = (
        f"written and synced plainly: {1000 / floor_ms:.0f}/s; CPU {used:.0f} ms an edit; {len(lost)} lost; the first "
        f"session had all its answers after {1 - early:.0%} of the time"
    )
    what = f"{SESSIONS} sessions insert into one file"
    yield Row(what, "≥ 40 /s", rate, unit="/s", peer="the disk's", ratio=rate * floor_ms / 1000, note=note)


def _all_at_once(clients: list[Client]) -> tuple[list[float], float]:
    """When each session was through, and how long all of them took, in seconds."""
    ends = [0.0] * len(clients)

    def work(number: int) -> None:
        for turn in range(EDITS_EACH):
            _insert(clients[number], (number * 7 + turn) % FUNCTIONS)
        ends[number] = time.perf_counter()

    started = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(work, range(len(clients))))  # raises what one of them raised
    return ends, max(ends) - started


def _insert(client: Client, after: int) -> None:
    body = f"def added_{next(_numbers)}():\n    return {after}"
    client.call("insert_after_symbol", name_path=f"f{after}", relative_path="shared.py", body=body)
