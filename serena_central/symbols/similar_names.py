"""Finds names similar to one that does not exist: other case, spelling mistakes, longer or shorter.

Pure and bounded: 100,000 names take some 40 ms, which belong into a thread.
"""

import re
from collections.abc import Iterable

NAMES_COMPARED = 100_000

FEW = 5

_COMPARED_LETTER_BY_LETTER = 1_000
"""So many take 20 ms."""

_SHORT = 6
"""Letters; a shorter name is another one as soon as two of them differ."""

_LONG = 120
"""Nor is a name of a sentence compared with others."""

_SEPARATORS = re.compile(r"[_\-\s]")


def nearest(wanted: str, names: Iterable[str], most: int = FEW) -> list[str]:
    """The names nearest to one that is not among them, nearest first."""
    own = _plain(wanted)
    if not own or len(own) > _LONG:
        return []
    allowed = 1 if len(own) < _SHORT else 2
    # With so many letters wrong, one piece is still whole: a swap of two may spoil two pieces.
    size = max(1, len(own) // (allowed + 2))
    pieces = [own[at : at + size] for at in range(0, len(own) - size + 1, size)]
    shortest, longest = len(own) - allowed, len(own) + allowed
    found: list[tuple[int, int, str]] = []
    compared = 0
    for name in names:
        plain = name.lower().replace("_", "")
        if name == wanted:
            continue
        if plain == own:
            found.append((0, 0, name))
        elif shortest <= len(plain) <= longest and any(piece in plain for piece in pieces):
            compared += 1
            far = _edits(own, plain, allowed) if compared <= _COMPARED_LETTER_BY_LETTER else None
            if far is not None:
                found.append((far, abs(len(plain) - len(own)), name))
        elif len(own) > 3 and own in plain:
            found.append((3, len(plain) - len(own), name))
        elif 3 < len(plain) < len(own) and 2 * len(plain) > len(own) and plain in own:
            found.append((4, len(own) - len(plain), name))
    return list(dict.fromkeys(name for *_, name in sorted(found)))[:most]


def _plain(name: str) -> str:
    """Without what conventions differ in."""
    return _SEPARATORS.sub("", name.lower())


def _edits(one: str, other: str, most: int) -> int | None:
    """Letters to change, add, leave out or swap with their neighbour to get from one to the other; None if more than
    `most`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, same in enumerate(other, 1):
            if abs(i - j) > most:
                row.append(most + 1)
                continue
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != same))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == same:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None
