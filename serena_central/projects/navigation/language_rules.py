"""What a place of a symbol's name means by the rules of its language, where the language server does not know it and
answers with something else.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from serena_central.core.errors import PathError
from serena_central.core.text import Position, Range, Text
from serena_central.lsp.answers import Location
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.macro_definitions import part_of_macro
from serena_central.projects.navigation.places_in_code import IndexedPlaces, PlaceInCode
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import GROUPS

Verdict = Literal["reference", "possible", "other"]

Fetch = Callable[[Path], Awaitable[Text]]
"""The text of a file; raises PathError."""

_DECLARING = {".js": ".d.ts", ".jsx": ".d.ts", ".mjs": ".d.mts", ".cjs": ".d.cts", ".py": ".pyi"}
"""Ending of a file → that of the one beside it that declares what is in it."""

_STEP = re.compile(r"\s*::")
"""After a Rust module's name on the way to what is in it."""


class Rules(Protocol):
    """Of one symbol."""

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        """What a place means that leads to these locations (None: not asked), one of which is the symbol's own name if
        it `is_named`; None where the server is to be believed."""
        ...


class NoRules:
    """The server knows all that can be known."""

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        return None


class CppRules:
    """clangd answers with a guess, rather than with nothing."""

    def __init__(self, root: Path, name: str, fetch: Fetch) -> None:
        self._root = root
        self._is_name = re.compile(rf"~?\s*{re.escape(name)}(?!\w)")
        self._fetch = fetch

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        try:
            part = part_of_macro(await self._fetch(self._root / place.path), place.range.start)
        except PathError:
            part = None
        if part == "parameter":
            return "other"
        if locations and await self._is_guess(locations):
            return "possible"
        return "possible" if part == "body" and locations and not is_named else None

    async def _is_guess(self, locations: Sequence[Location]) -> bool:
        """Whether the server does not know what a place means. It then answers with something that has another name:
        the parameter for a member of a type parameter (`T::name`), what an attribute stands on for a name in it
        (`cleanup(name)`). Or with several symbols, those of the name that it knows."""
        return len(locations) > 1 or not await self._reads_name(locations[0])

    async def _reads_name(self, location: Location) -> bool:
        try:
            text = await self._fetch(location.path)
        except PathError:
            return False
        return self._is_name.match(text.content, text.offset(location.range.start)) is not None


class RustRules:
    """rust-analyzer says a module where another symbol of its name may be meant as well: a `use` brings both, and in
    code that is not built it takes all that has the name for the module."""

    def __init__(self, root: Path, hit: Hit, places: IndexedPlaces, fetch: Fetch) -> None:
        self._root = root
        self._hit = hit
        self._places = places
        self._fetch = fetch

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        name = self._hit.symbol.name
        if is_named or self._hit.symbol.kind in GROUPS or not any(map(self._is_module, locations or ())):
            return None
        if place.range.start in self._places.defined_in(place.path, name):
            return None
        try:
            return None if leads_on(await self._fetch(self._root / place.path), place.range) else "possible"
        except PathError:
            return "possible"

    def _is_module(self, location: Location) -> bool:
        """Whether a place is a module of the symbol's name: a file's begin, or where it is declared."""
        target = self._places.named_at(location, self._hit.symbol.name)
        return location.range.start == Position(0, 0) if target is None else target.symbol.kind in GROUPS


class ScriptRules:
    """TypeScript reads a script's declaration file in place of the script, and takes each for symbols of its own."""

    def __init__(self, hit: Hit, places: IndexedPlaces) -> None:
        self._hit = hit
        self._places = places
        self._beside = declared_beside(hit.path)

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        targets = (self._places.named_at(location, self._hit.symbol.name) for location in locations or ())
        is_declared = any(one and one.path in self._beside and have_one_path(one, self._hit) for one in targets)
        return "reference" if is_declared else None


def declared_beside(path: str) -> list[str]:
    """Paths at which a file may stand that declares what is in this one, or that this one declares."""
    declaring = [path.removesuffix(own) + other for own, other in _DECLARING.items() if path.endswith(own)]
    return declaring + [path.removesuffix(other) + own for own, other in _DECLARING.items() if path.endswith(other)]


def have_one_path(one: Hit, other: Hit) -> bool:
    """Whether two symbols have the same name, and the same names around it."""
    return [part.name for part in one.file.path(one.place)] == [part.name for part in other.file.path(other.place)]


def leads_on(text: Text, span: Range) -> bool:
    """Whether a Rust module is named for something in it: `module::name`."""
    return _STEP.match(text.content, text.offset(span.end)) is not None


def rules_for(root: Path, hit: Hit, languages: ProjectLanguages, places: IndexedPlaces) -> Rules:
    """Those of a symbol's language, but for Python's (`fixtures`)."""

    async def fetch(path: Path) -> Text:
        return (await languages.fetch(path)).text

    match languages.language_of(hit.path):
        case "cpp":
            return CppRules(root, hit.symbol.name, fetch)
        case "rust":
            return RustRules(root, hit, places, fetch)
        case "javascript" | "typescript" if declared_beside(hit.path):
            return ScriptRules(hit, places)
        case _:
            return NoRules()
