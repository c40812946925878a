"""Rows about one call at a time, on a warm server."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

import psutil
from anyio.from_thread import start_blocking_portal

from benchmarks.bench import Bench, processor_ms
from benchmarks.client import Era
from benchmarks.django import BUILD
from benchmarks.table import Row, in_turns, row, timed
from serena_central.core.places import Places
from serena_central.core.text import Position
from serena_central.files.text import read_text
from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.client import LanguageServer
from serena_central.lsp.locate import locate
from serena_central.symbols.indexing.policy import IndexingPolicy

QUERY = "django/db/models/query.py"
NAMES = ("QuerySet", "ModelAdmin/get_urls", "slugify", "HttpResponse", "get_queryset", "Field/clean", "as_sql")


def protocol(bench: Bench) -> Iterator[Row]:
    budgets: dict[Era, str] = {"handshake": "≤ 0.8 ms, 6 × floor", "modern": "≤ 0.8 ms, 6 × floor"}
    for era, budget in budgets.items():
        client = bench.client_of(bench.server, era)
        request = client.prepare("get_current_config")
        yield bench.beside_floor(f"cheapest call, {era} era", budget, client, [request], 1000)


def finding(bench: Bench) -> Iterator[Row]:
    calls: tuple[tuple[str, str, list[tuple[str, dict[str, Any]]]], ...] = (
        ("find_symbol by name, all of Django", "≤ 1.2 ms", [("find_symbol", {"name_path_pattern": n}) for n in NAMES]),
        (
            "find_symbol with its body, all of Django",
            "≤ 1.2 ms",
            [("find_symbol", {"name_path_pattern": "QuerySet/bulk_create", "include_body": True})],
        ),
        (
            "find_symbol in one file",
            "≤ 1.2 ms",
            [("find_symbol", {"name_path_pattern": "QuerySet/filter", "relative_path": QUERY})],
        ),
        ("get_symbols_overview of 2,700 lines", "≤ 2 ms", [("get_symbols_overview", {"relative_path": QUERY})]),
    )
    client = bench.client
    for name, budget, asked in calls:
        requests = [client.prepare(tool, **arguments) for tool, arguments in asked]
        yield bench.beside_floor(name, budget, client, requests, 700)


PATTERNS = (
    ("a literal, few lines", "slugify"),
    ("a literal, 2,100 lines", "QuerySet"),
    ("a whole word", r"\bslugify\b"),
    ("an expression, few lines", r"def get_\w+_url"),
    ("an expression, 1,600 lines", r"raise \w+Error\("),
    ("a literal, 14,500 lines", "import"),
    ("an expression without any word", r"\d{4}-\d\d-\d\d"),
)
"""The last two are for what the budget does not promise: an answer's lines are made one by one."""


def searching(bench: Bench) -> Iterator[Row]:
    """Beside ripgrep with one thread, in turns, over all files of the project."""
    program = ripgrep()
    for _ in range(2):  # what is searched again is indexed in the background
        bench.client.call("search_for_pattern", substring_pattern=PATTERNS[0][1])
    bench.server.await_quiet()
    for name, pattern in PATTERNS:
        request = bench.client.prepare("search_for_pattern", substring_pattern=pattern)
        command = [str(program), "--threads=1", "--line-number", "--no-heading", pattern, str(bench.django)]

        def search(command: list[str] = command) -> None:
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

        ours, theirs = in_turns(lambda request=request: bench.client.send(request), search, 15)
        base = median(theirs)
        note = f"ripgrep {base:.0f} ms"
        yield row(f"search_for_pattern: {name}", "≤ 0.3 × ripgrep", ours, peer="ripgrep", base=base, note=note)


def ripgrep() -> Path:
    """Debian's, in the folder of the benchmarks' material."""
    program = BUILD / "ripgrep" / "usr" / "bin" / "rg"
    if not program.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "--quiet", "--quiet", "ripgrep"], cwd=BUILD, check=True)
        (archive,) = BUILD.glob("ripgrep_*.deb")
        subprocess.run(["dpkg", "-x", str(archive), str(BUILD / "ripgrep")], check=True)
        archive.unlink()
    return program


RARE: tuple[tuple[str, str], ...] = (
    *((name, "django/utils/http.py") for name in ("parse_http_date", "parse_http_date_safe", "base36_to_int")),
    *((name, "django/utils/http.py") for name in ("int_to_base36", "urlsafe_base64_encode", "urlsafe_base64_decode")),
    *((name, "django/utils/http.py") for name in ("parse_etags", "quote_etag", "is_same_domain")),
    *((name, "django/utils/http.py") for name in ("url_has_allowed_host_and_scheme", "escape_leading_slashes")),
    ("parse_header_parameters", "django/utils/http.py"),
    *((name, "django/utils/text.py") for name in ("get_valid_filename", "get_text_list", "normalize_newlines")),
    *((name, "django/utils/text.py") for name in ("phone2numeric", "smart_split", "unescape_string_literal")),
    *((name, "django/utils/crypto.py") for name in ("salted_hmac", "get_random_string", "constant_time_compare")),
    ("pbkdf2", "django/utils/crypto.py"),
    ("json_script", "django/utils/html.py"),
)
"""Functions that 3 to 10 files name in 6 to 24 places. Each is asked about once: of whom nothing changed since the
server remembers where places lead."""


def references(bench: Bench) -> Iterator[Row]:
    """Of names whose places the language server can all tell, and of one of which it can tell hardly any."""
    asked = iter([_references_of(bench, *one) for one in RARE])
    with ServerAlone(bench, *RARE) as alone:
        what = f"references of {len(RARE) - WARMING} functions in few files, each for the first time"
        yield _beside_ty(bench, what, "≤ 1.1 × ty", lambda: bench.client.send(next(asked)), alone.references_of_each())
    for name, path, places in (
        ("slugify", "django/utils/text.py", "few doubtful places, asked again"),
        ("isolate_apps", "django/test/utils.py", "few doubtful places"),
        ("override_settings", "django/test/utils.py", "few doubtful places"),
        ("QuerySet/bulk_create", QUERY, "170 doubtful places"),
    ):
        request = _references_of(bench, name, path)
        budget = "≤ 1.1 × ty" if places.startswith("few") else "≤ 4 × ty"
        with ServerAlone(bench, (name, path)) as alone:
            what = f"references of {name} in {alone.files} files, {places}"
            yield _beside_ty(bench, what, budget, lambda request=request: bench.client.send(request), alone.references)


def _references_of(bench: Bench, name: str, path: str) -> bytes:
    return bench.client.prepare("find_referencing_symbols", name_path=name, relative_path=path)


def renaming(bench: Bench) -> Iterator[Row]:
    """Planned and not written: what a server's references and its own rename take is what they are compared with."""
    name, path, new_name = "isolate_apps", "django/test/utils.py", "isolated_apps"
    asked = {"name_path": name, "relative_path": path, "new_name": new_name, "dry_run": True}
    files = bench.client.call("rename_symbol", **asked).count(b"+++ ")
    what = f"rename of {name} in {files} files, planned"
    with ServerAlone(bench, (name, path)) as alone:
        # Prepared again each time: a call that is sent again gets the answer of the first.
        yield _beside_ty(
            bench,
            what,
            "≤ 1.1 × ty",
            lambda: bench.client.call("rename_symbol", **asked),
            lambda: alone.references_and_rename(new_name),
        )


TURNS = 20

WARMING = 3
"""Turns before those that count."""


def _beside_ty(
    bench: Bench, what: str, budget: str, call: Callable[[], object], alone: Callable[[], tuple[float, float]]
) -> Row:
    """A call and the language server's own answer, in turns. The note also has the CPU time that both took."""
    ours: list[float] = []
    theirs: list[float] = []
    cpu = cpu_alone = 0.0
    for turn in range(-WARMING, TURNS):
        before = bench.server.processor_ms()
        (taken,) = timed(call, 1)
        used = bench.server.processor_ms() - before
        taken_alone, used_alone = alone()
        if turn >= 0:  # both have answered the same before
            ours.append(taken)
            theirs.append(taken_alone)
            cpu, cpu_alone = cpu + used, cpu_alone + used_alone
    base = median(theirs)
    note = (
        f"ty {base:.1f} ms; CPU {cpu / TURNS:.0f} ms, {cpu / cpu_alone:.1f} × the {cpu_alone / TURNS:.0f} of ty alone"
    )
    return row(what, budget, ours, peer="ty alone", base=base, note=note)


class ServerAlone:
    """ty without us, warm: the milliseconds that an answer takes it, and those of its CPU time."""

    def __init__(self, bench: Bench, *symbols: tuple[str, str]) -> None:
        """`symbols`: names and paths; the first is asked about where none is named."""
        self._places = [_place(bench.django / path, name) for name, path in symbols]
        spec = catalogue().server("ty")
        launch = locate(spec, bench.django, Places(bench.fresh_home("alone")), untrusted=None)
        self._server = LanguageServer(
            spec, bench.django, launch=launch, settings={}, read_text=lambda path: read_text(path).text
        )
        self._stack = ExitStack()
        self.files = 0

    def __enter__(self) -> "ServerAlone":
        self._portal = self._stack.enter_context(start_blocking_portal(backend_options={"use_uvloop": True}))
        self._running, _ = self._portal.start_task(self._server.run)
        self._portal.call(self._server.ready)
        found = self._portal.call(self._server.references, *self._places[0])
        self.files = len({place.path for place in found})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._portal.call(self._server.stop)
        self._running.result(20)
        self._stack.close()

    def references(self) -> tuple[float, float]:
        return self._portal.call(self._timed, self._places[0], None)

    def references_of_each(self) -> Callable[[], tuple[float, float]]:
        """Asks about another symbol at each call."""
        places = iter(self._places)
        return lambda: self._portal.call(self._timed, next(places), None)

    def references_and_rename(self, new_name: str) -> tuple[float, float]:
        return self._portal.call(self._timed, self._places[0], new_name)

    async def _timed(self, place: tuple[Path, Position], new_name: str | None) -> tuple[float, float]:
        process = psutil.Process(self._server.pid)
        before, started = processor_ms(process), time.perf_counter()
        await self._server.references(*place)
        if new_name is not None:
            await self._server.rename(*place, new_name)
        return (time.perf_counter() - started) * 1000, processor_ms(process) - before


def _place(file: Path, name: str) -> tuple[Path, Position]:
    """Where a symbol is defined."""
    text = read_text(file).text
    pattern = re.compile(rf"\b(?:def|class) ({name.rpartition('/')[2]})\b")
    found = ((line0, pattern.search(text.line(line0))) for line0 in range(text.line_count))
    return file, next(Position(line0, match.start(1)) for line0, match in found if match)


def editing(bench: Bench) -> Iterator[Row]:
    """The first find after another program wrote a file: of a name that this very write brought."""
    file = bench.django / "django/utils/text.py"
    before = file.read_bytes()
    server = bench.server.tree[0]
    taken: list[float] = []
    written = server.io_counters().write_bytes
    try:
        for number in range(20):
            name = f"brought_{number}"
            request = bench.client.prepare("find_symbol", name_path_pattern=name)
            file.write_bytes(before + f"\n\ndef {name}():\n    pass\n".encode())
            started = time.perf_counter()
            answer = bench.client.send(request)
            taken.append((time.perf_counter() - started) * 1000)
            assert name in answer.decode(), answer
            time.sleep(0.05)
    finally:
        file.write_bytes(before)
    time.sleep(IndexingPolicy().save_after_s + 1)
    kilobytes = (server.io_counters().write_bytes - written) / 1024 / len(taken)
    note = f"{kilobytes:.0f} KB written to disk per edit"
    yield row("first find after an external edit", "≤ 40 ms, ≤ 100 KB", taken, note=note)
