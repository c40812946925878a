"""Files of other languages that name a symbol: entry points in manifests, members in templates and markup.

No language server connects these. Where a name stands behind that of its module or type (`module:name`), it is the
symbol's; elsewhere it may be a word like any other.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import anyio
import anyio.to_thread

from serena_central.analysis.sibling_uses import AROUND_S, Siblings
from serena_central.core.errors import PathError
from serena_central.files.text import in_utf8, read_quickly
from serena_central.files.words import words_of_each
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.common_names import BehindHolder, behind_import, is_unusual
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_code import others_around
from serena_central.symbols.index import Hit
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import CALLABLE, TYPES

MOST_READ = 100
"""Files that are looked into for one name: beyond, it is an everyday word."""

_ACCESSOR = re.compile(r"(?:get|is|set)([A-Z]\w*)")

_WITH_PROPERTIES = (".groovy", ".kt")
"""Files whose language calls accessors of Java (`getSize()`) by the names of their properties (`size`)."""

_WITH_TYPES_OF_JAVA = (*_WITH_PROPERTIES, ".gradle", ".kts", ".scala")
"""Files in which a word may be a type of Java, however everyday."""

_WITH_IMPORTS = (".astro", ".html", ".ipynb", ".mdx", ".pxd", ".pxi", ".pyx", ".svelte", ".vue")
"""Files with code of Python or JavaScript in them that the language's own server does not read."""

_PAGES = (
    ".aspx",
    ".cshtml",
    ".ejs",
    ".erb",
    ".hbs",
    ".htm",
    ".html",
    ".j2",
    ".jinja",
    ".jinja2",
    ".jsp",
    ".php",
    ".twig",
)
"""Files of pages, in which functions of scripts are called."""

_EXTERN = re.compile(r"\bextern\b")

_DEFINED = CALLABLE | {SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT}


class Named(NamedTuple):
    """Files, root-relative. `certain` hold the name behind that of its module or type, `possible` hold it."""

    certain: list[str]
    possible: list[str]


async def named_elsewhere(project: Project, hit: Hit) -> Named:
    """Which files of other languages name a symbol. Those of languages that define such a name themselves mean that."""
    name, named = hit.symbol.name, Named([], [])
    if not name.isidentifier():
        return named
    languages = project.languages
    defined = set[str | None]()
    for other in project.index.find(parse_pattern(name)):
        language = languages.language_of(other.path)
        if language in defined or other.symbol.kind not in _DEFINED:
            continue  # thousands may have the name, and each would be read
        if not await _is_declared_alone(project, other):
            defined.add(language)
    files = await project.navigation.possible.files_elsewhere(hit)
    asked = [path for path in files if languages.language_of(path) not in defined]
    behind, is_imported, called = (
        BehindHolder(hit),
        behind_import(hit),
        _called_by_page(hit, languages.language_of(hit.path)),
    )
    for path in asked[:MOST_READ]:
        try:
            text = (await project.read(path)).text.content
        except PathError:
            continue
        is_certain = behind.stands_in(text) or (path.endswith(_WITH_IMPORTS) and is_imported(text))
        is_certain = is_certain or (called is not None and path.endswith(_PAGES) and called.search(text) is not None)
        (named.certain if is_certain else named.possible).append(path)
    named.possible.extend(asked[MOST_READ:])
    return named


def _called_by_page(hit: Hit, language: str | None) -> re.Pattern[str] | None:
    """A call of a function at the top of a script in a page, in `onclick="go()"` or in a script of its own."""
    if language not in ("javascript", "typescript") or hit.symbol.container >= 0 or hit.symbol.kind not in CALLABLE:
        return None
    name = re.escape(hit.symbol.name)
    return re.compile(rf"{name}(?<![\w$.]{name})\(")


async def _is_declared_alone(project: Project, hit: Hit) -> bool:
    """Whether a definition only says that there is one, perhaps in another language: `fn start();` of Rust in
    `extern "C"`."""
    try:
        text = (await project.read(hit.path)).text
    except PathError:
        return True
    container = hit.symbol.container
    is_member = container >= 0 and hit.file.symbols[container].kind in TYPES
    is_extern = not is_member or _EXTERN.search(text.line(hit.symbol.name_line)) is not None
    return is_extern and text.slice(hit.symbol.range).rstrip().endswith(";")


def may_mean(project: Project, hit: Hit, path: str) -> bool:
    """Whether a file that names a symbol may mean it by that."""
    is_javas = hit.symbol.kind in TYPES and project.languages.language_of(hit.path) == "java"
    return is_unusual(hit.symbol.name) or (is_javas and path.endswith(_WITH_TYPES_OF_JAVA))


async def used_as_property(project: Project, hit: Hit) -> str | None:
    """Which file may call an accessor of Java by the name of its property, as a clause."""
    accessor = _ACCESSOR.fullmatch(hit.symbol.name)
    if accessor is None or hit.symbol.kind not in CALLABLE or project.languages.language_of(hit.path) != "java":
        return None
    name = accessor[1]
    written = [path for path in project.tree.files if path.endswith(_WITH_PROPERTIES)]
    # getURL is `url` in Kotlin and `URL` in Groovy.
    words = {name, name[0].lower() + name[1:], re.sub("^[A-Z]+(?![a-z])", lambda found: found[0].lower(), name)}
    asked = {path for word in words for path in await project.navigation.possible.holding(written, word)}
    property_name = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(words))})(?!\w|\s*\()")
    for path in sorted(asked):
        try:
            text = (await project.read(path)).text.content
        except PathError:
            continue
        if found := property_name.search(text):
            return f"{path} holds {found[0]}, and may call it as a property of that name"
    return None


class NamedAround(NamedTuple):
    """Symbols, by file and place → files around the project that name them, by absolute paths. `error`: why that is not
    known."""

    named: Mapping[tuple[str, int], Named] = MappingProxyType({})
    error: str | None = None

    def of(self, hit: Hit) -> Named:
        return self.named.get((hit.path, hit.place)) or Named([], [])


async def named_around(project: Project, siblings: Siblings, hits: Iterable[Hit]) -> NamedAround:
    """Which files of other languages name symbols in what encloses their project. They are read once for all."""
    enclosing = siblings.enclosing(project)
    wanted = [hit for hit in hits if hit.symbol.name.isidentifier()]
    if enclosing is None or not enclosing.may_open or not wanted:
        return NamedAround()
    root, files = enclosing.root, None
    for opened in siblings.opened_at([root]):
        await opened.fresh()
        files = list(opened.tree.files)
    access, ended = siblings.access(root), threading.Event()

    def read() -> NamedAround:
        others = others_around(project, {hit.path for hit in wanted}, root, files)
        return NamedAround(_named(root, [path for path in others if not access.hides(path)], wanted, ended.is_set))

    try:
        with anyio.fail_after(AROUND_S):
            return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    except TimeoutError:
        return NamedAround(error=f"searching them took longer than {AROUND_S:g} s")
    finally:
        ended.set()


def _named(
    root: Path, files: Iterable[str], hits: Collection[Hit], stopped: Callable[[], bool]
) -> dict[tuple[str, int], Named]:
    by_name: dict[str, list[Hit]] = {}
    for hit in hits:
        by_name.setdefault(hit.symbol.name, []).append(hit)
    told: dict[tuple[str, int], Named] = {}
    for path, words in words_of_each(root, files, by_name, stopped=stopped):
        text = _text(f"{root}/{path}") if words.counts else ""
        for hit in (hit for name in words.counts for hit in by_name[name]):
            named = told.setdefault((hit.path, hit.place), Named([], []))
            is_everyday = len(named.certain) + len(named.possible) >= MOST_READ
            is_certain = not is_everyday and BehindHolder(hit).stands_in(text)
            (named.certain if is_certain else named.possible).append(f"{root}/{path}")
    return told


def _text(file: str) -> str:
    return (in_utf8(read_quickly(file) or b"", file) or b"").decode("utf-8", "replace")
