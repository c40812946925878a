"""Rows about structure: how many of the product's source files run code for one warm call, from HTTP to its answer.

The server is started by this module with a profiler in all of its threads; a pipe says when a call begins and ends. A
file counts if it runs in the context of the request (its tasks and their threads) or takes the request off the wire
(access/), in each of the measured calls. What runs meanwhile in other tasks, as subscribers of events and readers of
language servers do, is counted apart; other processes are not. `python -m benchmarks files-executed` prints the counts,
`python -m benchmarks.files_executed` lists the files, too.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from benchmarks.bench import Bench, Server
from benchmarks.table import Row

CALLS = 5
WARM_UP = 3

_PRODUCT = f"{os.sep}serena_central{os.sep}"

_SOURCE = """\
class Shelf:
    def __init__(self) -> None:
        self.books: list[str] = []

    def add(self, book: str) -> int:
        self.books.append(book)
        return len(self.books)


def filled(books: list[str]) -> Shelf:
    shelf = Shelf()
    for book in books:
        shelf.add(book)
    return shelf
"""


_in_request: ContextVar[bool] = ContextVar("in_request", default=False)


class Measured(NamedTuple):
    """Files that ran for each call of a tool; and those that ran in other tasks meanwhile."""

    tool: str
    budget: str
    own: set[str]
    beside: set[str]


class Recorder:
    """In the server: which files run code between `begin` and `end`."""

    def __init__(self) -> None:
        self._is_recording = False
        self._own: set[str] = set()
        self._all: set[str] = set()

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self._is_recording and event == "call":
            name = frame.f_code.co_filename
            self._all.add(name)
            if _in_request.get():
                self._own.add(name)

    def obey(self, control: Path, counted: Path) -> None:
        """Takes `begin` and `end` from one pipe, and writes what ran in between to the other."""
        with control.open(encoding="utf-8") as lines, counted.open("w", encoding="utf-8") as answers:
            for line in lines:
                self._is_recording = False
                ran = [_product(self._own), _product(self._all)]
                self._own, self._all = set(), set()
                self._is_recording = line == "begin\n"
                print(json.dumps(ran), file=answers, flush=True)


def _product(files: set[str]) -> list[str]:
    return [name.rpartition(_PRODUCT)[2] for name in files if _PRODUCT in name]


def files_executed(bench: Bench) -> Iterator[Row]:
    for tool, budget, own, beside in measured(bench):
        note = f"and {len(beside)} in other tasks meanwhile"
        yield Row(f"source files executed by one {tool}", budget, len(own), unit="files", note=note)


def measured(bench: Bench) -> Iterator[Measured]:
    home = bench.fresh_home("files-executed")
    project = bench.fresh_home("files-executed-project")
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / "shelves.py").write_text(_SOURCE, encoding="utf-8")
    pipes = [home / "control", home / "counted"]
    for pipe in pipes:
        os.mkfifo(pipe)
    server = Server(home, program=[sys.executable, "-m", "benchmarks.files_executed", *map(str, pipes)])
    try:
        with pipes[0].open("w", encoding="utf-8") as control, pipes[1].open(encoding="utf-8") as counted:

            def say(word: str) -> tuple[set[str], set[str]]:
                print(word, file=control, flush=True)
                own, all_of_them = map(set, json.loads(counted.readline()))
                return own | {name for name in all_of_them if name.startswith("access/")}, all_of_them

            def measure(tool: str, budget: str, changing: Iterator[dict[str, str]]) -> Measured:
                runs: list[tuple[set[str], set[str]]] = []
                for _ in range(WARM_UP + CALLS):
                    request = client.prepare(tool, **next(changing))
                    say("begin")
                    client.send(request)
                    runs.append(say("end"))
                own, whole = (set.intersection(*of_each) for of_each in zip(*runs[WARM_UP:], strict=True))
                return Measured(tool, budget, own, whole - own)

            client = server.client("modern")
            client.call("activate_project", project=str(project))
            client.call("find_symbol", name_path_pattern="Shelf", include_body=True)
            server.await_index()
            yield measure("find_symbol", "< 58", ({"name_path_pattern": "Shelf/add"} for _ in count()))
            body = "def add(self, book: str) -> int:\n        self.books.insert({}, book)\n        return 1"
            where = {"name_path": "Shelf/add", "relative_path": "shelves.py"}
            bodies = ({**where, "body": body.format(number)} for number in count())
            yield measure("replace_symbol_body", "< 96", bodies)
            client.close()
    finally:
        server.stop()
        for folder in (home, project):
            shutil.rmtree(folder, ignore_errors=True)


def _serve() -> None:
    recorder = Recorder()
    control, counted, *arguments = sys.argv[1:]
    threading.Thread(target=recorder.obey, args=(Path(control), Path(counted)), daemon=True).start()
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    load: Callable[[uvicorn.Config], None] = uvicorn.Config.load

    def load_marked(self: uvicorn.Config) -> None:
        load(self)
        app = self.loaded_app

        async def marked(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":  # all tasks of the server descend from the lifespan's
                _in_request.set(True)
            await app(scope, receive, send)

        self.loaded_app = marked

    uvicorn.Config.load = load_marked
    sys.argv = ["serena-central", *arguments]
    from serena_central.cli.main import main as serve  # after its arguments are in place

    serve()


def _list() -> None:
    with Bench() as bench:
        for tool, _, own, beside in measured(bench):
            print(f"{tool}: {len(own)}\n  " + "\n  ".join(sorted(own)))
            print(f"  in other tasks meanwhile: {', '.join(sorted(beside)) or 'none'}")


if __name__ == "__main__":
    _serve() if len(sys.argv) > 1 else _list()
