"""Samples of names that a project defines, with the uses of each that Python's own parser finds.

Names that Python's libraries have, too, or that something else is bound to, are left out. A name that is defined once
means that definition wherever it is used; the parser knows no types, so that it has nothing in common with a language
server. What a name means that several classes define (`overridden`) it can't tell.
"""

import ast
import random
import re
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

OF_EACH = 20
"""Names of each kind."""

OVERRIDDEN_MOST = 6
"""Classes that define an overridden name, at the most: what more define is a convention."""

SEED = 20_260_101

_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)


class Place(NamedTuple):
    path: str
    line0: int


class Use(NamedTuple):
    """Columns count code points. `on_self`: it is an attribute of `self`."""

    path: str
    line0: int
    column: int
    on_self: bool = False

    @property
    def place(self) -> Place:
        return Place(self.path, self.line0)


class Defined(NamedTuple):
    """A name. `kind`: function, class, method, property, or overridden; `others` are its further definitions."""

    name: str
    kind: str
    at: Place
    uses: frozenset[Use]
    others: frozenset[Place] = frozenset()

    @property
    def is_unique(self) -> bool:
        return not self.others


def sample_of(root: Path) -> list[Defined]:
    """Names with uses, drawn evenly over the kinds; the same in each run."""
    by_kind: dict[str, list[Defined]] = defaultdict(list)
    for one in _defined(root):
        by_kind[one.kind].append(one)
    draw = random.Random(SEED)
    sample: list[Defined] = []
    for kind in sorted(by_kind):
        found = sorted(by_kind[kind], key=lambda one: one.at)
        sample += draw.sample(found, min(len(found), OF_EACH))
    return sample


def _defined(root: Path) -> Iterator[Defined]:
    definitions: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    uses: dict[str, set[Use]] = defaultdict(set)
    bound: set[str] = set()
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root).as_posix()
        try:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, UnicodeDecodeError):
            continue  # Django's tests hold some on purpose
        _Names(path, text, definitions, uses, bound).visit(tree)
    bound |= _library_names()
    for name, places in definitions.items():
        if name in bound or name.startswith("__") or not uses[name]:
            continue
        first, *rest = places
        if not rest:
            yield Defined(name, *first, frozenset(uses[name]))
        elif len(places) <= OVERRIDDEN_MOST and all(kind == "method" for kind, _ in places):
            others = frozenset(at for _, at in rest)
            yield Defined(name, "overridden", first[1], frozenset(uses[name]), others)


@cache
def _library_names() -> set[str]:
    """What Python's libraries define, too: modules in Python by their text, those in C by what they hold."""
    names = set(sys.stdlib_module_names)
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
        text: str,
        definitions: dict[str, list[tuple[str, Place]]],
        uses: dict[str, set[Use]],
        bound: set[str],
    ) -> None:
        self._path = path
        self._lines = text.split("\n")
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
            on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            self._use(
                node.attr, (node.end_lineno or 1) - 1, (node.end_col_offset or 0) - len(node.attr.encode()), on_self
            )
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
            self._use(node.name, node.lineno - 1, node.col_offset)

    def _use(self, name: str, line0: int, byte: int, on_self: bool = False) -> None:
        column = len(self._lines[line0].encode()[:byte].decode("utf-8", "ignore"))
        self._uses[name].add(Use(self._path, line0, column, on_self))

    def _define(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> None:
        self._definitions[node.name].append((kind, Place(self._path, node.lineno - 1)))

    def _use_or_bind(self, name: str, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(name, node.lineno - 1, node.col_offset)
        else:
            self._bound.add(name)
