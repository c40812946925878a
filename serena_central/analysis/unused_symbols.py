"""Unused symbols: functions, methods and types that nothing refers to outside of their own bodies.

What the language server could not be asked about is no finding, and neither is what a rule of `keep_rules` keeps: the
server is not asked about that. Members of an unused type are not listed.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

import anyio
import msgspec

from serena_central.analysis.blindspots import blind_spots
from serena_central.analysis.collection import Definition
from serena_central.analysis.collector import Collector, Exempt, Symbol
from serena_central.analysis.objections import KeepRules
from serena_central.analysis.other_language_mentions import NamedAround, named_around
from serena_central.analysis.outcome import Finding, Outcome
from serena_central.analysis.sibling_objections import other_names, used_in_open_projects
from serena_central.analysis.sibling_uses import SiblingAnswer, Siblings, ask_siblings
from serena_central.analysis.word_index import is_go
from serena_central.core.errors import PathError, listed
from serena_central.core.pacing import paced
from serena_central.core.progress import report
from serena_central.core.text import Position, Text
from serena_central.core.words import counted
from serena_central.lsp.answers import SymbolKind
from serena_central.lsp.go_platforms import other_platform_of_text
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.mangling import mangled_names

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
"""Of the time that is left, for judging what no reference was found of. Of what is left then, the same again."""

AGAIN_S = 3.0
"""With less time left no further references are collected: the symbols are read again before."""

UNRESOLVED = "their names occur in code that the language server cannot resolve"
OTHER_NAMES = "other projects may import them under another name"
CLOSED = "files that permission rules close may refer to them"
NAMED_AROUND = "files of other languages around this project name them"

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
    """Of symbols. `kept`: reason → how many symbols of which no reference is known count as used."""

    kept: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class _Suspect(NamedTuple):
    """What nothing in its project refers to. `public`: others may. `named`: files of other languages hold its name."""

    hit: Hit
    definition: Definition
    public: bool
    named: Sequence[str]


class _Judge:
    """What is made out about symbols that no reference is known of: of each once, however often collecting goes on."""

    def __init__(self, project: Project, until: float) -> None:
        self._project = project
        self._until = until
        self._rules = KeepRules(project)
        self._reasons: dict[Symbol, str | None] = {}
        self._used: dict[Symbol, bool] = {}
        self._read: tuple[str, Text] | None = None

    @property
    def exempt(self) -> Exempt:
        """Symbols that a rule keeps whatever refers to them."""
        return Exempt(repr(self._project.settings.validation), self._reason_by_text)

    async def _reason_by_text(self, hit: Hit) -> str | None:
        try:
            if self._read is None or self._read[0] != hit.path:
                self._read = hit.path, (await self._project.read(hit.path)).text
        except PathError:
            return None
        kept = await self._rules.kept_by_text(hit, self._read[1])
        return kept.reason if kept and kept.is_known else None  # what is not known yet must not be remembered

    async def suspects(self, definitions: Sequence[Definition]) -> tuple[dict[str, int], list[_Suspect], int]:
        """What nothing in its project refers to and no rule keeps, file by file. Before, how many each rule keeps; and
        last, how many time did not suffice for."""
        reasons = Counter(one.exempt for one in definitions if one.exempt)
        unused: dict[str, list[tuple[Hit, Definition]]] = {}
        async for definition in paced(definitions):
            hit = _hit(self._project, definition)
            if hit is not None and _is_unused(hit, definition):
                unused.setdefault(definition.path, []).append((hit, definition))
        found: list[_Suspect] = []
        judged, unjudged, total = 0, 0, sum(map(len, unused.values()))
        async for file, pairs in paced(unused.items()):
            try:
                text = (await self._project.read(file)).text
            except PathError:
                continue
            for hit, definition in pairs:
                known = (hit.path, hit.name_path) in self._reasons
                if not known and anyio.current_time() >= self._until:
                    unjudged += 1
                    continue
                judged += 1
                report(f"examining unreferenced symbols: {judged} of {total} symbols", judged / total)
                reason = await self._reason(hit, text)
                if reason is None:
                    named = (await self._rules.named_elsewhere(hit)).possible
                    found.append(_Suspect(hit, definition, self._rules.is_public(hit, text), named))
                else:
                    reasons[reason] += 1
        return dict(reasons), found, unjudged

    async def _reason(self, hit: Hit, text: Text) -> str | None:
        symbol = hit.path, hit.name_path
        if symbol not in self._reasons:
            kept = await self._rules.kept(hit, text)
            self._reasons[symbol] = kept.reason if kept else None
        return self._reasons[symbol]

    async def examine(self, suspects: Sequence[_Suspect]) -> None:
        """Makes out what `may_be_used` tells, as far as time suffices; not yet of names that stand in files that
        are not built on this platform, too: their server is busy for long when it is asked about these."""
        unused: list[Hit] = []
        for hit, definition, *_ in suspects:
            if anyio.current_time() >= self._until:
                return
            if any(_within(hit, other) for other in unused) or (definition.asked and await self._is_elsewhere(hit)):
                continue
            if not (self.stands_elsewhere(hit, definition) and await self.may_be_used(hit)):
                unused.append(hit)

    def stands_elsewhere(self, hit: Hit, definition: Definition) -> bool:
        """Whether other places in the project's code may name a symbol."""
        return definition.asked or bool(mangled_names(hit, self._project.languages.language_of(hit.path)))

    async def _is_elsewhere(self, hit: Hit) -> bool:
        """Whether the name of a symbol stands in files that are not built on this platform."""
        if not is_go(self._project, hit.path):
            return False
        for path in await self._project.navigation.possible.candidates(hit):
            with suppress(PathError):
                content = (await self._project.read(path)).text.content
                if other_platform_of_text(path, content) is not None:
                    return True
        return False

    async def may_be_used(self, hit: Hit) -> bool | None:
        """Whether code outside of a symbol that no reference is known of may refer to it; None for lack of time."""
        symbol = hit.path, hit.name_path
        if symbol not in self._used:
            if anyio.current_time() >= self._until:
                return None
            await self._project.indexer.priority.give_way()
            examined = await self._project.navigation.possible.examine(hit, Uses())
            places = [*examined.references, *examined.possible, *examined.unexamined]
            self._used[symbol] = any(
                place.path != hit.path or not hit.symbol.range.encloses(place.range) for place in places
            )
        return self._used[symbol]


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
    judge = _Judge(project, until)
    result, suspects, unjudged = await _collected(project, collector, judge, path, only, until)
    told = await ask_siblings(project, siblings, [suspect.definition for suspect in suspects])
    beyond = await _Beyond.of(project, siblings, [suspect.hit for suspect in suspects])
    found: list[Hit] = []
    open_names: set[str] = set()
    possibly_used: dict[str, list[str]] = {}
    for hit, definition, public, named in suspects:
        if (hit.path, hit.name_path) in told.used or any(_within(hit, other) for other in found):
            continue
        if definition.name in told.unresolved_names:
            open_names.add(definition.name)
            continue
        may_be_used = await judge.may_be_used(hit) if judge.stands_elsewhere(hit, definition) else False
        if may_be_used is None:
            unjudged += 1
            continue
        if not may_be_used and beyond.asks(hit) and anyio.current_time() >= until:
            unjudged += 1
            continue
        doubt = UNRESOLVED if may_be_used else await beyond.doubt(hit)
        if doubt:
            possibly_used.setdefault(doubt, []).append(hit.name_path)
            continue
        found.append(hit)
        elsewhere = definition.asked or definition.name in told.held
        files = [*named, *beyond.files(hit)]
        result.found.append(_finding(hit, elsewhere=elsewhere, public=public, named=files))
    if unjudged:
        result.unasked += unjudged
        result.notes.append(
            f"Out of time: {counted(unjudged, 'symbol')} without a known reference were not examined and may be "
            "unused. Pass a higher seconds or a smaller folder."
        )
    result.notes += told.notes
    if beyond.error:
        result.notes.append(f"Files of other languages around this project can't be searched: {beyond.error}.")
    if open_names:
        result.notes.append(_left_open(open_names, told))
    result.notes += [
        f"Not reported as unused, because {why}: {_some(name_paths)}." for why, name_paths in possibly_used.items()
    ]
    return result


class _Beyond:
    """What is known of suspects beyond the uses of their names in code: of files that rules close, of those around the
    project that no server reads, which are searched once for all, and of other names. `error`: why something of it is
    not known."""

    def __init__(self, project: Project, siblings: Siblings, named: NamedAround, closed: Collection[str]) -> None:
        self._project = project
        self._siblings = siblings
        self._named = named
        self._closed = closed
        self._words: dict[tuple[str, int], frozenset[str]] = {}
        """File and place of a symbol → words by which other projects may use it without naming it."""
        self._held: frozenset[str] | None = frozenset()
        """Which of the words stand around; None if that is unknown."""

    @classmethod
    async def of(cls, project: Project, siblings: Siblings, hits: Sequence[Hit]) -> "_Beyond":
        closed = await project.navigation.closed_text.holding({hit.symbol.name for hit in hits})
        beyond = cls(project, siblings, await named_around(project, siblings, hits), closed)
        await beyond._find_words(hits)
        return beyond

    async def _find_words(self, hits: Iterable[Hit]) -> None:
        by_file: dict[str, frozenset[str]] = {}
        async for hit in paced(hits):
            with suppress(PathError):
                if words := await other_names(self._project, hit):
                    self._words[hit.path, hit.place] = words
                    by_file[hit.path] = by_file.get(hit.path, frozenset()) | words
        around = await self._siblings.candidates_around(self._project, by_file)
        groups = (*around.candidates, *around.closed)
        held = (some for one in groups for some in (*one.files.values(), *one.left_out.values()))
        self._held = None if around.error else frozenset[str]().union(*held)

    @property
    def error(self) -> str | None:
        return self._named.error

    def asks(self, hit: Hit) -> bool:
        """Whether `doubt` takes time."""
        return (hit.path, hit.place) in self._words

    def files(self, hit: Hit) -> list[str]:
        """Files of other languages around the project that hold a symbol's name."""
        return self._named.of(hit).possible

    async def doubt(self, hit: Hit) -> str | None:
        """Why a symbol may be used, if anything speaks for that."""
        if hit.symbol.name in self._closed:
            return CLOSED
        if self._named.of(hit).certain:
            return NAMED_AROUND
        words = self._words.get((hit.path, hit.place))
        if not words:
            return None
        if self._held is None or not words.isdisjoint(self._held):
            return OTHER_NAMES
        return OTHER_NAMES if await used_in_open_projects(self._project, self._siblings, hit) else None


async def _collected(
    project: Project, collector: Collector, judge: _Judge, path: str, only: Collection[str] | None, until: float
) -> tuple[UnusedFound, list[_Suspect], int]:
    """What is known without its findings; what may be one; and of how many time did not suffice to tell.

    While time is left for it, collecting goes on where it was; at last with what is not built on this platform.
    """
    here_only, asked = True, 0
    while True:
        judging_s = JUDGED_PART * (until - anyio.current_time()) if math.isfinite(until) else 0.0
        collected = await collector.collect(
            path,
            KINDS,
            within=True,
            possible=False,
            exempt=judge.exempt,
            here_only=here_only,
            has_begun=asked > 0,
            until=until - judging_s,
        )
        was_here_only, here_only = here_only, collected.unasked > collected.elsewhere
        asked += collected.asked
        notes = [*collected.notes, *await blind_spots(project, collected.definitions)]
        definitions = [one for one in collected.definitions if only is None or one.path in only]
        kept, suspects, unjudged = await judge.suspects(definitions)
        await judge.examine(suspects)
        gets_on = collected.asked > 0 or here_only != was_here_only
        if not (collected.unasked and gets_on) or until - anyio.current_time() < AGAIN_S:
            break
    found = UnusedFound(found=[], checked=len(definitions), kept=kept, notes=notes, unasked=collected.unasked)
    return found, suspects, unjudged


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _left_open(names: Collection[str], told: SiblingAnswer) -> str:
    where = listed(sorted({sibling for name in names for sibling in told.unresolved_names[name]}))
    return (
        f"Not reported as unused: {_some(sorted(names))}. These names occur in {where}, where they cannot be resolved."
    )


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
