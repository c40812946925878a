"""Rows about completeness: of the references that the syntax tree proves, how many are answered or at least announced.

The sample are names that a project defines once, by `def` or `class`, and that Python's own libraries do not have:
whoever uses such a name means that definition.
Its uses are what Python's own parser finds: names, attributes and imports. It knows no types, so that this judge has
nothing in common with a language server. A use counts as *answered* when its line is among the references, and as
*announced* when the notes count a possible reference or an unexamined place for it.
"""

import ast
import json
import random
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench import Bench, Server
from benchmarks.django import BUILD
from benchmarks.table import Row

SAMPLE = 100
SEED = 20_260_101
RICH = "14.0.0"

_POSSIBLE = re.compile(r"Possible references[^:]*: (\d+) place")
_UNEXAMINED = re.compile(r"stands in (\d+) further place")
_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
_LINE = re.compile(r"^ {2}> *(\d+):", re.MULTILINE)


class Place(NamedTuple):
    path: str
    line0: int


class Defined(NamedTuple):
    """A name that is defined once. `kind`: function, class, method or property."""

    name: str
    kind: str
    at: Place
    uses: frozenset[Place]


class Found(NamedTuple):
    answered: int
    announced: int
    uses: int
    wrong: int
    """Answered lines that do not hold the name."""


def recalling(bench: Bench) -> Iterator[Row]:
    for title, root in (("Django 5.2", bench.django), (f"rich {RICH}", _rich())):
        sample = _sample(root)
        server = Server(bench.fresh_home("recall"))
        try:
            yield from _rows(title, root, server, sample)
        finally:
            server.stop()


def _rows(title: str, root: Path, server: Server, sample: list[Defined]) -> Iterator[Row]:
    by_kind: dict[str, list[Found]] = defaultdict(list)
    silent = 0
    for one in sample:
        found = _found(root, server, one)
        by_kind[one.kind].append(found)
        silent += found.answered == found.announced == 0
    for kind, found in [*sorted(by_kind.items()), ("all", [one for some in by_kind.values() for one in some])]:
        uses, wrong = sum(one.uses for one in found), sum(one.wrong for one in found)
        answered = sum(one.answered for one in found)
        known = sum(min(one.answered + one.announced, one.uses) for one in found)
        note = f"answered {100 * answered / uses:.1f} %; {len(found)} symbols, {uses} uses, {wrong} wrong"
        if kind == "all":
            note += f"; {silent} symbols with uses and without a word of them"
        yield Row(
            f"references of {title}, {kind}: answered or announced", "100 %", 100 * known / uses, unit="%", note=note
        )


def _found(root: Path, server: Server, one: Defined) -> Found:
    arguments = {"name_path": one.name, "relative_path": one.at.path, "project": str(root)}
    answer, *notes = server.post("/api/tools/find_referencing_symbols", {"arguments": arguments})["blocks"]
    lines = {
        Place(path, int(line))
        for path, kinds in json.loads(answer).items()
        for entries in kinds.values()
        for entry in entries
        for line in _LINE.findall(entry["content_around_reference"])
    }
    wrong = sum(one.name not in (root / at.path).read_text().split("\n")[at.line0] for at in lines)
    announced = sum(int(match[1]) for form in (_POSSIBLE, _UNEXAMINED) if (match := form.search("\n".join(notes))))
    return Found(len(one.uses & lines), announced, len(one.uses), wrong)


def _sample(root: Path) -> list[Defined]:
    """Names with uses, drawn evenly over the kinds; the same in each run."""
    by_kind: dict[str, list[Defined]] = defaultdict(list)
    for one in _defined_once(root):
        by_kind[one.kind].append(one)
    draw = random.Random(SEED)
    sample: list[Defined] = []
    for kind in sorted(by_kind):
        found = sorted(by_kind[kind])
        sample += draw.sample(found, min(len(found), SAMPLE // len(by_kind)))
    return sample


def _defined_once(root: Path) -> Iterator[Defined]:
    definitions: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    uses: dict[str, set[Place]] = defaultdict(set)
    bound: set[str] = set()
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root).as_posix()
        try:
            tree = ast.parse(file.read_bytes())
        except SyntaxError:
            continue  # Django's tests hold some on purpose
        _Names(path, definitions, uses, bound).visit(tree)
    bound |= _library_names()
    for name, places in definitions.items():
        if len(places) == 1 and name not in bound and not name.startswith("__") and uses[name]:
            ((kind, at),) = places
            yield Defined(name, kind, at, frozenset(uses[name]))


@cache
def _library_names() -> set[str]:
    """What Python's libraries define, too: modules in Python by their text, those in C by what they hold."""
    names: set[str] = set()
    for file in Path(sysconfig.get_path("stdlib")).rglob("*.py"):
        if not {"site-packages", "test", "tests"} & {*file.parts}:
            names.update(_DEFINITION.findall(file.read_text(encoding="utf-8", errors="replace")))
    for module in map(import_module, (*sys.builtin_module_names, "sqlite3", "tempfile")):
        for name, value in vars(module).items():
            names.update({name, *(dir(value) if isinstance(value, type) else ())})
    return names


class _Names(ast.NodeVisitor):
    """Takes note of what one file defines, uses and binds otherwise (variables, parameters, attributes)."""

    def __init__(
        self,
        path: str,
        definitions: dict[str, list[tuple[str, Place]]],
        uses: dict[str, set[Place]],
        bound: set[str],
    ) -> None:
        self._path = path
        self._definitions = definitions
        self._uses = uses
        self._bound = bound
        self._in_class = False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node, "class")
        before, self._in_class = self._in_class, True
        self.generic_visit(node)
        self._in_class = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorated = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
        attribute = decorated & {"property", "cached_property"}
        self._define(node, "property" if attribute else "method" if self._in_class else "function")
        before, self._in_class = self._in_class, False
        self.generic_visit(node)
        self._in_class = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - named by ast

    def visit_Name(self, node: ast.Name) -> None:
        self._use_or_bind(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            self._uses[node.attr].add(Place(self._path, (node.end_lineno or 1) - 1))
        else:
            self._bound.add(node.attr)

    def visit_arg(self, node: ast.arg) -> None:
        self._bound.add(node.arg)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg:
            self._bound.add(node.arg)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        if node.asname:
            self._bound.add(node.asname)
        if "." not in node.name:
            self._uses[node.name].add(Place(self._path, node.lineno - 1))

    def _define(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> None:
        self._definitions[node.name].append((kind, Place(self._path, node.lineno - 1)))

    def _use_or_bind(self, name: str, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._uses[name].add(Place(self._path, node.lineno - 1))
        else:
            self._bound.add(name)


def _rich() -> Path:
    """Rich's sources, fetched by pip once."""
    root = BUILD / f"rich-{RICH}"
    if not root.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
        subprocess.run([*pip, "--dest", str(BUILD), f"rich=={RICH}"], check=True)
        with tarfile.open(BUILD / f"rich-{RICH}.tar.gz") as archive:
            archive.extractall(BUILD, filter="data")
        # A checkout of its own: else the ignore rules of this repository would apply to it.
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root
