"""`make soak`: many sessions on three projects while language servers are killed and stopped and files change.

Every project holds the same symbol names with bodies of its own, and every body carries a number that an outside writer
raises, so that an answer from another project or from an older text shows itself. Prints a line every ten seconds and
a summary; exits with 1 when an answer was wrong or stale, a call had no answer, a process was left, or the server's
memory did not stay within a tenth of what it was after the warm-up. A run that is too short to tell says so. An answer
that finds nothing, and says that it lacks something, is wrong if calling again does not help.
With `--kills` the sessions edit, too, and the server itself is killed as often: see `kills`.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil

from tests.soak.kills import soak_with_kills
from tests.support.child import Child, serving_child
from tests.support.mcp import RawClient

FILES = 12
ANSWER_TIMEOUT_S = 90
FAULT_EVERY_S = 3.0
SAMPLE_EVERY_S = 10.0
WARM_UP_S = 60.0
"""Until then caches, pools of threads and the allocator's arenas grow to their sizes."""

CALLED_AGAIN = 5
"""How often an agent calls again at the most where nothing was found, and the answer says that it may lack something:
on a slow machine a file that is written more than once a second may change in each of a call's tries."""

FLAT = 0.10
TOOLS = ("find_symbol", "get_symbols_overview", "find_referencing_symbols", "search_for_pattern", "read_file")


@dataclass
class Site:
    """One project: `written` is the number that each file's body is known to carry at least."""

    name: str
    root: Path
    written: list[int] = field(default_factory=lambda: [0] * FILES)

    def path(self, number: int) -> Path:
        return self.root / f"part{number}.py"

    def write(self, number: int, value: int) -> None:
        fresh = self.root / f"part{number}.new"
        fresh.write_text(
            f"class Part{number}:\n    def work(self) -> str:\n        return '{self.name} {value}'\n\n\n"
            f"def use{number}() -> str:\n    return Part{number}().work()\n"
        )
        fresh.replace(self.path(number))  # a reader must never see half of it
        self.written[number] = value


@dataclass
class Tally:
    calls: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    """Bytes, a sample each `SAMPLE_EVERY_S`."""
    faults: int = 0


async def session(child: Child, sites: list[Site], number: int, tally: Tally, until: float) -> None:
    """One agent: random tools on its project, each answer compared with what was on disk before the call."""
    chance = random.Random(number)
    site = sites[number % len(sites)]
    token = (child.folder / "home" / "token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", "x-serena-session": f"soak-{number}"}
    async with httpx.AsyncClient(base_url=child.url, headers=headers, timeout=ANSWER_TIMEOUT_S) as http:
        client = RawClient(http, "modern")
        await client.open()
        await client.call("activate_project", project=str(site.root))
        while time.monotonic() < until:
            part = chance.randrange(FILES)
            tool = chance.choice(TOOLS)
            before = site.written[part]
            began = time.perf_counter()
            result = await client.call(tool, **arguments(tool, part))
            tally.latencies_ms.append((time.perf_counter() - began) * 1000)
            text = "\n".join(block["text"] for block in result["content"])
            for _ in range(CALLED_AGAIN):
                if "\nIncomplete: " not in text or re.search(r"'\w+ \d+'", text):
                    break
                tally.calls["called again, since the answer said that it lacks something"] += 1
                result = await client.call(tool, **arguments(tool, part))
                text = "\n".join(block["text"] for block in result["content"])
            if result.get("isError"):
                tally.calls["error"] += 1
                tally.calls[re.sub(r"\W*\d+\W*|/\S+", "…", text)[:70]] += 1
                continue
            tally.calls["answered"] += 1
            check(tool, text, site, part, before, tally)
            await anyio.sleep(chance.random() * 0.2)


def arguments(tool: str, part: int) -> dict[str, Any]:
    match tool:
        case "find_symbol":
            return {"name_path_pattern": f"Part{part}/work", "include_body": True}
        case "find_referencing_symbols":
            return {"name_path": f"Part{part}", "relative_path": f"part{part}.py"}
        case "search_for_pattern":
            return {"substring_pattern": "return '", "relative_path": f"part{part}.py"}
        case _:
            return {"relative_path": f"part{part}.py"}


def check(tool: str, text: str, site: Site, part: int, before: int, tally: Tally) -> None:
    """Nothing of another project, nothing older than the call, and nothing missing."""
    where = f"{tool} on {site.name}/{part}"
    expected = {"get_symbols_overview": f"Part{part}", "find_referencing_symbols": f'"use{part}"'}
    if tool in expected:
        if expected[tool] not in text:
            tally.wrong.append(f"{where}: {text[:300]}")
        return
    found = re.findall(r"'(\w+) (\d+)'", text)
    if not found:
        tally.wrong.append(f"{where}: nothing found: {text[:300]}")
    for name, value in found:
        if name != site.name:
            tally.wrong.append(f"{where}: an answer from {name}")
        elif int(value) < before:
            tally.wrong.append(f"{where}: {value} is older than {before}")


async def edit(sites: list[Site], until: float) -> None:
    """The outside writer."""
    chance, value = random.Random(0), 0
    while time.monotonic() < until:
        value += 1
        chance.choice(sites).write(chance.randrange(FILES), value)
        await anyio.sleep(0.02)


async def break_things(child: Child, tally: Tally, until: float) -> None:
    """Kills or stops a random language server now and then."""
    chance = random.Random(1)
    while time.monotonic() < until - ANSWER_TIMEOUT_S / 3:
        await anyio.sleep(FAULT_EVERY_S)
        victims = [one for one in psutil.Process(child.process.pid).children(recursive=True) if one.name() == "ty"]
        if not victims:
            continue
        victim = chance.choice(victims)
        try:
            victim.send_signal(chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]))
            tally.faults += 1
        except psutil.NoSuchProcess:
            continue


async def watch(child: Child, tally: Tally, until: float) -> None:
    server = psutil.Process(child.process.pid)
    while time.monotonic() < until:
        await anyio.sleep(min(SAMPLE_EVERY_S, max(0.1, until - time.monotonic())))
        tally.memory.append(server.memory_info().rss)
        answered, errors = tally.calls["answered"], tally.calls["error"]
        print(
            f"{answered} answered, {errors} errors, {tally.faults} faults, {tally.memory[-1] / 1e6:.0f} MB", flush=True
        )


async def soak(seconds: float, sessions: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        sites = [Site(name, Path(folder) / name) for name in ("alpha", "beta", "gamma")]
        for site in sites:
            site.root.mkdir()
            for number in range(FILES):
                site.write(number, 0)
        tally = Tally()
        async with serving_child(Path(folder)) as child:
            until = time.monotonic() + seconds
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(edit, sites, until)
                tasks.start_soon(break_things, child, tally, until)
                tasks.start_soon(watch, child, tally, until)
                for number in range(sessions):
                    tasks.start_soon(session, child, sites, number, tally, until)
            family = psutil.Process(child.process.pid).children(recursive=True)
        left = [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return report(tally, left)


def report(tally: Tally, left: list[psutil.Process]) -> bool:
    ordered = sorted(tally.latencies_ms)
    half, most = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    print(f"latency p50 {half:.1f} ms, p99 {most:.1f} ms, longest {ordered[-1]:.0f} ms")
    for what, count in tally.calls.most_common(12):
        print(f"{count:8} {what}")
    for line in tally.wrong[:20]:
        print(f"WRONG: {line}")
    for process in left:
        print(f"LEFT: {process.pid} {process.name()}")
    print(f"{len(tally.wrong)} wrong or stale answers, {len(left)} processes left")
    return is_flat(tally.memory) and not tally.wrong and not left


def is_flat(memory: list[int]) -> bool:
    after = memory[int(WARM_UP_S / SAMPLE_EVERY_S) :]
    if len(after) < WARM_UP_S / SAMPLE_EVERY_S:
        print(f"memory: {max(memory) / 1e6:.0f} MB at most; too short a run to tell whether it stays flat")
        return True
    share = max(after) / after[0] - 1
    print(f"memory: {after[0] / 1e6:.0f} MB after the warm-up, {max(after) / 1e6:.0f} MB at most: {share:+.0%}")
    return share <= FLAT


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--kills", type=int, default=0, help="of the server itself, while sessions edit")
    parser.add_argument("--projects", type=int, default=3, help="with --kills")
    given = parser.parse_args()
    if given.kills:
        kills = partial(soak_with_kills, given.seconds, given.sessions, given.kills, given.projects)
        sys.exit(0 if anyio.run(kills) else 1)
    sys.exit(0 if anyio.run(soak, given.seconds, given.sessions) else 1)
