"""Finds which Python files can use another's top-level names, by their import lines alone.

Such a symbol is reached by an import of its module, or of one that hands it on: what does so names the symbol, names
the module, or imports `*`. Where in doubt a file counts as an importer (text that only looks like an import, roots of
packages that are not known): then the language server is asked, and it decides.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

_IMPORT = b"import"

_BEGINNING = re.compile(rb"(?:^(?:\xef\xbb\xbf)?|[;:])[^\S\n]*(?=from\b|import\b)", re.MULTILINE)
_STATEMENT = re.compile(
    rb"from\b(?:[^\n;:\\]|\\\r?\n){0,1000}?\bimport\b[^\S\n]*"
    rb"(?:\((?:[^()#]|#[^\n]*+)*+\)|(?:[^\n;\\]|\\\r?\n)*)"
    rb"|import\b(?:[^\n;\\]|\\\r?\n)*"
)
_CALL = re.compile(rb"import_module(?<!\wimport_module)\([^\n)]*")

_GOES_ON = b"\\\n", b"\\\r\n"
"""The end of a line that the next one continues."""

_FROM = re.compile(r"from\s*(\.*)\s*([\w.]*)\s*import\b(.*)", re.DOTALL)
_ITEM = re.compile(r"[^\W\d][\w.]*")
_COMMENT = re.compile(r"#[^\n]*")
_ALIAS = re.compile(r"\bas\s+\w+")

Parts = tuple[str, ...]
"""A module's dotted name, in parts."""


class Importers:
    """Which files import which. `lines`: Python file → its import statements."""

    def __init__(self, lines: Mapping[str, Sequence[bytes]]) -> None:
        modules = _Modules(lines)
        importers: dict[str, list[str]] = {}
        for path, statements in lines.items():
            for imported in {file for line in statements for file in modules.imported(path, line)}:
                importers.setdefault(imported, []).append(path)
        # Tuples of texts are nothing that the garbage collector looks at for long.
        self._importers = {path: tuple(some) for path, some in importers.items()}

    def reach(self, path: str, *, uses: Callable[[str], bool], hands_on: Callable[[str], bool]) -> bool:
        """Whether a further file can use a symbol of a file.

        `uses` tells which files hold the symbol's name, `hands_on` which could let others have it without that.
        """
        seen, open_ends = {path}, [path]
        while open_ends:
            for importer in self._importers.get(open_ends.pop(), ()):
                if importer in seen:
                    continue
                if uses(importer):
                    return True
                seen.add(importer)
                if hands_on(importer):
                    open_ends.append(importer)
        return False


def import_statements(text: bytes) -> list[bytes]:
    """Import statements with all names that they import, and calls of `import_module`: servers follow those, too.

    Only lines with the word are looked at closer: one expression for the whole text takes ten times as long.
    """
    found: list[bytes] = []
    end, at = 0, text.find(_IMPORT)
    while at >= 0:
        begin = max(text.rfind(b"\n", end, at), end)
        while text[max(begin - 2, 0) : begin + 1].endswith(_GOES_ON):
            begin = max(text.rfind(b"\n", end, begin - 1), end)
        end = at + len(_IMPORT)
        for beginning in _BEGINNING.finditer(text, begin, end):
            if statement := _STATEMENT.match(text, beginning.end()):
                found.append(statement[0])
                end = max(statement.end(), end)
                break
        at = text.find(_IMPORT, end)
    return found + _CALL.findall(text)


def imports(path: str, statements: Iterable[bytes], module: str) -> bool:
    """Whether one of a file's import statements may mean another file."""
    modules = _Modules([module])
    return any(module in modules.imported(path, statement) for statement in statements)


class _Modules:
    """The modules of some files, by the names that imports use."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_last: dict[str, list[tuple[Parts, str]]] = {}
        for path in paths:
            parts = _module(path)
            if parts:
                self._by_last.setdefault(parts[-1], []).append((parts, path))
        self._known: dict[Parts, list[str]] = {}

    def imported(self, path: str, statement: bytes) -> Iterable[str]:
        """Files that an import statement of a file may mean."""
        text = _ALIAS.sub("", _COMMENT.sub("", statement.decode("utf-8", "replace").replace("\\", " ")))
        found = _FROM.match(text)
        if found is None:
            for item in _ITEM.findall(text.removeprefix("import")):
                parts = tuple(item.split("."))
                for length in range(1, len(parts) + 1):
                    yield from self._files(parts[:length])
            return
        dots, module, names = found.groups()
        base: Parts = tuple(filter(None, module.split(".")))
        if dots:
            # Relative ones say exactly which file they mean; a package's name may stand at several places.
            folder = PurePosixPath(path).parent.parts
            base = (*folder[: max(len(folder) - len(dots) + 1, 0)], *base)
        for parts in (base, *((*base, name) for name in _ITEM.findall(names))):
            yield from (self._at(parts) if dots else self._files(parts))

    def _files(self, parts: Parts) -> Sequence[str]:
        """Files that could be a module, whatever folder its packages lie in."""
        if parts not in self._known:
            among = self._by_last.get(parts[-1], ()) if parts else ()
            self._known[parts] = [path for whole, path in among if whole[-len(parts) :] == parts]
        return self._known[parts]

    def _at(self, parts: Parts) -> Sequence[str]:
        return [path for path in self._files(parts) if _module(path) == parts]


def _module(path: str) -> Parts:
    file = PurePosixPath(path)
    return file.parent.parts if file.stem == "__init__" else file.with_suffix("").parts
