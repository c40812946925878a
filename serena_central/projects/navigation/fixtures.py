"""What pytest gives to tests: each parameter of a test, or of a fixture, is filled with the fixture of its name.

Language servers know nothing of it: for them a parameter leads to itself.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from serena_central.core.errors import LanguageServerError, PathError
from serena_central.core.quoting import quoted
from serena_central.core.text import Position
from serena_central.lsp.answers import Location
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.language_rules import Verdict
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import CALLABLE
from serena_central.symbols.syntax.messages import Decorator, Function, Occurrence

_FIXTURE = re.compile(r"(?:.*\.)?(?:yield_)?fixture", re.DOTALL)

_WORD, _GIVEN, _PARAMETRIZED = "fixture", "name", "parametrize"
"""Of a text without them nothing need be parsed."""

_CONFTEST = "conftest.py"
_TEST_CLASS = "Test"
_TEST_MODULE = re.compile(r"test_.*\.py|.*_test\.py")


class Parameter(NamedTuple):
    path: Path
    at: Position


class Filled(NamedTuple):
    """`Rules` by the parameters that a fixture fills: for certain, or perhaps."""

    certain: Collection[Parameter] = ()
    possible: Collection[Parameter] = ()

    async def verdict(
        self, place: PlaceInCode, locations: Sequence[Location] | None, *, is_named: bool
    ) -> Verdict | None:
        """As `Rules` has it."""
        parameters = set(map(_parameter, locations or ()))
        if not parameters.isdisjoint(self.certain):
            return "reference"
        return "possible" if not is_named and not parameters.isdisjoint(self.possible) else None


def _parameter(location: Location) -> Parameter:
    return Parameter(location.path, location.range.start)


class Fixtures:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        index: SymbolIndex,
        languages: ProjectLanguages,
        are_holders_read: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._root = root
        self._index = index
        self._languages = languages
        self._are_holders_read = are_holders_read

    async def filled_with(
        self, hit: Hit, imported: Collection[str], paths: Iterable[str], quoting: Collection[str] | None
    ) -> Filled:
        """The parameters in these files that a symbol fills; none if it is no fixture. `imported`: files that name it
        where the language server knows it. `quoting`: those that hold its name in a string; None if not all are
        known."""
        if not await self._is_fixture(hit):
            return Filled()
        is_only = quoting is not None and await self._is_only(hit, quoting)
        certain, possible = set[Parameter](), set[Parameter]()
        for path in sorted(set(paths)):
            is_seen = path == hit.path or path in imported or _is_above(hit.path, path)
            if not is_seen and _is_for_itself(hit.path):
                continue
            found = await self._occurrences(path, hit.symbol.name)
            is_parametrized = any(one.kind == "string" for one in found) and await self._holds(path, _PARAMETRIZED)
            for one in found:
                if one.function is not None and one.function.has_parameter and _may_be_filled(one.function):
                    is_certain = is_seen and is_only and not is_parametrized and _is_in_reach(hit, path, one)
                    is_certain = is_certain and _is_filled(path, one.function)
                    (certain if is_certain else possible).add(Parameter(self._root / path, one.range.start))
        return Filled(certain, possible)

    async def other_name(self, hit: Hit) -> str | None:
        """Why the uses of a fixture can't be told by the name of its function; None if they can."""
        made = await self._made(hit)
        if made is None or made.name is None:
            return None
        name = f"as {quoted(made.name)}" if made.name else "under another name"
        return f"pytest gives what {hit.symbol.name} returns {name}, and parameters of that name are not listed"

    async def _is_only(self, hit: Hit, quoting: Iterable[str]) -> bool:
        """Whether no other fixture of the project may have its name, from its function or given."""
        if not await self._are_holders_read(hit.symbol.name):
            return False
        for path in set(quoting):
            if await self._holds(path, _WORD) and await self._holds(path, _GIVEN):
                return False
        for other in self._index.find(parse_pattern(hit.symbol.name)):
            if (other.path, other.place) != (hit.path, hit.place) and await self._is_fixture(other):
                return False
        return True

    async def _is_fixture(self, hit: Hit) -> bool:
        """Whether a symbol is a fixture of its own name."""
        made = await self._made(hit)
        return made is not None and made.name is None

    async def _made(self, hit: Hit) -> Decorator | None:
        """What makes a fixture of the function that a symbol is."""
        if hit.symbol.kind not in CALLABLE or not await self._holds(hit.path, _WORD):
            return None  # variables and fields of its name, which many files may have, are not looked up
        for one in await self._occurrences(hit.path, hit.symbol.name):
            function = one.function
            if one.range.start == hit.symbol.name_position and function is not None and not function.has_parameter:
                return _maker(function)
        return None

    async def _holds(self, path: str, word: str) -> bool:
        try:
            return word in (await self._languages.fetch(self._root / path)).text.content
        except PathError:
            return False

    async def _occurrences(self, path: str, name: str) -> list[Occurrence]:
        try:
            return await self._languages.syntax.occurrences(path, name)
        except (LanguageServerError, PathError):
            return []


def _maker(function: Function) -> Decorator | None:
    """What makes a fixture of a function."""
    return next((one for one in function.decorators if _FIXTURE.fullmatch(one.called)), None)


def _may_be_filled(function: Function) -> bool:
    """Whether pytest fills the parameters of a function, if it collects it."""
    return function.name.startswith("test") or _maker(function) is not None


def _is_filled(path: str, function: Function) -> bool:
    """Whether pytest does so without a setting of its own for what it collects: in a program's code, `test_connection`
    is none of its tests, a method of a class of another name is one if tests derive from that, and so is a function in
    a function if that returns it to a name of the module."""
    if function.classes is None:
        return False
    is_collected = all(name.startswith(_TEST_CLASS) for name in function.classes)
    is_test = is_collected and _TEST_MODULE.fullmatch(PurePosixPath(path).name) is not None
    return is_test or _maker(function) is not None


def _is_above(fixture: str, path: str) -> bool:
    """Whether a fixture's file is a conftest that a test's file has."""
    file = PurePosixPath(fixture)
    return file.name == _CONFTEST and PurePosixPath(path).is_relative_to(file.parent)


def _is_for_itself(path: str) -> bool:
    """Whether no other tests have a file's fixtures than those that import them, or lie below it; those of others may
    be a plugin's, which all have."""
    name = PurePosixPath(path).name
    return name == _CONFTEST or _TEST_MODULE.fullmatch(name) is not None


def _is_in_reach(hit: Hit, path: str, taken: Occurrence) -> bool:
    """A class's fixture is for its own tests, and for those of classes that derive from it."""
    holder = hit.symbol.container
    return holder < 0 or (path == hit.path and hit.file.symbols[holder].range.encloses(taken.range))
