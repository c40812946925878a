"""What is new against a git revision, of what is only possible: a broken reference that was none then.

The revision itself is not analyzed: that would take its whole tree, the packages of its time and a second language
server. Names are compared instead, of the files that differ. A finding is new if the name that it misses was declared
in one of them and is not any more, or if its line was written since and uses that name more often than before.
What this does not see: an unchanged line whose object is of another type now. Pure.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from serena_central.symbols.syntax.messages import PythonStructure

Parse = Callable[[str], PythonStructure | None]
"""What a text of Python consists of; None where it can't be parsed."""

_WORD = re.compile(r"[^\W\d]\w*")

_QUOTED = re.compile(r"[`'\"‘“]+([^`'\"’”]+)[`'\"’”]+")

_UNQUALIFYING = re.compile(r"[^\W\d]\w*(?!\w|\.\w)")
"""Words that are not the part of a name before a dot."""


class Baseline:
    """Made of the texts of files that differ, by path: in the revision, and now; one that is not there lacks."""

    def __init__(self, before: Mapping[str, str], now: Mapping[str, str], parse: Parse) -> None:
        self._old_lines = {line.strip() for text in before.values() for line in text.splitlines()}
        self._old_words = _words(before.values())
        self._words = _words(now.values())
        self.gone = frozenset(_declared(before, parse) - _declared(now, parse)) | {
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


def _declared(files: Mapping[str, str], parse: Parse) -> Counter[str]:
    """Name → in how many types, functions and files it is declared."""
    places = {place for path, text in files.items() for place in _places(path, text, parse)}
    return Counter(name for _, name in places)


def _places(path: str, text: str, parse: Parse) -> Iterator[tuple[str, str]]:
    """Where names are declared, and the names. In other languages than Python, any word of a file may be one."""
    structure = parse(text) if path.endswith((".py", ".pyi")) else None
    if structure is None or structure.is_broken:
        return ((path, word) for word in _WORD.findall(text))
    return ((f"{path}/{place}", name) for place, name in structure.declared)
