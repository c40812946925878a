"""What is new against a git revision, of what is only possible: a broken reference that was none then.

The revision itself is not analyzed: that would take its whole tree, the packages of its time and a second language
server. Names are compared instead, of the files that differ. A finding is new if the name that it misses was declared
in one of them and is not any more, or if its line was written since and uses that name more often than before.
What this does not see: an unchanged line whose object is of another type now. Pure.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

_WORD = re.compile(r"[^\W\d]\w*")

_QUOTED = re.compile(r"[`'\"‘“]+([^`'\"’”]+)[`'\"’”]+")

_UNQUALIFYING = re.compile(r"[^\W\d]\w*(?!\w|\.\w)")
"""Words that are not the part of a name before a dot."""


class Baseline:
    """Made of the texts of files that differ, by path: in the revision, and now; one that is not there lacks."""

    def __init__(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        self._old_lines = {line.strip() for text in before.values() for line in text.splitlines()}
        self._old_words = _words(before.values())
        self._words = _words(now.values())
        self.gone = frozenset(_declared(before) - _declared(now)) | {
            PurePosixPath(path).stem for path in before.keys() - now.keys()
        }
        """Names that were declared, and are not any more; of files, those by which they may be imported."""

    def is_new(self, message: str, line: str) -> bool:
        """Whether a finding came up since; `line` is the one that it stands in."""
        words = set(_WORD.findall(line))
        missed = [name for name in _named(message) if name in words]
        if any(name in self.gone for name in missed):
            return True
        return line.strip() not in self._old_lines and any(self._words[name] > self._old_words[name] for name in missed)


def _named(message: str) -> list[str]:
    """What a message may complain about: what it quotes; of one that quotes nothing (Go's), any of its words."""
    quoted = _QUOTED.findall(message)
    if not quoted:
        return _UNQUALIFYING.findall(message)
    return [word for text in quoted for word in _WORD.findall(text)]


def _words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _WORD.findall(text))


def _declared(files: Mapping[str, str]) -> Counter[str]:
    """Name → in how many types, functions and files it is declared."""
    places = {place for path, text in files.items() for place in _places(path, text)}
    return Counter(name for _, name in places)


def _places(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Where names are declared, and the names. In other languages than Python, any word of a file may be one."""
    if path.endswith((".py", ".pyi")):
        try:
            return iter(_in_python(ast.parse(text), path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return ((path, word) for word in _WORD.findall(text))


def _in_python(tree: ast.Module, path: str) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    todo: list[tuple[str, ast.AST]] = [(path, tree)]
    while todo:
        place, node = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.add((place, node.name))  # what it sets of `self` belongs to the type around it
            case ast.ClassDef():
                found.add((place, node.name))
                place = f"{place}/{node.name}"
            case ast.Name(ctx=ast.Store()):
                found.add((place, node.id))
            case ast.Attribute(ctx=ast.Store()):
                found.add((place, node.attr))
            case ast.alias():
                found.add((place, node.asname or node.name.rpartition(".")[2]))
            case _:
                pass
        todo += [(place, child) for child in ast.iter_child_nodes(node)]
    return found
