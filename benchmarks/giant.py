"""A repository of 100,000 source files and 1 GB, and the rows about it. Generated once, kept in build/bench.

Four languages, files of some 10 KB with 24 definitions each, 100 files to a folder; names are spread as in real code:
a few that thousands of files have, and many that one file has. Beside the sources lie as many ignored files.
"""

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.django import BUILD
from benchmarks.table import Row, percentile, row, timed

FILES = 100_000
BYTES_PER_FILE = 10_000
FILES_PER_FOLDER = 100
DEFINITIONS = 24

INDEX_S = 3600.0

_COMMON = [
    f"{verb}_{what}" for verb in ("get", "set", "make", "read", "load") for what in ("name", "size", "all", "one")
]


def _python(name: str, members: list[str], filler: str) -> str:
    methods = "".join(f"    def {m}(self, value):\n        # {filler}\n        return value\n\n" for m in members)
    return f"class {name}:\n{methods}"


def _rust(name: str, members: list[str], filler: str) -> str:
    methods = "".join(
        f"    fn {m}(value: i32) -> i32 {{\n        // {filler}\n        value\n    }}\n" for m in members
    )
    return f"struct {name};\nimpl {name} {{\n{methods}}}\n"


def _go(name: str, members: list[str], filler: str) -> str:
    methods = (f"func (v *{name}) {m}(value int) int {{\n\t// {filler}\n\treturn value\n}}\n" for m in members)
    return f"package p\n\ntype {name} struct{{}}\n\n" + "\n".join(methods)


def _java(name: str, members: list[str], filler: str) -> str:
    methods = "".join(
        f"    int {m}(int value) {{\n        // {filler}\n        return value;\n    }}\n" for m in members
    )
    return f"public class {name} {{\n{methods}}}\n"


LANGUAGES: tuple[tuple[str, Callable[[str, list[str], str], str]], ...] = (
    ("py", _python),
    ("rs", _rust),
    ("go", _go),
    ("java", _java),
)


def generate(root: Path, files: int = FILES, bytes_per_file: int = BYTES_PER_FILE) -> Path:
    """Writes the repository to `root`, which must not exist; a git repository whose `vendored/` is ignored."""
    dice = random.Random(files)
    partial = root.with_name(root.name + ".partial")
    filler = "x" * max(bytes_per_file // DEFINITIONS - 60, 8)
    for number in range(files):
        folder = partial / f"part{number // FILES_PER_FOLDER // 50}" / f"unit{number // FILES_PER_FOLDER}"
        if number % FILES_PER_FOLDER == 0:
            folder.mkdir(parents=True)
        ending, write = LANGUAGES[number % len(LANGUAGES)]
        own = [f"only_{number}_{member}" for member in range(DEFINITIONS - 9)]
        text = write(f"Unit{number}", own + dice.sample(_COMMON, 8), filler)
        (folder / f"Unit{number}.{ending}").write_text(text, encoding="utf-8")
    (partial / "go.mod").write_text("module giant\n", encoding="utf-8")
    (partial / ".gitignore").write_text("/vendored/\nnode_modules/\n", encoding="utf-8")
    for number in range(files // FILES_PER_FOLDER):
        folder = partial / "vendored" / f"unit{number}" / "node_modules"
        folder.mkdir(parents=True)
        (folder / "Ignored.py").write_text("class Ignored: pass\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(partial)], check=True)
    partial.rename(root)
    return root


def growing_giant(bench: Bench) -> Iterator[Row]:
    """The rows. `GIANT_FILES` in the environment makes the repository smaller, to look at one thing quickly."""
    files = int(os.environ.get("GIANT_FILES", FILES))
    root = BUILD / f"giant-{files}"
    if not root.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        generate(root, files)
    size = f"{files:,} files"
    server = Server(bench.fresh_home("giant"))
    try:
        yield from _cold(server, root, files, size)
        yield from _indexed(server, root, files, size)
    finally:
        server.stop()
    server = Server(bench.home("giant"))
    try:
        client = server.client()
        started = time.perf_counter()
        _find(client, root, files // 2)
        taken = (time.perf_counter() - started) * 1000
        yield Row(f"first find after a restart, {size}", "≤ 3 s", taken, note="from the cache")
    finally:
        server.stop()


def _cold(server: Server, root: Path, files: int, size: str) -> Iterator[Row]:
    with _others_calls(server) as waits:
        client = server.client()
        client.call("get_current_config")
        started = time.perf_counter()
        client.call("activate_project", project=str(root))
        opened = (time.perf_counter() - started) * 1000
        started = time.perf_counter()
        for nth in range(1, 4):
            _find(client, root, files * nth // 4 + nth)
        found = (time.perf_counter() - started) * 1000 / 3
    yield Row(f"open, {size}", "", opened)
    yield Row(f"longest call of others meanwhile, {size}", "≤ 100 ms", max(waits), percentile(waits, 0.95))
    yield Row(f"find_symbol before the index is complete, {size}", "≤ 5 s", found, note="mean of 3 names")


def _indexed(server: Server, root: Path, files: int, size: str) -> Iterator[Row]:
    started = time.perf_counter()
    _await_index(server)
    seconds = time.perf_counter() - started
    yield Row(f"indexing rate, {size}", "", files / seconds, unit="files/s", note="Python by ty, the others by syntax")
    client = server.client()
    client.call("activate_project", project=str(root))
    numbers = iter(range(0, files, max(files // 200, 1)))
    taken = timed(lambda: _find(client, root, next(numbers)), 100, warm_up=20)
    yield row(f"find_symbol, {size} indexed", "≤ 15 ms", taken)
    memory = server.tree[0].memory_info().rss / 1e6
    yield Row(f"memory of the server, {size} indexed", "index ≤ 400 MB", memory, unit="MB")


def _await_index(server: Server) -> None:
    """Until all but a few files (go.mod has no symbols) are known. Raises TimeoutError."""
    deadline = time.monotonic() + INDEX_S
    while time.monotonic() < deadline:
        (project,) = server.get("/api/projects?open=true")["projects"]
        if project["pending"] < 5:
            return
        time.sleep(0.5)
    raise TimeoutError("the index was not filled")


def _find(client: Client, root: Path, number: int) -> None:
    answer = client.call("find_symbol", name_path_pattern=f"only_{number}_3", project=str(root))
    assert f"Unit{number}.".encode() in answer, answer[:500]


@contextmanager
def _others_calls(server: Server) -> Generator[list[float]]:
    """Milliseconds that the cheapest call took, asked all the time by somebody who has nothing to do with it."""
    waits: list[float] = []
    stop = threading.Event()

    def ask() -> None:
        client = server.client()
        request = client.prepare("get_current_config")
        while not stop.is_set():
            waits.extend(timed(lambda: client.send(request), 1))
            time.sleep(0.005)
        client.close()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waits
    finally:
        stop.set()
        asking.join()
