"""What somebody loads by its name in Python, and whose members they may look up: what a string names
(`"shop.middleware.Stamp"`), modules that no code imports and that something names, and classes that no code refers to.

So Django has its settings, URLs, migrations and commands, Alembic its versions, and a host its plug-ins. A program that
is run, or a script that lies in no package, is not meant; nor is dead code: that nobody imports a module says nothing.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import anyio.to_thread

from serena_central.analysis.python_imports import import_statements, imports
from serena_central.core.errors import PathError
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_IS_RUN = re.compile(r"__name__\s*==")

_BASE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?!\w|\s*=)")
_PACKAGE = re.compile(r"(?:from|import)\s+([A-Za-z_]\w*)")

_PATH_END = re.compile(r"[\w.]*\Z")

_PROSE = (".md", ".po", ".pot", ".rst", ".txt")

MOST_READ = 100
"""Files that are looked into for the name of one module."""

MOST_NAMING = 20
"""Files that hold the name of a class: where more do, one of them will refer to it."""

_OF_PACKAGES = ("__init__", "__main__")
"""Modules that are loaded with what lies below them, or run."""

_WALKERS = ("iter_modules(", "walk_packages(")
_WALKS = re.compile(r"\b(?:iter_modules|walk_packages)\(")

_LONGEST_PATH = 200
"""Characters of a path of names before the last two."""


class _Path(NamedTuple):
    """Two names that follow each other in a path of names; `is_quoted`: in one that is all of a string up to there."""

    pattern: re.Pattern[str]
    is_quoted: bool

    @classmethod
    def of(cls, holder: str, joint: str, name: str, behind: str, *, is_quoted: bool = True) -> "_Path":
        """`joint` and `behind` are expressions. The names are found first: an expression that begins with a quotation
        mark is tried at each of them."""
        first = re.escape(holder)
        return cls(re.compile(rf"{first}(?<!\w{first}){joint}{re.escape(name)}{behind}"), is_quoted)

    def search(self, text: str) -> int | None:
        """Where the first one begins."""
        for found in self.pattern.finditer(text):
            before = text[max(found.start() - _LONGEST_PATH, 0) : found.start()]
            if not self.is_quoted or _PATH_END.sub("", before).endswith(("'", '"')):
                return found.start()
        return None


class LoadedByName:
    """Knows such things of one project. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._unimported: dict[str, bool] = {}
        self._unnamed: dict[tuple[str, int], bool] = {}
        self._naming: dict[str, str | None] = {}

    async def reason(self, hit: Hit) -> str | None:
        """Why a symbol may be looked up by its name, as a clause."""
        is_open = hit.symbol.container < 0 and not hit.symbol.name.startswith("_")
        if is_open and await self._is_unimported(hit.path) and (loader := await self._loader(hit)):
            return f"no code imports its file, and {loader} may look it up by its name"
        container = hit.symbol.container
        holder = hit.file.symbols[container].name if container >= 0 else self._module(hit.path)
        quoted = _Path.of(holder, "[.:]", hit.symbol.name, "[\"']")
        paths = list(await self._project.navigation.possible.candidates(hit))
        if found := await anyio.to_thread.run_sync(self._place, paths, quoted, quoted, abandon_on_cancel=True):
            return f"a string in {found} names it"
        return None

    async def may_call(self, member: Hit) -> bool:
        """Whether nobody but what loads a class by its name may use one of its members: no code refers to the class."""
        container = member.symbol.container
        if container < 0 or member.file.symbols[container].kind not in TYPES or member.symbol.name.startswith("_"):
            return False
        key = member.path, container
        if key not in self._unnamed:
            self._unnamed[key] = await self._is_unnamed(Hit(member.path, member.file, container))
        return self._unnamed[key]

    async def _is_unnamed(self, hit: Hit) -> bool:
        """Whether no code names a class, but its definition."""
        if len(await self._project.navigation.possible.candidates(hit)) > MOST_NAMING:
            return False
        found = await self._project.navigation.possible.in_code(hit)
        return not any(found.code.values()) and not found.unexamined

    async def _loader(self, hit: Hit) -> str | None:
        """What may load a file that no code imports, as the beginning of a clause."""
        file, text = PurePosixPath(hit.path), self._text(hit.path)
        if not file.stem.isidentifier():
            return "whoever loads it by its path"
        if hit.symbol.kind in TYPES and (package := self._foreign_base(text, hit.symbol.name)):
            return f"{package}, of which it has a base,"
        if hit.path not in self._naming:
            self._naming[hit.path] = await self._naming_file(file)
        return self._naming[hit.path]

    async def _naming_file(self, file: PurePosixPath) -> str | None:
        """Who names the module of a file, or loads all modules of its package, as the beginning of a clause."""
        files = [path for path in self._project.tree.files if not path.endswith(_PROSE)]
        holder = self._package(file)
        quoted = _Path.of(holder, r"\.", file.stem, "[\"':]")
        named = _Path.of(holder, "[./]", file.stem, r"(?!\w)", is_quoted=False)
        holding = await self._project.navigation.possible.holding(files, file.stem)
        others = [path for path in holding if path != str(file)][:MOST_READ]
        found = await anyio.to_thread.run_sync(self._place, others, quoted, named, abandon_on_cancel=True)
        if found:
            return f"what {found} names it to"
        walking = await self._walking(file)
        return f"{walking}, which loads all modules of its package," if walking else None

    async def _walking(self, file: PurePosixPath) -> str | None:
        """The first place that composes the names of modules in the package of a file, or walks through them, as
        `path:line`."""
        package, own = self._package(file), str(file.parent / "__init__.py")
        word = re.compile(rf"{re.escape(package)}(?<!\w{re.escape(package)})(?!\w)")
        composed = _Path.of(package, r"\.", "", r"""(?:\{|%s|["']\s*[+%])""")
        of_python = [path for path in self._project.tree.files if path.endswith(".py")]
        holding = await self._project.navigation.possible.holding(of_python, package)
        for path in dict.fromkeys([own, *holding[:MOST_READ]]):
            text = self._text(path)
            start = composed.search(text)
            walks = start is None and any(one in text for one in _WALKERS) and (path == own or word.search(text))
            if walks and (found := _WALKS.search(text)):
                start = found.start()
            if start is not None:
                line0 = text.count("\n", 0, start)
                return f"{path}:{line0}"
        return None

    def _place(self, paths: Sequence[str], in_python: _Path, elsewhere: _Path) -> str | None:
        """The first place in some files, as `path:line`, where the names for their language stand; in a thread."""
        for path in paths:
            text = self._text(path)
            if (start := (in_python if path.endswith(".py") else elsewhere).search(text)) is not None:
                line0 = text.count("\n", 0, start)
                return f"{path}:{line0}"
        return None

    def _foreign_base(self, text: str, name: str) -> str | None:
        """The package, neither of this project nor Python's own, from which a class of a text has a base."""
        head = re.search(rf"^class\s+{re.escape(name)}\s*(?:\[[^\]]*\])?\(([^)]*)\)", text, re.MULTILINE)
        statements = [one.decode("utf-8", "replace") for one in _imports_of(text)] if head else []
        for base in _BASE.findall(head[1]) if head else ():
            for statement in statements:
                package = _PACKAGE.match(statement)
                if package and re.search(rf"\b{base}\b", statement) and self._is_foreign(package[1]):
                    return package[1]
        return None

    def _is_foreign(self, package: str) -> bool:
        own = (f"/{package}.py", f"/{package}/__init__.py")
        return package not in sys.stdlib_module_names and not any(
            f"/{path}".endswith(own) for path in self._project.tree.files
        )

    async def _is_unimported(self, path: str) -> bool:
        """Whether a file of Python is loaded by somebody, and no code imports it."""
        if path not in self._unimported:
            self._unimported[path] = await self._find_out(path)
        return self._unimported[path]

    async def _find_out(self, path: str) -> bool:
        file, files = PurePosixPath(path), self._project.tree.files
        in_package = str(file.parent / "__init__.py") in files
        if file.suffix != ".py" or file.stem in _OF_PACKAGES or not (in_package or not file.stem.isidentifier()):
            return False
        if _IS_RUN.search(self._text(path)):
            return False
        if not file.stem.isidentifier():
            return True
        of_python = [one for one in files if one.endswith(".py")]
        holding = await self._project.navigation.possible.holding(of_python, file.stem)
        near_first = sorted(holding, key=lambda one: PurePosixPath(one).parent != file.parent)
        return not await anyio.to_thread.run_sync(self._is_imported, path, near_first, abandon_on_cancel=True)

    def _is_imported(self, path: str, by: Sequence[str]) -> bool:
        return any(imports(one, _imports_of(self._text(one)), path) for one in by)

    def _text(self, path: str) -> str:
        try:
            return self._project.languages.read_text(self._project.root / path).content
        except PathError:
            return ""

    def _module(self, path: str) -> str:
        """The name of a file's module; of a package, that of its folder."""
        file = PurePosixPath(path)
        return self._package(file) if file.stem == "__init__" else file.stem

    def _package(self, file: PurePosixPath) -> str:
        """The name of the folder of a file, which may be the root."""
        return file.parent.name or self._project.root.name


def _imports_of(text: str) -> list[bytes]:
    return import_statements(text.encode("utf-8", "replace"))
