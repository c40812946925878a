"""Rows about every page of the dashboard after a busy week: a million recorded calls and 300 sessions, while agents
call 500 times a second. The pages are those of the route table, and some with a longer range or a filtered table."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from urllib.parse import quote

from benchmarks.bench import Bench, Server
from benchmarks.browser import Browser
from benchmarks.dashboard import calling, calls_made
from benchmarks.django import BUILD
from benchmarks.native_transcripts import Native
from benchmarks.recorded import record_week
from benchmarks.table import Row, percentile, timed
from serena_central.core.places import Places
from serena_central.web.pages.page import BELOW
from serena_central.web.pages.table import PAGES
from tests.support.example_project import TOTAL, example_project, page_queries
from tests.support.upstreams import scripted, settings_of_user

CALLS = int(os.environ.get("BENCH_PAGES_CALLS", "1_000_000"))
CALLS_PER_S = 500
PROJECTS = 40
OPENED = 5
TRANSCRIPTS_BYTES = 20_000_000

BUDGET_MS, BUDGET_KB = 50.0, 50.0

LOOKS = 20
LOOK_EVERY_S = 0.05
SETTLED_S = 2.0
ANALYZED_S = 60.0

RECORDED_AGAIN_S = 3600.0
"""A database that is older than this is made again: its newest calls would be too old."""

MORE = (
    "/sessions?sort=client&page=3",
    "/sessions?q=claude",
    "/statistics?range=day",
    "/statistics?range=week",
    "/statistics?range=week&tool=find_symbol",
    "/statistics?range=week&project=project-0",
    "/events?severity=error",
    "/events?kind=server",
    "/events?kind=server.moved&severity=warning",
    "/edits?session=session-0000",
    "/edits?file=module_1.py",
    "/edits?symbol=Cart/total",
    "/edits?file=nothing",
)
"""Below /dashboard."""


def showing(bench: Bench) -> Iterator[Row]:
    folder = bench.fresh_home("pages")
    roots = [folder / "src" / f"project-{number}" for number in range(PROJECTS)]
    for root in roots:
        example_project(root)
    home = folder / "home"
    (home / "servers").mkdir(parents=True)
    for server in (BUILD.parent / "servers-home" / "servers").iterdir():
        (home / "servers" / server.name).symlink_to(server)
    shutil.copyfile(_recorded(roots), Places(home).database)
    Native(folder / "claude" / "projects").write(TRANSCRIPTS_BYTES)
    settings_of_user(folder / "claude", {"notes": scripted()})
    server = Server(
        home,
        HOME=str(folder),
        CLAUDE_CONFIG_DIR=str(folder / "claude"),
        SERENA_CENTRAL_AUTO_INSTALL="off",
        SERENA_CENTRAL_TRUSTED_ROOTS=str(folder),
    )
    try:
        addresses = _addresses(server, roots)
        yield from _pages(server, addresses)
    finally:
        server.stop()


def _recorded(roots: list[Path]) -> Path:
    """The database of such a week in these roots, made in a few minutes and kept for the next run."""
    kept = BUILD / f"recorded-{CALLS}.db"
    if not kept.exists() or time.time() - kept.stat().st_mtime > RECORDED_AGAIN_S:
        fresh = kept.with_suffix(".new")
        for path in (kept, fresh):
            path.unlink(missing_ok=True)
        record_week(fresh, roots, CALLS)
        fresh.rename(kept)
    return kept


def _addresses(server: Server, roots: list[Path]) -> dict[str, str]:
    """Name of a page → its path below /dashboard, once what it shows is there."""
    client = server.client()
    for root in roots[:OPENED]:
        client.call("activate_project", project=str(root))
        client.call("find_symbol", name_path_pattern="Cart/total", relative_path="cart.py")
    client.call("replace_symbol_body", relative_path="cart.py", name_path="Cart/total", body=TOTAL)
    client.close()
    browser = Browser(server)
    for kind in ("graph", "findings"):
        browser.act("/dashboard/projects/one/analysis", root=str(roots[0]), kind=kind)
    _await_analyses(browser, roots[0])
    words = {
        "session": "session-0000",
        "call": f"call-{CALLS - 1}",
        "edit": server.get("/api/v1/edits")["edits"][0]["id"],
        "server": server.get("/api/v1/servers")["servers"][0]["id"],
        "tool": "find_symbol",
        "upstream": "notes",
    }
    queries = page_queries(roots[0])
    addresses: dict[str, str] = {}
    for page in PAGES:
        with suppress(KeyError):  # a word of a path that nothing here stands for
            addresses[page.path or "overview"] = page.path.format_map(words) + queries.get(page.path, "")
    return addresses | {more: more for more in MORE}


def _await_analyses(browser: Browser, root: Path) -> None:
    """Raises TimeoutError."""
    deadline = time.monotonic() + ANALYZED_S
    while time.monotonic() < deadline:
        shown = browser.fetch(f"/dashboard/projects/one/graph?root={quote(str(root))}")
        if "Analyze: " not in shown and "Cancel " not in shown:
            return
        time.sleep(0.2)
    raise TimeoutError("the analyses did not end")


def _pages(server: Server, addresses: dict[str, str]) -> Iterator[Row]:
    fetch = Browser(server).fetch

    def looked_at(path: str) -> list[float]:
        taken: list[float] = []
        fetch(BELOW + path)
        for _ in range(LOOKS):
            time.sleep(LOOK_EVERY_S)
            taken += timed(lambda: fetch(BELOW + path), 1)
        return taken

    quiet: dict[str, str] = {}
    for name, path in addresses.items():
        before = server.processor_ms()
        taken = looked_at(path)
        spent = (server.processor_ms() - before) / (LOOKS + 1)
        quiet[name] = f"quiet {median(taken):.3g} ms, {spent:.3g} ms of a processor"
    with calling(server, CALLS_PER_S):
        time.sleep(SETTLED_S)
        for name, path in addresses.items():
            before, began = calls_made(server), time.perf_counter()
            taken = looked_at(path)
            per_s = (calls_made(server) - before) / (time.perf_counter() - began)
            size = len(fetch(BELOW + path).encode()) / 1000
            note = f"{size:.1f} KB; {per_s:.0f} calls/s beside it; {quiet[name]}"
            yield _row(name, taken, size, note)


def _row(name: str, taken: list[float], size_kb: float, note: str) -> Row:
    middle = median(taken)
    worst = max(middle / BUDGET_MS, size_kb / BUDGET_KB)
    budget = f"≤ {BUDGET_MS:.0f} ms, ≤ {BUDGET_KB:.0f} KB"
    return Row(f"page: {name}", budget, middle, percentile(taken, 0.95), peer="budget", ratio=worst, note=note)
