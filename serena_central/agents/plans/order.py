"""Which tasks of a wave must wait for each other: those whose declared targets meet, or the dependents of these.

Pure. A place is a root-relative file, or `FILE#NAME_PATH` for a symbol in it.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Reach(NamedTuple):
    """What a task declares that it changes, and what depends on that."""

    own: frozenset[str] = frozenset()
    dependents: frozenset[str] = frozenset()


class Wait(NamedTuple):
    """The task at this place in its wave begins when the one at `after` is over, because of a place."""

    task: int
    after: int
    place: str

    @property
    def because(self) -> str:
        return f"both concern {self.place}"


def waits(reaches: Sequence[Reach]) -> list[Wait]:
    """Who waits for whom, in the order of the plan; tasks that declare nothing wait for nobody."""
    found: list[Wait] = []
    for task, reach in enumerate(reaches):
        for before in range(task):
            place = meeting(reach, reaches[before])
            if place:
                found.append(Wait(task, before, place))
    return found


def meeting(one: Reach, other: Reach) -> str:
    """A place that one of two tasks changes and the other changes or depends on; "" if there is none."""
    return _common(one.own, other.own) or _common(one.own, other.dependents) or _common(other.own, one.dependents)


def overlap(place: str, other: str) -> bool:
    """Whether two places are one, or one lies in the other."""
    file, _, symbol = place.partition("#")
    other_file, _, other_symbol = other.partition("#")
    if file != other_file:
        return False
    short, long = sorted((symbol, other_symbol), key=len)
    return not short or short == long or long.startswith(short + "/")


def _common(places: Collection[str], others: Collection[str]) -> str:
    return next(
        (max(one, other, key=len) for one in sorted(places) for other in sorted(others) if overlap(one, other)), ""
    )
