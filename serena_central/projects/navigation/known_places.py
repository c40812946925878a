"""References that a language server does not tell: the error names the places that are known without it."""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, TypeVar

import anyio

from serena_central.core import progress
from serena_central.core.errors import LanguageServerError, ReferencesNotInTime, references_unknown
from serena_central.core.running_time import running_time
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.project_places import is_below
from serena_central.projects.navigation.symbol_views import References
from serena_central.symbols.index import Hit

PLACES_S = 5.0
"""Of a call's time, kept for what is known without the language server."""

PLACES_LISTED = 20
"""Places that one error names."""

T = TypeVar("T")


class KnownPlaces(NamedTuple):
    """Where a name occurs in code, as `path:line`; a `path:line` may be given several times. `unread`: how many
    places, or files, were not examined."""

    lines: Iterable[str]
    unread: int = 0


async def references_of(navigation: Navigation, hit: Hit, below: str) -> References:
    """References at or below a path of a project, as `or_places` asks for them."""

    async def look() -> KnownPlaces:
        examined = await navigation.possible.in_code(hit)
        places = (place for some in examined.code.values() for place in some if is_below(place.path, below))
        unread = sum(is_below(place.path, below) for place in examined.unexamined)
        return KnownPlaces((f"{place.path}:{place.range.start.line0}" for place in places), unread)

    return await or_places(hit.name_path, lambda: navigation.references.of(hit, below), look)


async def or_places(symbol: str, ask: Callable[[], Awaitable[T]], look: Callable[[], Awaitable[KnownPlaces]]) -> T:
    """What `ask` answers about a symbol's references. `look` finds places without a language server.

    Raises:
        LanguageServerError: the server fails; the message begins with the known places.
        ReferencesNotInTime: it has not answered in time, of which a part is kept for `look`.
    """
    began, deadline = anyio.current_time(), anyio.current_effective_deadline()
    kept_s = min(PLACES_S, (deadline - began) / 4)
    failure: LanguageServerError | None = None
    with (
        progress.noting_unanswered() as waited_for,
        anyio.CancelScope(deadline=deadline - kept_s) as scope,
        running_time.counting(scope),
    ):
        try:
            return await ask()
        except LanguageServerError as error:
            failure = error
    taken_s = anyio.current_time() - began
    known = await _told(symbol, look)
    if failure is not None:
        raise failure.prefaced(known) from failure
    because = "; ".join(dict.fromkeys(waited_for)) or "the language server has not answered"
    raise ReferencesNotInTime(taken_s, because, known)


async def _told(symbol: str, look: Callable[[], Awaitable[KnownPlaces]]) -> str:
    known: KnownPlaces | None = None
    left_s = anyio.current_effective_deadline() - anyio.current_time()
    with anyio.move_on_after(0.8 * min(PLACES_S, left_s)):  # the error is to be told in any case
        known = await look()
    if known is None:
        return references_unknown(symbol, None)
    lines = list(dict.fromkeys(known.lines))
    return references_unknown(symbol, lines[:PLACES_LISTED], max(len(lines) - PLACES_LISTED, 0) + known.unread)
