"""Rows about growth: what a call costs with more sessions and more files, as ratios to the first of each curve."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import django
from benchmarks.bench import Bench, Server
from benchmarks.client import Client
from benchmarks.table import Row, row, timed

SESSIONS = (1, 10, 100, 1000)
FILES = (100, 1000, 10_000, 30_000)

FILES_PER_FOLDER = 50
INDEX_S = 900.0


def crowded(bench: Bench) -> Iterator[Row]:
    """Sessions that all have Django as their project and have called once."""
    server = bench.server
    client = bench.client
    asked = {
        "cheapest call": client.prepare("get_current_config"),
        "find_symbol by name": client.prepare("find_symbol", name_path_pattern="ModelAdmin/get_urls"),
    }
    first: dict[str, float] = {}
    others: list[Client] = []
    for wanted in SESSIONS:
        while len(others) < wanted - 1:
            other = server.client("modern")
            other.call("activate_project", project=str(bench.django))
            other.close()
            others.append(other)
        for name, request in asked.items():
            taken = timed(lambda request=request: client.send(request), 300, warm_up=30)
            base = first.setdefault(name, median(taken))
            yield row(f"{name}, {wanted} {'session' if wanted == 1 else 'sessions'}", "", taken, peer="1", base=base)


def grown(bench: Bench) -> Iterator[Row]:
    """Generated projects, each on a server of its own."""
    first: dict[str, float] = {}
    for files in FILES:
        root = generated(files)
        server = Server(bench.fresh_home(f"grown-{files}"))
        try:
            client = server.client()
            started = time.perf_counter()
            client.call("activate_project", project=str(root))
            opened_s = time.perf_counter() - started
            _await_all(server)
            indexed_s = time.perf_counter() - started
            for name, taken in _calls(client, root):
                base = first.setdefault(name, median(taken))
                note = (
                    f"opened in {opened_s:.2f} s, indexed in {indexed_s:.0f} s" if name == "find_symbol by name" else ""
                )
                yield row(f"{name}, {files} files", "", taken, peer=str(FILES[0]), base=base, note=note)
            client.close()
        finally:
            server.stop()


def _calls(client: Client, root: Path) -> Iterator[tuple[str, list[float]]]:
    def asking(tool: str, **arguments: Any) -> Callable[[], bytes]:
        request = client.prepare(tool, **arguments)
        return lambda: client.send(request)

    yield "find_symbol by name", timed(asking("find_symbol", name_path_pattern="Part7/work"), 200, warm_up=20)
    overview = asking("get_symbols_overview", relative_path="folder0/part7.py")
    yield "get_symbols_overview", timed(overview, 200, warm_up=20)
    uses = asking("find_referencing_symbols", name_path="Part7/work", relative_path="folder0/part7.py")
    yield "references in two files", timed(uses, 20, warm_up=2)
    numbers = count()
    file = root / "folder0" / "part7.py"
    before = file.read_text(encoding="utf-8")

    def edit_and_find() -> None:
        name = f"brought_{next(numbers)}"
        file.write_text(f"{before}\n\ndef {name}():\n    pass\n", encoding="utf-8")
        assert name.encode() in client.call("find_symbol", name_path_pattern=name)

    try:
        yield "first find after an edit", timed(edit_and_find, 20, warm_up=2)
    finally:
        file.write_text(before, encoding="utf-8")


def generated(files: int) -> Path:
    """A project of that many Python files, made once; each defines a class of its own and uses its neighbour's."""
    root = django.BUILD / f"generated-{files}"
    if root.exists():
        return root
    fresh = root.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    for number in range(files):
        folder = fresh / f"folder{number // FILES_PER_FOLDER}"
        if number % FILES_PER_FOLDER == 0:
            folder.mkdir(parents=True)
            (folder / "__init__.py").touch()
        neighbour = number - 1 if number % FILES_PER_FOLDER else number
        (folder / f"part{number}.py").write_text(
            f"class Part{number}:\n    size: int = {number}\n\n    def work(self, times: int) -> int:\n"
            f"        return self.size * times\n\n    def rest(self) -> None: ...\n\n\n"
            f"def use{number}() -> int:\n    from {folder.name}.part{neighbour} import Part{neighbour}\n\n"
            f"    return Part{neighbour}().work({number})\n",
            encoding="utf-8",
        )
    subprocess.run(["git", "init", "--quiet", str(fresh)], check=True)
    fresh.rename(root)
    return root


def _await_all(server: Server) -> None:
    deadline = time.monotonic() + INDEX_S
    while time.monotonic() < deadline:
        if all(project["pending"] == 0 for project in server.get("/api/v1/projects?open=true")["projects"]):
            return
        time.sleep(0.2)
    raise TimeoutError("the index was not filled")
