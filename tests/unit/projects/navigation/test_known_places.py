"""What is known without a language server is told with what it failed of."""

import anyio
import pytest

from serena_central.core.errors import (
    LanguageServerError,
    ReferencesNotInTime,
    ServerCrashed,
    ServerSilent,
    references_unknown,
)
from serena_central.projects.navigation.known_places import PLACES_LISTED, KnownPlaces, or_places

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("failure", [ServerSilent("ty", 5.0), ServerCrashed("ty", -9, "")], ids=["silent", "crashed"])
async def test_an_error_keeps_its_kind_and_tells_the_places_first(failure: LanguageServerError) -> None:
    async def ask() -> None:
        raise failure

    async def look() -> KnownPlaces:
        return KnownPlaces(["a.py:1", "a.py:1", "b.py:2"])

    with pytest.raises(type(failure)) as raised:
        await or_places("Cart", ask, look)
    assert str(raised.value) == f"{references_unknown('Cart', ['a.py:1', 'b.py:2'])} {failure}"


async def test_no_more_places_are_listed_than_the_limit() -> None:
    lines = [f"a.py:{number}" for number in range(PLACES_LISTED + 2)]

    async def look() -> KnownPlaces:
        return KnownPlaces(lines, unread=3)

    with anyio.fail_after(2), pytest.raises(ReferencesNotInTime) as raised:
        await or_places("Cart", anyio.sleep_forever, look)
    assert references_unknown("Cart", lines[:PLACES_LISTED], 5) in str(raised.value)


async def test_looking_for_places_is_cut_short_before_the_call_ends() -> None:
    async def look() -> KnownPlaces:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(2), pytest.raises(ReferencesNotInTime, match="There was no time to look for places"):
        await or_places("Cart", anyio.sleep_forever, look)
