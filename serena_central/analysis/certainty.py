"""Decides how certain it is that a reference is broken: a compiler rejects it, or the server may only not see it.

Certain is an undefined name, an import of something within the project, and a missing member where the language's own
compiler says so. Everything else is possible: members of dynamic objects, imports from packages that may not be
installed, what the code itself takes into account (`try: … except NameError`).
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from serena_central.core.errors import PathError
from serena_central.core.text import Text
from serena_central.symbols.syntax.messages import Imported, PythonStructure

Certainty = Literal["certain", "possible"]

_QUOTED = re.compile(r"[`'\"‘“]+([^`'\"’”]+)[`'\"’”]+")

_HANDLED = {
    "undefined name": frozenset({"NameError", "UnboundLocalError"}),
    "unresolved import": frozenset({"ImportError", "ModuleNotFoundError"}),
}
_ALL_HANDLED = frozenset({"Exception", "BaseException"})

_OF_RUNTIME = frozenset({"_", "ngettext", "get_ipython", "__builtins__", "display"})
"""Names that gettext and IPython put among the built-in ones."""

_OPEN_SCOPE = re.compile(r"^[^\S\n]*from\s+\S+\s+import\s+\*|\bglobals\(\)|\bexec\(|\bbuiltins\.\w+\s*=", re.MULTILINE)
"""Constructs that can define names invisibly."""


class _Import(NamedTuple):
    """`module` is written with slashes. `folder` is where a relative one begins, "" or with a slash at its end."""

    folder: str | None
    module: str
    names: list[str]


class Within:
    """What the files of a project say about where a module is. `modules` are those of Python, by their places: packages
    with an `__init__`, and files; `removed` those that a change took away."""

    def __init__(
        self,
        root: Path,
        files: Collection[str],
        gone: Collection[str],
        read: Callable[[Path], Text],
        parse: Callable[[str], PythonStructure | None],
    ) -> None:
        """`gone` are files that a change removed; `parse` is for texts of Python, None where one can't be parsed."""
        self.files = files
        self.parse = parse
        self._root = root
        self._text_of = read
        self.places = {place for file in files for place in _places(file)}
        self.removed = {module for file in gone if (module := _module_of(file))}
        self.modules = {module for file in files if (module := _module_of(file))} | self.removed

    def read(self, file: str) -> str:
        """The text of a file, "" if it can't be read."""
        try:
            return self._text_of(self._root / file).content
        except PathError:
            return ""

    @cached_property
    def uses_cgo(self) -> bool:
        """Whether any of the Go files does."""
        return any(_CGO.search(self.read(file)) for file in self.files if file.endswith(".go"))

    def has_folder(self, path: str) -> bool:
        return (self._root / path).is_dir()


class PythonFile:
    """What is read once of a file that has findings, by its syntax tree."""

    def __init__(self, path: str, within: Within) -> None:
        self._path = path
        self._text = within.read(path)
        self._within = within

    def is_certain(self, what: str, line0: int, message: str) -> bool:
        if what == "missing member" or self._is_handled(line0, what):
            return False
        if what == "undefined name":
            name = next(iter(_QUOTED.findall(message)), "")
            return name not in _OF_RUNTIME and not _OPEN_SCOPE.search(self._text)
        return any(map(self._is_gone, self._imports(line0)))

    @cached_property
    def _structure(self) -> PythonStructure | None:
        return self._within.parse(self._text)

    def _is_handled(self, line0: int, what: str) -> bool:
        """Whether the line lies in a `try` that expects it; so it may be in any file that can't be parsed."""
        if self._structure is None or self._structure.is_broken:
            return True
        handled = _HANDLED[what] | _ALL_HANDLED
        return any(
            one.first0 <= line0 <= one.last0 and (one.handled is None or not handled.isdisjoint(one.handled))
            for one in self._structure.tried
        )

    def _imports(self, line0: int) -> Iterator[_Import]:
        """What the statement of a line imports."""
        for one in self._structure.imported if self._structure else ():
            if one.first0 <= line0 <= one.last0 and (found := self._import(one)) is not None:
                yield found

    def _import(self, one: Imported) -> _Import | None:
        """None for what is above the project."""
        parts = self._path.split("/")
        if one.level > len(parts):
            return None
        folder = "".join(f"{part}/" for part in parts[: -one.level]) if one.level else None
        return _Import(folder, one.module.replace(".", "/"), one.names)

    def _is_gone(self, imported: _Import) -> bool:
        """Whether a module of the project is not there, or nothing of that name in it."""
        begin = self._begin_of(imported)
        if begin is None:
            return False
        place = (begin + imported.module).rstrip("/")
        found = [file for file in _files_of(place) if file in self._within.files]
        if not found and imported.module:
            return not self._of_project(place)
        text = "\n".join(map(self._within.read, found))
        if "__getattr__" in text or _OPEN_SCOPE.search(text):
            return False
        return any(
            not re.search(rf"\b{re.escape(name)}\b", text) and not self._of_project(f"{place}/{name}".lstrip("/"))
            for name in imported.names
        )

    def _begin_of(self, imported: _Import) -> str | None:
        """The folder in which a module's first part is, or was; None for one that is not the project's.

        A folder without `__init__` may have the name of a package that is not installed.
        """
        if imported.folder is not None:
            return imported.folder
        top, within = imported.module.partition("/")[0], self._within
        return next(
            (
                folder
                for folder in ("src/", *self._import_roots())
                if folder + top in within.modules or folder + imported.module in within.removed
            ),
            None,
        )

    def _import_roots(self) -> list[str]:
        """Folders above the file that may be on Python's path: a package's own folder is not."""
        return [folder for folder in _folders(self._path) if f"{folder}__init__.py" not in self._within.files]

    def _of_project(self, place: str) -> bool:
        """Whether files of a module or package are there, in any language."""
        return place in self._within.places


def _folders(path: str) -> Iterator[str]:
    """Folders above a file, the project's root first: "", "a/", "a/b/"."""
    parts = path.split("/")[:-1]
    return ("".join(f"{part}/" for part in parts[:count]) for count in range(len(parts) + 1))


def _files_of(place: str) -> list[str]:
    inner = f"{place}/" if place else ""
    return [f"{place}.py", f"{place}.pyi", f"{inner}__init__.py", f"{inner}__init__.pyi"]


def _module_of(file: str) -> str | None:
    """The place of the module that a file is: of a package, its folder."""
    place, dot, ending = file.rpartition(".")
    return place.removesuffix("/__init__") if dot and ending in ("py", "pyi") else None


def _places(file: str) -> Iterator[str]:
    """A file without what follows the first dot of its name, and the folders that hold it."""
    folder, slash, name = file.rpartition("/")
    yield folder + slash + name.partition(".")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


_TYPESCRIPT_CONFIGURED = frozenset({"2503", "2580", "2584", "7016"})
"""Complaints about types that a package, not the project, has to bring."""

_RELATIVE = re.compile(r"""['"]\.{1,2}/""")


def is_certain_elsewhere(what: str, code: str, message: str, path: str, within: Within) -> bool:
    """For languages whose compiler refuses what is reported here; the project says how it is built."""
    name = path.rpartition("/")[2]
    match name.rpartition(".")[2]:
        case "go":
            return code != "BrokenImport" or any(module in message for module in _go_modules(within))
        case "rs":
            return code.startswith("E") or code in ("unresolved-ident",)
        case "ts" | "tsx" | "mts" | "cts" | "js" | "jsx" | "mjs" | "cjs":
            if what == "unresolved import":
                return bool(_RELATIVE.search(message))
            return code not in _TYPESCRIPT_CONFIGURED and not _lacks_packages(path, within)
        case _:
            return True


_CGO = re.compile(r'^[^\S\n]*(?:import\s+)?"C"[^\S\n]*$', re.MULTILINE)

_GO_IMPORT = re.compile(r'^[^\S\n]*(?:import\s+)?(?:([\w.]+)\s+)?"([^"\n]+)"', re.MULTILINE)

_UNDEFINED = re.compile(r"undefined: (?:(\w+)\.)?\w+")


def is_certain_in_restricted_go(message: str, path: str, within: Within, unloaded: Collection[str]) -> bool:
    """Where gopls runs without cgo and without version control: an undefined name is certain anyway, in a package
    that loads, of it or of another of the project. `unloaded`: folders of packages with imports that can't be resolved.
    """
    found = _UNDEFINED.search(message)
    if found is None or path.rpartition("/")[0] in unloaded or within.uses_cgo:
        return False
    return found[1] is None or _is_own_package(found[1], within.read(path), _go_modules(within))


def _is_own_package(name: str, text: str, modules: Collection[str]) -> bool:
    return any(
        (alias or imported.rpartition("/")[2]) == name
        and any(imported == module or imported.startswith(f"{module}/") for module in modules)
        for alias, imported in _GO_IMPORT.findall(text)
    )


def _go_modules(within: Within) -> list[str]:
    texts = [within.read(file) for file in within.files if file.rpartition("/")[2] == "go.mod"]
    return [found[1] for text in texts if (found := re.search(r"^module\s+(\S+)", text, re.MULTILINE))]


def _lacks_packages(path: str, within: Within) -> bool:
    """Whether a manifest above a file names packages, and none are installed."""
    manifests = [f"{folder}package.json" for folder in _folders(path) if f"{folder}package.json" in within.files]
    wanted = any(re.search(r'"(?:devD|peerD|d)ependencies"\s*:\s*\{\s*"', within.read(one)) for one in manifests)
    return wanted and not any(within.has_folder(f"{folder}node_modules") for folder in _folders(path))
