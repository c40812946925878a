"""Finds the lines of a text that match a pattern, each by itself.

Lines are asked only where one may match: where what the pattern needs stands, or where it matches the whole text, which
is quicker than asking each line. It knows no files: a text is bytes as `files/corpus.lines_of` makes them.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate

from serena_central.files.needles import Needles
from serena_central.files.pattern import Pattern

TELLING_BYTES = 500
"""Per line with what a pattern needs: in a text with more of such lines the whole text is matched, which takes less."""

PIECE_BYTES = 16_384
"""Of a text with other letters than ASCII's that is decoded at once."""

Line = tuple[int, int]
"""Begin and end, the line feed included."""

_ERRORS = "surrogateescape"


def first_matches(data: bytes, pattern: Pattern) -> Iterator[int]:
    """Where the first match begins in each line that matches, in order. Each line of `data` ends with a line feed.

    Raises:
        TimeoutError
    """
    if pattern.needles is None:
        return _in_all(data, pattern)
    if pattern.literal:
        return pattern.needles.first_in_lines(data)
    if pattern.with_digits is not None:
        return _with_digits(data, pattern, pattern.needles, pattern.with_digits)
    lines = _may_match(data, pattern.needles, pattern.others)
    return _in_all(data, pattern) if lines is None else _in_lines(data, lines, pattern)


def _in_all(data: bytes, pattern: Pattern) -> Iterator[int]:
    for start, piece in _pieces(data):
        text = piece.decode("utf-8", _ERRORS)
        if len(text) == len(piece):
            for at in _matching(text, pattern):
                yield start + at
            continue
        place = counted = 0
        for at in _matching(text, pattern):
            place += len(text[counted:at].encode("utf-8", _ERRORS))
            counted = at
            yield start + place


def _pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where each begins: whole lines. One letter makes the whole text that holds it two to four times as wide."""
    if data.isascii():
        yield 0, data
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PIECE_BYTES) + 1 or len(data)
        yield start, data[start:end]
        start = end


def _may_match(data: bytes, needles: Needles, others: Sequence[bytes]) -> list[Line] | None:
    """The lines in which all stands that a pattern needs; None where these are too many."""
    most = max(len(data) // TELLING_BYTES, 1)
    lines: list[Line] = []
    for place in needles.first_in_lines(data):
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        for other in others:
            if data.find(other, begin, end) < 0:
                break
        else:
            lines.append((begin, end + 1))
            if len(lines) > most:
                return None
    return lines


def _with_digits(data: bytes, pattern: Pattern, needles: Needles, in_ascii: re.Pattern[bytes]) -> Iterator[int]:
    """Matches of a pattern of digits and other characters alone, of which a plain expression finds those in ASCII.

    A match has its first needle in the same place as all others. So where one in ASCII is around the first needle of a
    line, none begins before it; and hardly any line has a needle and no such match.
    """
    lead, match = pattern.needle_at, in_ascii.match
    for place in needles.first_in_lines(data):
        if place >= lead and match(data, place - lead):
            yield place - lead
            continue
        begin, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        if (line := data[begin:end]).isascii():
            if (found := in_ascii.search(line)) is not None:
                yield begin + found.start()
        elif (alone := pattern.search(text := line.decode("utf-8", _ERRORS))) is not None:
            yield begin + len(text[: alone[0]].encode("utf-8", _ERRORS))


def _in_lines(data: bytes, lines: Sequence[Line], pattern: Pattern) -> Iterator[int]:
    """Matches in some lines, which are put together to one text."""
    some = b"".join([data[begin:end] for begin, end in lines])
    behind = list(accumulate(end - begin for begin, end in lines))
    number = 0
    for place in _in_all(some, pattern):
        while behind[number] <= place:
            number += 1
        yield lines[number][1] + place - behind[number]


def _matching(text: str, pattern: Pattern) -> Iterator[int]:
    """Where lines have their first matches."""
    if pattern.sees_beyond:
        begin = 0
        for line in text[:-1].split("\n") if text else ():
            if (alone := pattern.search(line)) is not None:
                yield begin + alone[0]
            begin += len(line) + 1
        return
    start: int | None = 0
    while start is not None:
        start = yield from _matching_from(text, start, pattern)


def _matching_from(text: str, start: int, pattern: Pattern) -> Generator[int, None, int | None]:
    """As far as the matches of the whole text tell it; returns where to go on, with a line of which they don't.

    What is found in the whole text may reach over a line's end, or depend on what stands there: then the line is asked
    alone.
    """
    for first, last in pattern.find_all(text, start):
        if first == len(text):
            return None
        if first >= start:
            end = text.index("\n", first)
            if last <= end and not pattern.looks_around:
                yield first
            else:
                begin = text.rfind("\n", 0, first) + 1
                if (alone := pattern.search(text[begin:end])) is not None:
                    yield begin + alone[0]
            start = end + 1
        if last > start:
            return start
    return None
