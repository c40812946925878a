"""Rows about large repositories of others: how soon, how completely and within which bounds they are answered.

A real server as a user has it. One session calls a small project every 20 ms and asks for /health, all the time, while
another one opens the giant, asks before anything is indexed, waits until it is, and asks again. Then the server is
killed in the middle of indexing.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil

from benchmarks.bench import Bench, Server
from benchmarks.client import Connection
from benchmarks.django import BUILD
from benchmarks.giant_sources import GIANTS, Giant, material
from benchmarks.others import asked_all_the_time, others_calls
from benchmarks.table import Row, as_markdown, row

SEED = 16
SAMPLE = 2000
"""Definitions of ctags that are asked for one by one."""

MISSING_SHOWN = 15

INDEX_S = 240.0
"""How long an index is waited for: two cores of a quiet machine read the kernel in a minute."""

QUESTIONS_S = 240.0
"""When this has passed no further broad question is asked; how many were, the row says."""

SERVERS_S = 60.0
"""How long language servers may take to say what is known by syntax first."""

SAMPLE_EVERY_S = 1.0
"""Reading a process's PSS holds it up for some milliseconds."""

IN_A_MINUTE = {"find_unused_symbols", "dependency_graph", "check_references"}
"""Tools that have rows of their own."""

_TAG = re.compile(r'^(\S+)\t(.+)\t(\d+);"\t(\w+)$')
_ANONYMOUS = re.compile(r"^(?:__anon|anonFunc)\w+$")


class Tag(NamedTuple):
    """A definition as ctags has it; `line` counts from 1."""

    name: str
    path: str
    line: int
    kind: str


def comparing_giants(names: Sequence[str]) -> Callable[[Bench], Iterator[Row]]:
    """The rows of these giants, or of all: then without measuring those again that were measured at this revision, so
    that an interrupted run is continued. Each giant's table is kept, and printed to stderr row by row."""

    def rows(bench: Bench) -> Iterator[Row]:
        for name in names or GIANTS:
            kept = BUILD / f"giants-{name}.json"
            measured = [] if names else _measured_before(kept)
            if measured:
                print(f"  {name}: as measured before, see {kept}", file=sys.stderr, flush=True)
            else:
                print(f"  {name} …", file=sys.stderr, flush=True)
                for one in _with_load(name, Measured(name).rows(bench)):
                    print(as_markdown([one]).rpartition("\n")[2], file=sys.stderr, flush=True)
                    measured.append(one)
                told = {"revision": _revision(), "rows": [asdict(one) for one in measured]}
                kept.write_text(json.dumps(told, indent=2), encoding="utf-8")
            yield from measured

    return rows


def _measured_before(kept: Path) -> list[Row]:
    """Rows of this very revision."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(kept.read_text(encoding="utf-8"))
        if told["revision"] == _revision():
            return [Row(**one) for one in told["rows"]]
    return []


def _revision() -> str:
    """Of the source code, with what is not committed."""
    asking = ["git", "describe", "--always", "--abbrev=12", "--dirty"]
    done = subprocess.run(asking, cwd=BUILD.parent.parent, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def _with_load(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, and one about the machine meanwhile: the load when each row was done."""
    began, loads = time.perf_counter(), [os.getloadavg()[0]]
    for one in rows:
        loads.append(os.getloadavg()[0])
        yield one
    minutes = _s(began) / 60
    note = (
        f"median of {min(loads):.1f} to {max(loads):.1f}, {os.cpu_count()} cores; {minutes:.1f} minutes; {_revision()}"
    )
    yield Row(f"{name}: load of the machine", "", median(loads), unit="", note=note)


class Measured:
    """One giant, and what is measured on it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._giant: Giant = GIANTS[name]
        self.root, self._version = material(name)
        self._tags = list(_tags(self._giant, self.root))
        self._sample = random.Random(SEED).sample(self._tags, min(SAMPLE, len(self._tags)))
        self._found: list[Tag] = []
        """Of the sample, by a server that was left alone while it indexed."""

    def rows(self, bench: Bench) -> Iterator[Row]:
        home = bench.fresh_home(f"giants-{self._name}")
        _link_servers(home)
        blocked = home / "blocked.jsonl"
        server = Server(home, program=[sys.executable, "-m", "benchmarks.watched", str(blocked)])
        memory = Memory(server)
        try:
            health = Connection(server.port, server.token).request("GET", "/health")
            with (
                others_calls(server) as others,
                asked_all_the_time(server, health, b"{") as healths,
                memory.sampling(),
            ):
                yield from self._cold(server)
                yield others.row(f"{self._name} is opened, asked and indexed")
                yield from self._warm(server)
                yield from self._answers(server)
                yield others.row(f"{self._name} is asked")
                waits = healths.take()
                note = f"of {len(waits):,} in all that time"
                yield self._row("longest wait for /health", "≤ 100 ms", max(waits), note=note)
            yield memory.row(self._name)
        finally:
            server.stop()
        yield self._blocked(blocked)
        yield self._restarted(home)
        yield self._killed(bench)

    def _row(self, what: str, budget: str, value: float, **more: Any) -> Row:
        return Row(f"{self._name}: {what}", budget, value, **more)

    def _cold(self, server: Server) -> Iterator[Row]:
        began = time.perf_counter()
        self._ask(server, "activate_project", project=str(self.root))
        files = self._project(server)["files"]
        yield self._row("activate", "≤ 3 s", _s(began), unit="s", note=f"{self._version}, {files:,} files")
        expected = {tag.path for tag in self._tags if tag.name == self._giant.first}
        asked = time.perf_counter()
        answer, *_ = self._ask(server, "find_symbol", name_path_pattern=self._giant.first, max_answer_chars=10**6)
        seconds = _s(asked)
        lacking = sorted(path for path in expected if path not in answer)
        note = f"{self._giant.first}: {len(expected) - len(lacking)} of ctags' {len(expected)} files"
        yield self._row("first exact find", "≤ 5 s", seconds, unit="s", note=" ".join([note, *lacking]))
        left = self._await_index(server)
        load, _, _ = os.getloadavg()
        note = f"{files / _s(began):.0f} files/s since it was opened; {left} files without symbols; load {load:.0f}"
        yield self._row("indexed", "≤ 60 s", _s(began), unit="s", note=note)

    def _warm(self, server: Server) -> Iterator[Row]:
        client = server.client()
        client.call("activate_project", project=str(self.root))
        sample = self._sample
        missing = [tag for tag in sample if not self._has(server, tag)]
        self._found = [tag for tag in sample if tag not in missing]
        share = 100 * (1 - len(missing) / len(sample))
        for tag in missing:
            print(f"    missing: {tag.kind} {tag.name} {tag.path}:{tag.line}", file=sys.stderr)
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(tag.name for tag in missing[:MISSING_SHOWN]))
        note = f"{len(missing)} of {len(sample):,} missing, of ctags' {len(self._tags):,} functions, types and methods"
        note = f"{note}: {names}" if missing else note
        yield self._row("as complete as ctags", "≥ 99 %", share, unit="%", note=note)
        for what, budget, arguments in (
            ("warm exact find", "≤ 10 ms", {}),
            ("warm find of a part of a name", "≤ 50 ms", {"substring_matching": True}),
        ):
            requests = [
                client.prepare("find_symbol", name_path_pattern=tag.name[:12] if arguments else tag.name, **arguments)
                for tag in sample[:200]
            ]
            taken: list[float] = []
            for request in requests:
                began = time.perf_counter()
                client.send(request)
                taken.append(_s(began) * 1000)
            yield row(f"{self._name}: {what}", f"p95 {budget}", taken)
        client.close()

    def _answers(self, server: Server) -> Iterator[Row]:
        """Of every tool that reads. What takes many questions to a language server ends in time, complete or not."""
        lengths: dict[str, int] = {}
        questions, began = list(self._giant.broad), time.perf_counter()
        for tool, arguments in questions:
            if _s(began) > QUESTIONS_S:
                break
            asked = time.perf_counter()
            answer = self._ask(server, tool, **arguments)
            taken, length = _s(asked), sum(len(block.encode()) for block in answer)
            which = " ".join(map(str, (tool, *arguments.values())))
            lengths[which] = length
            print(f"    {taken:6.1f} s {length:7,} bytes  {which}", file=sys.stderr)
            if tool in IN_A_MINUTE:
                note = next((part for part in answer[1:] if "Out of time" in part), "complete")
                yield self._row(f"{tool} {self._giant.folder}", "≤ 60 s", taken, unit="s", note=note[:200])
        longest = max(lengths, key=lambda which: lengths[which])
        tools = len({which.partition(" ")[0] for which in lengths})
        left = f"; {len(questions) - len(lengths)} were not asked in time" if len(lengths) < len(questions) else ""
        note = f"{longest}; {len(lengths)} broad questions to {tools} tools{left}"
        yield self._row("longest default answer", "≤ 30 KB", lengths[longest] / 1000, unit="KB", note=note)

    def _blocked(self, file: Path) -> Row:
        """The longest time that the event loop's thread was busy in one go; the server wrote what with."""
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        blocks = sorted((json.loads(line) for line in lines), key=lambda block: -block["loop_ms"])
        longest = blocks[0] if blocks else {"loop_ms": 0, "stacks": []}
        stack = next((" < ".join(stack[2:5]) for stack in longest["stacks"] if stack[1] == "LOOP"), "")
        note = f"CPU time of the loop's thread; {len(blocks)} times above 30 ms of wall time; {stack}"
        return self._row("longest block of the event loop", "≤ 100 ms", longest["loop_ms"], note=note)

    def _restarted(self, home: Path) -> Row:
        (home / "server.json").unlink(missing_ok=True)
        server = Server(home)
        try:
            server.get("/health")
            began = time.perf_counter()
            answer, *_ = self._ask(server, "find_symbol", name_path_pattern=self._giant.first, max_answer_chars=10**6)
            seconds, indexed = _s(began), self._project(server)["indexed"]
        finally:
            server.stop()
        note = f"opened and found in {answer.count('relative_path')} places; {indexed:,} files from the cache"
        return self._row("first find after a restart", "≤ 2 s", seconds, unit="s", note=note)

    def _killed(self, bench: Bench) -> Row:
        home = bench.fresh_home(f"giants-{self._name}")
        server = Server(home)
        try:
            self._ask(server, "activate_project", project=str(self.root))
            self._await_index(server, until=0.5)
        finally:
            known = self._project(server)["indexed"]
            os.kill(server.tree[0].pid, signal.SIGKILL)
            server.stop()
        (home / "server.json").unlink(missing_ok=True)
        server = Server(home)
        try:
            self._ask(server, "activate_project", project=str(self.root))
            again = self._project(server)["indexed"]
            self._await_index(server)
            asked = self._found[: SAMPLE // 5]
            lost = [tag for tag in asked if not self._has(server, tag)]
            lost_at_first, deadline = len(lost), time.monotonic() + SERVERS_S
            while lost and time.monotonic() < deadline:  # what is read by syntax at first, servers say later
                time.sleep(1)
                lost = [tag for tag in lost if not self._has(server, tag)]
        finally:
            server.stop()
        for tag in lost:
            print(f"    lost: {tag.kind} {tag.name} {tag.path}:{tag.line}", file=sys.stderr)
        note = (
            f"{again:,} of {known:,} files known at once; {len(lost)} of {len(asked)} definitions lost that were found "
            f"before ({lost_at_first} until servers had read what came by syntax)"
        )
        share = 100 * again / max(known, 1)
        return self._row("taken over after kill -9 while it is indexed", "", share, unit="%", note=note)

    def _has(self, server: Server, tag: Tag) -> bool:
        """Whether a definition of ctags is found in its file."""
        name = tag.name.rpartition("::")[2]
        answer = self._ask(server, "find_symbol", name_path_pattern=name, relative_path=tag.path)[0]
        try:
            found = json.loads(answer)
        except ValueError:
            return True  # too many for an answer
        return isinstance(found, list) and bool(found)  # an error is an object

    def _ask(self, server: Server, tool: str, **arguments: Any) -> list[str]:
        """The answer and its notes; an error stands as its text."""
        if tool != "activate_project":
            arguments["project"] = str(self.root)
        answer = server.post(f"/api/v1/tools/{tool}", {"arguments": arguments})
        blocks: list[str] | None = answer.get("blocks")
        return blocks or [json.dumps(answer)]

    def _project(self, server: Server) -> dict[str, Any]:
        projects = server.get("/api/v1/projects?open=true")["projects"]
        (found,) = [project for project in projects if project["root"] == str(self.root)]
        return found

    def _await_index(self, server: Server, until: float = 1.0) -> int:
        """Until this part of all files is known, nothing has happened for 20 s, or the time is up; how many are not."""
        deadline = time.monotonic() + INDEX_S
        before, moved_at = -1, time.monotonic()
        while True:
            project = self._project(server)
            indexed, pending = project["indexed"], project["pending"]
            if not pending or indexed >= until * (indexed + pending):
                return pending
            if indexed != before:
                before, moved_at = indexed, time.monotonic()
            if time.monotonic() - moved_at > 20 or time.monotonic() > deadline:
                return pending
            time.sleep(0.25)


def _link_servers(home: Path) -> None:
    """The language servers that `make servers` has got, one by one: what a server installs stays in its own home."""
    (home / "servers").mkdir(exist_ok=True)
    for installed in (BUILD.parent / "servers-home" / "servers").glob("*"):
        with suppress(FileExistsError):
            (home / "servers" / installed.name).symlink_to(installed.resolve())


class Memory:
    """PSS of a server with its workers, and of the language servers it started, sampled."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._peak = self._peak_servers = self._last = 0.0

    @contextmanager
    def sampling(self) -> Generator[None]:
        stop = threading.Event()

        def sample() -> None:
            while not stop.wait(SAMPLE_EVERY_S):
                self._sample()

        sampling = threading.Thread(target=sample)
        sampling.start()
        try:
            yield
        finally:
            stop.set()
            sampling.join()
            self._sample()

    def _sample(self) -> None:
        own = of_servers = 0.0
        for process in self._server.tree:
            with suppress(psutil.Error):
                pss = process.memory_full_info().pss / 1e6
                if "serena_central" in " ".join(process.cmdline()) or process.pid == self._server.tree[0].pid:
                    own += pss
                else:
                    of_servers += pss
        self._last = own
        self._peak, self._peak_servers = max(self._peak, own), max(self._peak_servers, of_servers)

    def row(self, name: str) -> Row:
        note = f"the most, workers included; {self._last:.0f} at the end; language servers {self._peak_servers:.0f}"
        return Row(f"{name}: PSS of the server", "≤ 400 MB", self._peak, unit="MB", note=note)


def _tags(giant: Giant, root: Path) -> Iterator[Tag]:
    """What ctags says that is defined. Raises CalledProcessError."""
    kept = BUILD / f"{root.name}.tags"
    if not kept.exists():
        made = kept.with_suffix(".new")
        options = ["--options=NONE", "--sort=no", "--fields=K", "--excmd=number", "--recurse", "--exclude=.git"]
        subprocess.run(["ctags", *options, *giant.ctags, "-f", str(made), "."], cwd=root, check=True)
        made.rename(kept)
    with kept.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = _TAG.match(line.rstrip("\n"))
            if match is not None and not _ANONYMOUS.match(match[1]):
                yield Tag(match[1], match[2].removeprefix("./"), int(match[3]), match[4])


def _s(began: float) -> float:
    return time.perf_counter() - began
