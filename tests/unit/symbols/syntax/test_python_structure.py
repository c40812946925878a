"""What a text of Python consists of is what Python's own parser says of it, and is known of newer texts as well."""

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from serena_central.symbols.syntax.messages import Imported, PythonStructure, Tried
from serena_central.symbols.syntax.python_structure import structure

STDLIB = Path(sysconfig.get_path("stdlib"))


def said_by_python(text: str) -> PythonStructure:
    tree = ast.parse(text)
    tried: list[Tried] = []
    imported: list[Imported] = []
    for node in ast.walk(tree):
        match node:
            case ast.Try(handlers=[_, *_]) | ast.TryStar():
                handlers = [None if one.type is None else _identifiers(one) for one in node.handlers]
                handled = None if None in handlers else sorted(name for some in handlers for name in some or ())
                tried.append(Tried(node.body[0].lineno - 1, (node.body[-1].end_lineno or 0) - 1, handled))
            case ast.Import():
                imported += [_import(node, 0, alias.name, []) for alias in node.names]
            case ast.ImportFrom():
                imported.append(_import(node, node.level, node.module or "", [alias.name for alias in node.names]))
            case _:
                pass
    return PythonStructure(tried, imported, sorted(set(_declared(tree, ""))))


def _import(node: ast.stmt, level: int, module: str, names: list[str]) -> Imported:
    return Imported(node.lineno - 1, (node.end_lineno or 0) - 1, level, module, names)


def _identifiers(handler: ast.ExceptHandler) -> Iterator[str]:
    assert handler.type is not None
    for node in ast.walk(handler.type):
        match node:
            case ast.Name():
                yield node.id
            case ast.Attribute():
                yield node.attr
            case _:
                pass
    if handler.name is not None:
        yield handler.name


def _declared(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield place, name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield place, name
        case ast.alias():
            yield place, node.asname or node.name.rpartition(".")[2]
        case ast.ExceptHandler(name=str(name)):
            yield place, name
        case _:
            pass
    inner = f"{place}/{node.name}".lstrip("/") if isinstance(node, ast.ClassDef) else place
    for child in ast.iter_child_nodes(node):
        yield from _declared(child, place if child in getattr(node, "decorator_list", ()) else inner)


def in_order(found: PythonStructure) -> tuple[object, ...]:
    """Without the last lines of bodies: Python does not count the comments there."""
    tried = sorted((one.first0, one.handled and sorted(one.handled)) for one in found.tried)
    imported = sorted((one.first0, one.level, one.module, one.names) for one in found.imported)
    return tried, imported, found.declared, found.is_broken


@pytest.mark.parametrize("path", sorted(STDLIB.glob("[a-d]*.py")), ids=lambda path: path.name)
def test_it_is_what_pythons_own_parser_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert in_order(structure(text.encode())) == in_order(said_by_python(text))


def test_what_is_newer_than_the_interpreter_is_known() -> None:
    text = """\
type Pair[T = int] = tuple[T, T]
type(mock)._sig = 1
class Box[T: (int, str) = int, *Ts = *tuple[int], **P = [int]]:
    def get[U](self) -> U:
        try:
            self.got = t"{self.x["y"]}"
        except ValueError, KeyError:
            pass
"""
    assert structure(text.encode()) == PythonStructure(
        [Tried(5, 5, ["KeyError", "ValueError"])],
        [],
        [("", "Box"), ("", "Pair"), ("", "_sig"), ("Box", "get"), ("Box", "got")],
    )


@pytest.mark.parametrize("text", ["x = (\n", "print 'x'\n", "exec 'x'\n", "x <> y\n", "class A[T = int:\n    pass\n"])
def test_what_is_no_python_3_is_broken(text: str) -> None:
    assert structure(text.encode()).is_broken
