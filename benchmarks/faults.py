"""Rows about changes that may break code in silence: 300 random symbols of three real packages are deleted, renamed and
replaced, and the packages' own suites say whether all still works.

Each kind of change is made by the tools for a hundred symbols of a package in turn. What they refuse is counted. A
published package holds hardly anything that may be deleted: among what is deleted are planted symbols, half of which
nothing uses. Renames that say what they may break are undone at once, and made again after the others. Where the suite
then finds something that it did not find before, changes are undone until the guilty ones are known: these
are *silent failures*. In the end every edit is undone, the newest first, and the tree compared.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.bench import Bench, Server
from benchmarks.client import Refused
from benchmarks.django import BUILD
from benchmarks.languages import SERVERS
from benchmarks.packages import PACKAGES, Package, failures, git, source
from benchmarks.planted import plant
from benchmarks.table import Row

SYMBOLS = 100
"""Of each package."""

SEED = 20_260_101

PLANTED = 20
"""Unused symbols that are planted before the deletions, and as many used ones."""

SUBJECTS = ("flask", "cobra", "zod")

_LOADED = {"flask": r"^src/flask/(?!__main__)", "cobra": r"^\w+\.go$", "zod": r"^src/v4/(core|classic)/\w+\.ts$"}
"""Files that each suite loads: what is planted there is executed."""

_TEST = re.compile(r"(^|/)(tests?|benchmarks|examples|docs)/|_test\.go$|\.test\.ts$")

_SAID = re.compile(r"still stands (in code|as the name|in strings|in files)|may be used .* by its old name")
"""What a rename says of places that it left alone; comments break nothing."""


SETTINGS = {
    "SERENA_CENTRAL_TRUSTED_ROOTS": str(BUILD),
    "SERENA_CENTRAL_AUTO_INSTALL": "off",
    "SERENA_CENTRAL_EDIT_DIAGNOSTICS_S": "0",
}
"""Of a server that runs the core servers on real packages. Nobody reads what an edit broke: it is not waited for."""


class Symbol(NamedTuple):
    path: str
    name_path: str

    @property
    def name(self) -> str:
        return self.name_path.rpartition("/")[2].partition("[")[0]


class Made(NamedTuple):
    """An edit that was made. `said`: it named places that it may have broken."""

    symbol: Symbol
    edit: str
    said: str


class Counts(NamedTuple):
    """`said`: changes that named what they may break; `works`: whether the suite was as before with them.
    `unlike`: files that were not as before after everything was undone."""

    made: list[Symbol]
    refused: int
    silent: list[str]
    said: int
    works: bool
    unlike: list[str]

    @property
    def done(self) -> int:
        return len(self.made)


class Subject:
    """One package, and the server that changes it."""

    def __init__(self, server: Server, package: Package) -> None:
        self._server = server
        self.package = package
        self.root = source(package)
        self._session = ""
        self.before = failures(package, self.root)

    def begin(self) -> None:
        """Begins a session that has seen nothing: what others undid is no conflict with what it knows."""
        if self._session:
            self._server.post(f"/api/v1/sessions/{self._session}/close", {})
        self._session = self._server.post("/api/v1/sessions", {"client_name": "faults"})["session_id"]

    def call(self, tool: str, **arguments: Any) -> list[str]:
        """The blocks of an answer. Raises Refused."""
        asked = {"arguments": {**arguments, "project": str(self.root)}, "session": self._session}
        answer = self._server.post(f"/api/v1/tools/{tool}", asked)
        if "blocks" not in answer:
            raise Refused(answer.get("error", {}).get("message") or json.dumps(answer))
        return answer["blocks"]

    def undo(self, edit: str) -> str:
        """Takes an edit back; the edit that does it. Raises Refused."""
        answer = self._server.post(f"/api/v1/edits/{edit}/undo", {})
        if "edit" not in answer:
            raise Refused(json.dumps(answer))
        return answer["edit"]

    def symbols(self) -> list[Symbol]:
        """Functions, methods and types at the top of files and in their types, tests excepted."""
        self.begin()
        found: list[Symbol] = []
        for path in git(self.root, "ls-files", self.package.code or ".").splitlines():
            if path.endswith((".py", ".go", ".ts")) and not _TEST.search(path):
                overview = json.loads(self.call("get_symbols_overview", relative_path=path, depth=1)[0])
                found += [Symbol(path, one) for one in _named(overview, "") if one.rpartition("/")[2].isidentifier()]
        return found

    def new_failures(self) -> frozenset[str]:
        return failures(self.package, self.root) - self.before


def _named(overview: dict[str, list[Any]], above: str) -> Iterator[str]:
    for kind, entries in overview.items():
        for entry in entries if kind not in ("Variable", "Constant", "Field", "Property") else ():
            nested: dict[str, Any] = {entry: {}} if isinstance(entry, str) else entry
            for name, inside in nested.items():
                yield f"{above}{name}"
                yield from _named(inside, f"{above}{name}/")


class Edits:
    """Edits one upon the other: taken back and made again in order, the newest first."""

    def __init__(self, subject: Subject, made: Sequence[Made]) -> None:
        self._subject = subject
        self._made = list(made)
        self._undone: list[Made] = []

    def go_to(self, count: int) -> None:
        """Has the first `count` edits made, and no others."""
        while len(self._made) > count:
            one = self._made.pop()
            self._undone.append(one._replace(edit=self._subject.undo(one.edit)))
        while len(self._made) < count:
            one = self._undone.pop()
            self._made.append(one._replace(edit=self._subject.undo(one.edit)))

    def first_guilty(self) -> int | None:
        """The place of the first edit after which the suite finds something new, and has those before it made."""
        fine, bad = 0, len(self._made)
        if not bad or not (found := self._subject.new_failures()):
            return None
        print(f"  {self._subject.package.title}: {sorted(found)[:3]}", file=sys.stderr, flush=True)
        while bad - fine > 1:
            middle = (fine + bad) // 2
            self.go_to(middle)
            fine, bad = (fine, middle) if self._subject.new_failures() else (middle, bad)
        self.go_to(fine)
        return fine


def faulting(bench: Bench) -> Iterator[Row]:
    home = bench.fresh_home("faults")
    (home / "servers").symlink_to(SERVERS)
    server = Server(home, **SETTINGS)
    try:
        for name in SUBJECTS:
            yield from inject(Subject(server, PACKAGES[name]), SYMBOLS)
    finally:
        server.stop()


def inject(subject: Subject, symbols: int) -> Iterator[Row]:
    found = sorted(subject.symbols())
    sample = random.Random(SEED).sample(found, min(symbols, len(found)))
    sample.sort(key=lambda one: (-one.name_path.count("/"), one))  # members keep their name paths
    yield from _deleting_planted(subject, sample)
    for kind, change in (("renamed", _rename), ("replaced", _replace)):
        started = time.monotonic()
        counts = _changed(subject, sample, change)
        note = f"done {counts.done}, {counts[1:]}; {time.monotonic() - started:.0f} s"
        print(subject.package.title, kind, note, file=sys.stderr, flush=True)
        name = f"{subject.package.title}: silent failures of {len(sample)} symbols {kind}"
        note = f"done {counts.done}, refused {counts.refused}, said what they may break {counts.said}"
        yield Row(name, "0", len(counts.silent) + len(counts.unlike), unit="", note=note)


def _deleting_planted(subject: Subject, sample: Sequence[Symbol]) -> Iterator[Row]:
    """Deletes planted symbols, and enough others that they are as many as the sample."""
    title, started = subject.package.title, time.monotonic()
    loaded = {
        one.path for one in subject.symbols() if re.search(_LOADED[subject.package.name.rpartition("/")[2]], one.path)
    }
    planted = plant(subject.root, loaded, PLANTED, SEED)
    git(subject.root, "add", "--all")
    git(subject.root, "commit", "--quiet", "--message", "planted")
    try:
        if found := subject.new_failures():
            raise RuntimeError(f"The suite of {title} fails with what was planted: {sorted(found)[:3]}")
        chosen = [Symbol(one.path, one.name_path) for one in planted] + list(sample[: len(sample) - len(planted)])
        counts = _changed(subject, chosen, _delete)
    finally:
        git(subject.root, "reset", "--quiet", "--hard", "HEAD~1")
    deleted = {(one.path, one.name_path) for one in counts.made}
    unused = [one for one in planted if not one.used]
    through = sum((one.path, one.name_path) in deleted for one in unused)
    used = [one for one in planted if one.used and (one.path, one.name_path) in deleted]
    print(title, "deleted", counts, used, f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    note = f"done {counts.done}, refused {counts.refused}; of {len(unused)} planted used symbols {len(used)} deleted"
    wrong = len(counts.silent) + len(counts.unlike)
    yield Row(f"{title}: silent failures of {len(chosen)} symbols deleted", "0", wrong, unit="", note=note)
    yield Row(f"{title}: planted unused symbols that are deleted", str(len(unused)), through, unit="")


Change = Callable[[Subject, Symbol], Made]


def _changed(subject: Subject, sample: Sequence[Symbol], change: Change) -> Counts:
    made, said = list[Made](), list[Made]()
    refused = 0
    for symbol in sample:
        one = _made(subject, symbol, change)
        if one is None:
            refused += 1
        elif one.said:
            subject.undo(one.edit)
            said.append(one)
        else:
            made.append(one)
    done, silent = [one.symbol for one in (*made, *said)], list[str]()
    edits = Edits(subject, made)
    while (guilty := edits.first_guilty()) is not None:
        one, later = made[guilty], made[guilty + 1 :]
        silent.append(f"{one.symbol.path}:{one.symbol.name_path}")
        print(f"  guilty: {silent[-1]}", file=sys.stderr, flush=True)
        edits.go_to(0)
        made = _all_made(subject, [*made[:guilty], *later], change)
        edits = Edits(subject, made)
    edits.go_to(0)
    edits = Edits(subject, _all_made(subject, said, change))
    works = not said or not subject.new_failures()
    edits.go_to(0)
    unlike = git(subject.root, "status", "--porcelain").splitlines()
    git(subject.root, "checkout", "--quiet", ".")  # what one kind of change left is not the next one's
    return Counts(done, refused, silent, len(said), works, unlike)


def _all_made(subject: Subject, made: Sequence[Made], change: Change) -> list[Made]:
    """Edits made anew."""
    again = (_made(subject, one.symbol, change) for one in made)
    return [one for one in again if one is not None]


def _made(subject: Subject, symbol: Symbol, change: Change) -> Made | None:
    """A change by a session that has seen nothing; None if it was refused."""
    subject.begin()
    try:
        return change(subject, symbol)
    except Refused as error:
        print(f"  {symbol.path}:{symbol.name_path}: {str(error)[:160]}", file=sys.stderr, flush=True)
        return None


def _delete(subject: Subject, symbol: Symbol) -> Made:
    blocks = subject.call("safe_delete_symbol", name_path=symbol.name_path, relative_path=symbol.path)
    return Made(symbol, json.loads(blocks[0])["edit"], "")


def _rename(subject: Subject, symbol: Symbol) -> Made:
    new_name = f"{symbol.name}Renamed"
    answer, *notes = subject.call(
        "rename_symbol", name_path=symbol.name_path, relative_path=symbol.path, new_name=new_name
    )
    said = [line for block in notes for line in block.splitlines() if _SAID.search(line)]
    return Made(symbol, json.loads(answer)["edit"], "\n".join(said))


def _replace(subject: Subject, symbol: Symbol) -> Made:
    """Adds a comment at the end of the definition."""
    where = {"relative_path": symbol.path}
    found = subject.call("find_symbol", name_path_pattern=f"/{symbol.name_path}", include_body=True, **where)
    body = json.loads(found[0])[0]["body"]
    comment = "\n# replaced" if symbol.path.endswith(".py") else " /* replaced */"
    blocks = subject.call("replace_symbol_body", name_path=symbol.name_path, body=body + comment, **where)
    return Made(symbol, json.loads(blocks[0])["edit"], "")
