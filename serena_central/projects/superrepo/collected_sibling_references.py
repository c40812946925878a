"""Collects references from a sibling to many symbols of one module, reading each file once.

`sibling_references` finds those to one symbol.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

import anyio.to_thread

from serena_central.core.text import Position
from serena_central.files.boundary import Access
from serena_central.files.words import words_of_each
from serena_central.lsp.answers import Location
from serena_central.projects.navigation.common_names import is_common
from serena_central.projects.project import Project
from serena_central.projects.superrepo.mentions import mentions
from serena_central.projects.superrepo.sibling_code import code_around, code_beside, is_around
from serena_central.projects.superrepo.sibling_definitions import declared_at, places_of, resolve_places

MOST_PLACES = 5000
"""Names in one sibling whose meaning is asked for: half a minute of a quick server's time."""

_WORD = re.compile(r"\w+")
_WITH_DOLLAR = re.compile(r"[\w$]+")


class Crossing(NamedTuple):
    """What one file of a sibling uses: path and name path in the declaring module, and where the file names it.

    `unresolved_names`: the names at places that do not resolve, or resolve to what may be a copy of the declaring file
    (built, installed).
    """

    uses: list[tuple[str, str, Position]]
    unresolved_names: list[str]
    note: str | None


class Candidates(NamedTuple):
    """Files of the sibling that may use symbols with certain names: path → those of the names that it holds.

    `declared`: name → files of the declaring module. `left_out`: files beyond what is asked about.
    """

    files: Mapping[str, frozenset[str]]
    declared: Mapping[str, Collection[str]]
    left_out: Mapping[str, frozenset[str]]


async def candidates(declaring: Project, using: Project, names: Mapping[str, Collection[str]]) -> list[Candidates]:
    """By language, files of the sibling that hold any of the names, if anything in it mentions the declaring package.

    `names` maps file of the declaring module → its symbols' names.
    """
    await using.fresh()
    code = partial(code_beside, declaring, sibling=using)
    return await anyio.to_thread.run_sync(lambda: list(_candidates(declaring, names, using.root, code)))


async def candidates_around(
    declaring: Project, root: Path, access: Access, names: Mapping[str, Collection[str]], *, closed: bool = False
) -> list[Candidates]:
    """The same of what encloses the declaring project and is not open; or, if `closed`, of what rules close there."""
    ended = threading.Event()
    code = partial(code_around, declaring, root=root, access=access, closed=closed)
    try:
        return await anyio.to_thread.run_sync(
            lambda: list(_candidates(declaring, names, root, code, stopped=ended.is_set)), abandon_on_cancel=True
        )
    finally:
        ended.set()


def _candidates(
    declaring: Project,
    names: Mapping[str, Collection[str]],
    root: Path,
    code_like: Callable[[Sequence[str]], list[str]],
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Candidates]:
    by_languages: dict[tuple[str, ...], list[str]] = {}
    for path in names:
        if spec := declaring.languages.spec_for(path):
            by_languages.setdefault(tuple(spec.languages), []).append(path)
    for paths in by_languages.values():
        declared: dict[str, list[str]] = {}
        for path in paths:
            for name in names[path]:
                declared.setdefault(name, []).append(path)
        mentioned = {
            one for path in paths for one in mentions(declaring.root, path, declaring.languages.language_of(path) or "")
        }
        marker = re.compile(b"|".join(re.escape(one.encode()) for one in sorted(mentioned))) if mentioned else None
        holding = _holding(root, code_like(paths), declared, marker, stopped)
        if marker is not None and not any(one.marked for one in holding):
            if not is_around(declaring, root):
                continue
            language = declaring.languages.language_of(paths[0])
            common = {name for name in declared if is_common(language, name)}
            holding = [one._replace(names=one.names - common) for one in holding]
        files: dict[str, frozenset[str]] = {}
        left_out: dict[str, frozenset[str]] = {}
        places = 0
        for one in sorted((one for one in holding if one.names), key=lambda one: not one.marked):
            places += one.places
            part = files if places <= MOST_PLACES or not files else left_out
            part[one.path] = one.names
        if files:
            yield Candidates(files, declared, left_out)


class _Holding(NamedTuple):
    """A file with some of the names, which may be none if it is `marked`, and in how many places they stand."""

    path: str
    names: frozenset[str]
    places: int
    marked: bool


def _holding(
    root: Path, code: Sequence[str], names: Iterable[str], marker: re.Pattern[bytes] | None, stopped: Callable[[], bool]
) -> list[_Holding]:
    by_word: dict[str, set[str]] = {}
    for name in names:
        # Names may be more than a word: `$count`, `empty?`.
        by_word.setdefault(max(_WORD.findall(name), key=len, default=name), set()).add(name)
    wordless = _wordless(by_word)
    holding: list[_Holding] = []
    find = wordless.findall if wordless is not None else None
    for path, found in words_of_each(root, code, by_word, marker=marker, lines=lambda _: find, stopped=stopped):
        words = {*found.counts, *(line.decode() for line in found.lines)}
        if words or found.marked:
            held = frozenset(name for word in words for name in by_word[word])
            holding.append(_Holding(path, held, found.counts.total() + len(found.lines), found.marked))
    return holding


def _wordless(names: Iterable[str]) -> re.Pattern[bytes] | None:
    """Finds those of the names that have no word in them, like `$`."""
    found = b"|".join(re.escape(name.encode()) for name in sorted(names) if not _WORD.search(name))
    return re.compile(rb"(?<![\w$])(?:" + found + rb")(?![\w$])") if found else None


async def crossing(declaring: Project, using: Project, path: str, declared: Mapping[str, Collection[str]]) -> Crossing:
    """What a file of the sibling uses of symbols that are `declared`: name → files of the declaring module.

    Waits for callers before each question.

    Raises:
        LanguageServerError
    """
    places = [place async for place in places_of(using, [path], _WORD, declared)]
    if any("$" in name for name in declared):  # in most languages it is no part of a name
        places += [place async for place in places_of(using, [path], _WITH_DOLLAR, declared) if "$" in place.name]
    resolved = await resolve_places(using, places, turn=using.indexer.priority.give_way)
    uses: set[tuple[str, str, Position]] = set()
    unresolved_names = [place.name for place in resolved.unresolved]
    for place, locations in resolved.found:
        hits = [await declared_at(declaring, location) for location in locations]
        meant = [hit for hit in hits if hit is not None and hit.symbol.name == place.name]
        uses.update((hit.path, hit.name_path, place.position) for hit in meant)
        if not meant and any(is_copy(declaring, using, location, declared[place.name]) for location in locations):
            unresolved_names.append(place.name)
    return Crossing(sorted(uses), unresolved_names, resolved.note)


def is_copy(declaring: Project, using: Project, location: Location, files: Collection[str]) -> bool:
    """Whether a place that is in neither project lies in a file that is named as one of these."""
    if declaring.navigation.places.inside(location.path) or using.navigation.places.inside(location.path):
        return False
    return _stem(location.path) in {_stem(PurePosixPath(file)) for file in files}


def _stem(path: PurePath) -> str:
    """Also `total` of total.d.ts."""
    return path.name.partition(".")[0]
