"""Finds the lines of a text that match a pattern, each by itself.

Lines are asked only where one may match: where what the pattern needs stands, or where it matches the whole text, which
is quicker than asking each line. It knows no files: a text is bytes as `files/corpus.lines_of` makes them.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate, chain

from serena_central.files.pattern import Pattern

TELLING_BYTES = 500
"""Per line with what a pattern needs: in a text with more of such lines the whole text is matched, which takes less."""

PIECE_BYTES = 16_384
"""Of a text with other letters than ASCII's that is decoded at once."""

Span = tuple[int, int]
"""Begin and end of whole lines, the last line feed included."""

_ERRORS = "surrogateescape"


def first_matches(data: bytes, pattern: Pattern, spans: Sequence[Span] | None = None) -> Iterator[int]:
    """Where the first match begins in each line that matches, in order. Each line of `data` ends with a line feed.
    `spans`: the only places where something may match, whole lines, in order.

    Raises:
        TimeoutError
    """
    if spans is None:
        spans = [(0, len(data))]
    if pattern.literal:
        return _holding(data, spans, pattern.literal.encode())
    telling = _may_match(data, spans, pattern)
    return _in_spans(data, spans if telling is None else telling, pattern)


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


def _holding(data: bytes, spans: Sequence[Span], needle: bytes) -> Iterator[int]:
    find = re.compile(re.escape(needle) + rb"[^\n]*").finditer
    return chain.from_iterable(map(re.Match.start, find(data, begin, end)) for begin, end in spans)


def _may_match(data: bytes, spans: Sequence[Span], pattern: Pattern) -> list[Span] | None:
    """The lines in which all stands that an alternative of the pattern needs; None where these are not known, or too
    many."""
    if not pattern.needed:
        return None
    most = max(sum(end - begin for begin, end in spans) // TELLING_BYTES, 1)
    lines: list[Span] = []
    for needed, around_digits in zip(pattern.needed_bytes, pattern.around_digits, strict=True):
        for span in spans:
            found = (
                _lines_with(data, span, needed) if around_digits is None else _lines_around(data, span, around_digits)
            )
            for line in found:
                lines.append(line)
                if len(lines) > most:
                    return None
    return sorted(set(lines)) if len(pattern.needed) > 1 else lines


def _lines_with(data: bytes, span: Span, needed: Sequence[bytes]) -> Iterator[Span]:
    """The lines in which all of these texts stand."""
    rarest, *others = needed
    start, stop = span
    while (found := data.find(rarest, start, stop)) >= 0:
        begin, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
        for other in others:
            if data.find(other, begin, end) < 0:
                break
        else:
            yield begin, end + 1
        start = end


def _lines_around(data: bytes, span: Span, expression: re.Pattern[bytes]) -> Iterator[Span]:
    """The lines in which an expression finds something."""
    behind = 0
    for found in expression.finditer(data, *span):
        if found.start() >= behind:
            behind = data.find(b"\n", found.start()) + 1
            yield data.rfind(b"\n", 0, found.start()) + 1, behind


def _in_spans(data: bytes, spans: Sequence[Span], pattern: Pattern) -> Iterator[int]:
    """Matches in some whole lines, which are put together to one text."""
    if not spans:
        return
    if len(spans) == 1 and spans[0] == (0, len(data)):
        yield from _in_all(data, pattern)
        return
    some = b"".join([data[begin:end] for begin, end in spans])
    behind = list(accumulate(end - begin for begin, end in spans))
    number = 0
    for place in _in_all(some, pattern):
        while behind[number] <= place:
            number += 1
        yield spans[number][1] + place - behind[number]


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
