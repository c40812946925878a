"""`make soak ARGS='--kills 10'`: sessions edit and ask; the server is killed, language servers are stopped or killed.

The run is cut into one stretch for each kill. In each, the language servers of one project are killed or stopped; the
other projects must not notice. Every session inserts functions that use a class, and asks who uses it: an answer names
all functions whose insertion was answered before, or carries a note. In the end each of them stands in its file once.
"""

import ast
import random
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil

from tests.support.child import Child, serving_child
from tests.support.mcp import RawClient

FILES = 12
ANSWER_TIMEOUT_S = 90
FAULT_EVERY_S = 4.0
WHOLE_CHARS = 1_000_000
"""An answer is compared with all that was inserted: it must not come in pages."""
WARM_UP_S = 5.0
"""After a start nothing counts as delayed: all language servers start at the same time."""

DELAYED_S = 3.0
"""No edit takes so long on a quiet machine, unless it waits for a language server that hangs."""


@dataclass
class Site:
    """One project. `inserted`: for each class the functions that must use it; `maybe`: those with no answer yet."""

    root: Path
    inserted: list[set[str]] = field(default_factory=lambda: [set() for _ in range(FILES)])
    maybe: set[str] = field(default_factory=set)
    disturbed: bool = False

    def create(self) -> None:
        self.root.mkdir()
        for number in range(FILES):
            (self.root / f"base{number}.py").write_text(f"class Base{number}:\n    pass\n")
            (self.root / f"uses{number}.py").write_text(
                f"from base{number} import Base{number}\n\n\ndef first() -> Base{number}:\n    return Base{number}()\n"
            )


@dataclass
class Outcome:
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """Answers that lack references without a note, files that lost or doubled an edit, delays by other projects."""
    insert_s: list[float] = field(default_factory=list)
    """Of edits in projects whose language servers were let alone."""


class Agent:
    """One session: inserts, and asks for references, until the server is gone or the stretch ends."""

    def __init__(self, http: httpx.AsyncClient, site: Site, number: int, stretch: int, outcome: Outcome) -> None:
        self._client = RawClient(http, "modern")
        self._site = site
        self._number = number
        self._stretch = stretch
        self._outcome = outcome
        self._chance = random.Random(f"{stretch} {number}")

    async def work(self, until: float) -> None:
        calm_from = time.monotonic() + WARM_UP_S
        await self._client.open()
        await self._client.call("activate_project", project=str(self._site.root))
        for turn in range(1_000_000):
            if time.monotonic() > until:
                return
            part = self._chance.randrange(FILES)
            if self._chance.random() < 0.5:
                await self._insert(part, f"f{self._stretch}_{self._number}_{turn}", calm_from)
            else:
                await self._look(part)
            await anyio.sleep(self._chance.random() * 0.4)

    async def _insert(self, part: int, name: str, calm_from: float) -> None:
        body = f"def {name}() -> Base{part}:\n    return Base{part}()\n"
        self._site.maybe.add(name)
        began = time.monotonic()
        result = await self._call("insert_after_symbol", name_path="first", relative_path=f"uses{part}.py", body=body)
        took = time.monotonic() - began
        self._site.maybe.discard(name)
        if result is None:
            return
        self._site.inserted[part].add(name)
        if not self._site.disturbed and began > calm_from:
            self._outcome.insert_s.append(took)
            if took > DELAYED_S:
                self._outcome.faults.append(f"DELAYED: {took:.1f} s for an insertion in {self._site.root.name}")

    async def _look(self, part: int) -> None:
        expected = {"first", *self._site.inserted[part]}
        result = await self._call(
            "find_referencing_symbols",
            name_path=f"Base{part}",
            relative_path=f"base{part}.py",
            max_answer_chars=WHOLE_CHARS,
        )
        if result is None:
            return
        answer, *notes = [block["text"] for block in result["content"]]
        if "cursor=" in answer:
            self._outcome.faults.append(f"NOT WHOLE: an answer of {len(answer)} characters is continued")
            return
        missing = expected - set(re.findall(r'"name_path":\s*"(\w+)"', answer))
        if missing and notes:
            self._outcome.counts["incomplete, with a note"] += 1
        elif missing:
            some = ", ".join(sorted(missing)[:3])
            where = f"{self._site.root.name}/Base{part}, stretch {self._stretch}"
            self._outcome.faults.append(f"INCOMPLETE: {where}: {len(missing)} of {len(expected)} missing: {some}")

    async def _call(self, tool: str, **arguments: Any) -> dict[str, Any] | None:
        result = await self._client.call(tool, **arguments)
        if result.get("isError"):
            said = re.sub(r"\W*\d+\W*|/\S+", "…", result["content"][0]["text"])[:100]
            self._outcome.counts[f"{tool} refused: {said}"] += 1
            return None
        self._outcome.counts[f"{tool} answered"] += 1
        return result


async def _run_agent(child: Child, site: Site, number: int, stretch: int, outcome: Outcome, until: float) -> None:
    token = (child.folder / "home" / "token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", "x-serena-session": f"soak-{number}"}
    try:
        async with httpx.AsyncClient(base_url=child.url, headers=headers, timeout=ANSWER_TIMEOUT_S) as http:
            await Agent(http, site, number, stretch, outcome).work(until)
    except httpx.TransportError as error:
        outcome.counts[f"unanswered: {type(error).__name__}"] += 1


def _servers_of(child: Child, site: Site) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for one in psutil.Process(child.process.pid).children(recursive=True):
        try:
            if one.name() == "ty" and Path(one.cwd()) == site.root:
                found.append(one)
        except psutil.Error:
            continue
    return found


async def _disturb(child: Child, site: Site, chance: random.Random, outcome: Outcome, until: float) -> None:
    """Stops a language server as soon as it is there, then stops or kills whatever takes its place."""
    pause_s = 0.05
    while time.monotonic() < until:
        for victim in _servers_of(child, site):
            try:
                if victim.status() != psutil.STATUS_STOPPED:
                    victim.send_signal(chance.choice([signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL]))
                    outcome.counts["language servers stopped or killed"] += 1
                    pause_s = FAULT_EVERY_S
            except psutil.Error:
                continue
        await anyio.sleep(pause_s)


async def soak_with_kills(seconds: float, sessions: int, kills: int, projects: int) -> bool:
    """Whether nothing was lost, doubled, incomplete without a note, or delayed by another project."""
    with tempfile.TemporaryDirectory() as folder:
        return await _soak_in(Path(folder), seconds, sessions, kills, projects)


async def _soak_in(folder: Path, seconds: float, sessions: int, kills: int, projects: int) -> bool:
    sites = [Site(folder / f"project{number}") for number in range(projects)]
    for site in sites:
        site.create()
    outcome, chance = Outcome(), random.Random(0)
    everybody: set[int] = set()
    for stretch in range(kills + 1):
        for number, site in enumerate(sites):
            site.disturbed = number == stretch % len(sites)
        async with serving_child(folder) as child:
            until = time.monotonic() + seconds / (kills + 1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_disturb, child, sites[stretch % len(sites)], chance, outcome, until)
                for number in range(sessions):
                    site = sites[number % len(sites)]
                    tasks.start_soon(_run_agent, child, site, number, stretch, outcome, until + 60)
                await anyio.sleep(until - time.monotonic())
                everybody.update(child.tree())
                if stretch < kills:
                    await child.end(signal.SIGKILL)
                tasks.cancel_scope.cancel()
        print(f"stretch {stretch}: {outcome.counts['insert_after_symbol answered']} inserted", flush=True)
    for site in sites:
        _check_files(site, outcome)
    return _report(outcome, [pid for pid in everybody if psutil.pid_exists(pid)])


def _check_files(site: Site, outcome: Outcome) -> None:
    for number, inserted in enumerate(site.inserted):
        tree = ast.parse((site.root / f"uses{number}.py").read_text())
        found = Counter(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
        outcome.faults += [f"LOST: {site.root.name}/{name}" for name in inserted - set(found)]
        outcome.faults += [f"DOUBLED: {site.root.name}/{name}" for name, count in found.items() if count > 1]
        unknown = set(found) - inserted - site.maybe - {"first"}
        outcome.faults += [f"REFUSED AND MADE: {site.root.name}/{name}" for name in unknown]


def _report(outcome: Outcome, left: Sequence[int]) -> bool:
    for what, count in outcome.counts.most_common(20):
        print(f"{count:8} {what}")
    times = sorted(outcome.insert_s) or [0.0]
    print(f"insertions where nothing was disturbed: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
    for line in outcome.faults[:40]:
        print(line)
    print(f"{dict(Counter(line.partition(':')[0] for line in outcome.faults))} faults, {len(left)} processes left")
    return not outcome.faults and not left
