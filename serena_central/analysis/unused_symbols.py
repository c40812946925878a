"""Unused symbols: functions, methods and types that nothing refers to outside of their own bodies.

What the language server could not be asked about is no finding, and neither is what a rule of `keep_rules` keeps.
Members of an unused type are not listed.
"""

import math
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import anyio
import msgspec

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collection import Definition
from serena_central.analysis.collector import Collector
from serena_central.analysis.objections import KeepRules
from serena_central.analysis.outcome import Finding, Outcome
from serena_central.analysis.sibling_uses import SiblingAnswer, Siblings, ask_siblings
from serena_central.core.errors import PathError, listed
from serena_central.core.progress import report
from serena_central.core.text import Position
from serena_central.core.words import counted
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.symbol_views import Uses
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

JUDGED_PART = 0.3
"""Of the time, for judging what no reference was found of."""

NAMED = 5
"""Names in one note."""

Confidence = Literal["high", "medium"]


class Unused(Finding, frozen=True):
    """A symbol. `high`: its name occurs nowhere else in the project, and it is not published."""

    name_path: str
    kind: int
    confidence: Confidence
    reason: str


class UnusedFound(Outcome[Unused]):
    """Of symbols. `kept`: reason → how many symbols without a reference count as used."""

    kept: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    unasked: int = 0
    """Symbols that time did not suffice for."""


class _Suspect(NamedTuple):
    """What nothing in its project refers to. `public`: others may. `named`: files of other languages hold its name."""

    hit: Hit
    definition: Definition
    public: bool
    named: Sequence[str]


async def unused_symbols(
    project: Project,
    collector: Collector,
    siblings: Siblings,
    path: str,
    only: Collection[str] | None = None,
    until: float = math.inf,
) -> UnusedFound:
    """Findings in a file or folder; with `only`, in those of its files. Symbols that siblings use are not findings.

    Symbols that could not be checked by `until` (the loop's clock) are not findings, but counted.

    Raises:
        PathError: the path can't be used.
    """
    judging_s = JUDGED_PART * (until - anyio.current_time()) if math.isfinite(until) else 0.0
    collected = await collector.collect(path, KINDS, within=True, until=until - judging_s)
    notes = [*collected.notes, *await blind_spots(project, collected.definitions)]
    definitions = [one for one in collected.definitions if only is None or one.path in only]
    result = UnusedFound(found=[], checked=len(definitions), kept={}, notes=notes, unasked=collected.unasked)
    suspects, unjudged = await _suspects(project, definitions, result.kept, until)
    told = await ask_siblings(project, siblings, [suspect.definition for suspect in suspects])
    found: list[Hit] = []
    open_names: set[str] = set()
    possibly_used: list[str] = []
    for hit, definition, public, named in suspects:
        if (hit.path, hit.name_path) in told.used or any(_within(hit, other) for other in found):
            continue
        if definition.name in told.unresolved_names:
            open_names.add(definition.name)
            continue
        if anyio.current_time() >= until:
            unjudged += 1
            continue
        if definition.asked and await _may_be_used(project, hit):
            possibly_used.append(hit.name_path)
            continue
        found.append(hit)
        elsewhere = definition.asked or definition.name in told.held
        result.found.append(_finding(hit, elsewhere=elsewhere, public=public, named=named))
    if unjudged:
        result.unasked += unjudged
        result.notes.append(
            f"Out of time: {counted(unjudged, 'symbol')} without a known reference were not examined and may be "
            "unused. Pass a higher seconds or a smaller folder."
        )
    result.notes += told.notes
    if open_names:
        result.notes.append(_left_open(open_names, told))
    if possibly_used:
        result.notes.append(
            "Not reported as unused, because their names occur in code that the language server cannot resolve: "
            f"{_some(possibly_used)}."
        )
    return result


async def _may_be_used(project: Project, hit: Hit) -> bool:
    """Whether code outside of a symbol that no reference is known of may refer to it."""
    await project.indexer.priority.give_way()
    examined = await project.navigation.possible.examine(hit, Uses())
    places = [*examined.references, *examined.possible, *examined.unexamined]
    return any(place.path != hit.path or not hit.symbol.range.encloses(place.range) for place in places)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _left_open(names: Collection[str], told: SiblingAnswer) -> str:
    where = listed(sorted({sibling for name in names for sibling in told.unresolved_names[name]}))
    return (
        f"Not reported as unused: {_some(sorted(names))}. These names occur in {where}, where they cannot be resolved."
    )


async def _suspects(
    project: Project, definitions: Sequence[Definition], reasons: dict[str, int], until: float
) -> tuple[list[_Suspect], int]:
    """What nothing in its project refers to and no rule keeps, file by file; counts the `reasons` of what is kept. And
    how many were not judged `until` then."""
    unused: dict[str, list[tuple[Hit, Definition]]] = {}
    for definition in definitions:
        hit = _hit(project, definition)
        if hit is not None and _is_unused(hit, definition):
            unused.setdefault(definition.path, []).append((hit, definition))
    rules = KeepRules(project)
    found: list[_Suspect] = []
    judged, unjudged, total = 0, 0, sum(map(len, unused.values()))
    for file, pairs in unused.items():
        try:
            text = (await project.read(file)).text
        except PathError:
            continue
        for hit, definition in pairs:
            if anyio.current_time() >= until:
                unjudged += 1
                continue
            judged += 1
            report(f"examining unreferenced symbols: {judged} of {total} symbols", judged / total)
            reason = await rules.kept(hit, text)
            if reason is None:
                named = (await rules.named_elsewhere(hit)).possible
                found.append(_Suspect(hit, definition, rules.is_public(hit, text), named))
            else:
                reasons[reason.reason] = reasons.get(reason.reason, 0) + 1
    return found, unjudged


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


def _finding(hit: Hit, *, elsewhere: bool, public: bool, named: Sequence[str]) -> Unused:
    confidence: Confidence = "medium" if elsewhere or public or named else "high"
    reason = (
        "its name occurs elsewhere, but the language server finds no reference to it"
        if elsewhere
        else "its name occurs nowhere else in its language"
        if named
        else "its name occurs nowhere else"
    )
    if named:
        reason += f", but in files of others: {_some(named)}"
    if public:
        reason += ", but the package exports it to its users"
    return Unused(hit.path, hit.symbol.name_line, hit.name_path, hit.symbol.kind, confidence, reason)
