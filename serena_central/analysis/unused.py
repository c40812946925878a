"""Unused symbols: functions, methods and types that nothing refers to outside of their own bodies.

What the language server could not be asked about is no finding, and neither is what a rule of `liveness` keeps. Inside
an unused type its members are not told again.
"""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collect import Collector
from serena_central.analysis.liveness import Language, kept
from serena_central.analysis.outcome import Finding, Outcome
from serena_central.analysis.siblings import Siblings, Told, told_by_siblings
from serena_central.analysis.uses import Definition
from serena_central.core.errors import PathError, listed
from serena_central.core.text import Position
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

KINDS = frozenset(
    {
        SymbolKind.FUNCTION,
        SymbolKind.METHOD,
        SymbolKind.CLASS,
        SymbolKind.INTERFACE,
        SymbolKind.ENUM,
        SymbolKind.STRUCT,
    }
)

NAMED = 5
"""Names in one remark."""

Confidence = Literal["high", "medium"]


class Unused(Finding, frozen=True):
    """A symbol. `high`: its name stands nowhere else in the code of its language."""

    name_path: str
    kind: int
    confidence: Confidence
    reason: str


class UnusedFound(Outcome[Unused]):
    """Of symbols. `kept`: reason → how many symbols without a reference count as used."""

    kept: dict[str, int] = msgspec.field(default_factory=dict[str, int])


async def unused_symbols(
    project: Project, collector: Collector, siblings: Siblings, path: str, only: Collection[str] | None = None
) -> UnusedFound:
    """Findings in a file or folder; with `only`, in those of its files. What siblings use is none.

    Raises:
        PathError: the path can't be used.
    """
    collected = await collector.collect(path, KINDS, within=True)
    remarks = [*collected.remarks, *await blind_spots(project, collected.definitions)]
    definitions = [one for one in collected.definitions if only is None or one.path in only]
    result = UnusedFound(found=[], checked=len(definitions), kept={}, remarks=remarks)
    suspects = await _suspects(project, definitions, result.kept)
    told = await told_by_siblings(project, siblings, [definition for _, definition in suspects])
    found: list[Hit] = []
    open_names: set[str] = set()
    for hit, definition in suspects:
        if (hit.path, hit.name_path) in told.used or any(_within(hit, other) for other in found):
            continue
        if definition.name in told.untold:
            open_names.add(definition.name)
            continue
        found.append(hit)
        result.found.append(_finding(hit, elsewhere=definition.asked or definition.name in told.held))
    result.remarks += told.remarks
    if open_names:
        result.remarks.append(_left_open(open_names, told))
    return result


def _left_open(names: Collection[str], told: Told) -> str:
    some = ", ".join(sorted(names)[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    where = listed(sorted({sibling for name in names for sibling in told.untold[name]}))
    return f"Not taken for unused: {some}. In {where}, where these names stand, nobody can tell what they mean."


async def _suspects(
    project: Project, definitions: Sequence[Definition], reasons: dict[str, int]
) -> list[tuple[Hit, Definition]]:
    """What nothing in its project refers to and no rule keeps, file by file; counts the `reasons` of what is kept."""
    unused: dict[str, list[tuple[Hit, Definition]]] = {}
    for definition in definitions:
        hit = _hit(project, definition)
        if hit is not None and _is_unused(hit, definition):
            unused.setdefault(definition.path, []).append((hit, definition))
    libraries = _libraries(project.tree.files)
    interface_methods = _interface_methods(project)
    found: list[tuple[Hit, Definition]] = []
    for file, pairs in unused.items():
        try:
            text = (await project.read(file)).text
        except PathError:
            continue
        language = Language(project.languages.language_of(file) or "", _below(file, libraries), interface_methods)
        for hit, definition in pairs:
            reason = kept(hit, text, language, project.settings.validation)
            if reason is None:
                found.append((hit, definition))
            else:
                reasons[reason.reason] = reasons.get(reason.reason, 0) + 1
    return found


def _hit(project: Project, definition: Definition) -> Hit | None:
    if definition.path not in project.index:
        return None
    file = project.index.file(definition.path)
    place = file.place_of(definition.name_path)
    return None if place is None else Hit(definition.path, file, place)


def _is_unused(hit: Hit, definition: Definition) -> bool:
    """Whether it is known that nothing outside of its own definition names a symbol."""
    body = hit.symbol.range
    return (
        definition.known
        and not definition.outside
        and not any(
            path != hit.path or not body.contains(Position(*place))
            for path, places in definition.uses.items()
            for place in places
        )
    )


def _within(hit: Hit, other: Hit) -> bool:
    return hit.path == other.path and other.symbol.range.contains(hit.symbol.name_position)


def _finding(hit: Hit, *, elsewhere: bool) -> Unused:
    confidence: Confidence = "medium" if elsewhere else "high"
    reason = (
        "its name stands elsewhere, and the language server finds no use of it"
        if elsewhere
        else "its name stands nowhere else"
    )
    return Unused(hit.path, hit.symbol.name_line, hit.name_path, hit.symbol.kind, confidence, reason)


def _libraries(files: Collection[str]) -> list[str]:
    """Folders of crates that are libraries."""
    return [str(PurePosixPath(path).parent) for path in files if path.endswith("src/lib.rs")]


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _interface_methods(project: Project) -> set[str]:
    """Names that interfaces of the project hold: in Go and others a method need not say that it implements one."""
    names: set[str] = set()
    for path in project.index.paths():
        symbols = project.index.file(path).symbols
        names.update(
            symbol.name
            for symbol in symbols
            if symbol.container >= 0 and symbols[symbol.container].kind == SymbolKind.INTERFACE
        )
    return names
