"""Formats counts with their nouns, and reads whole numbers."""

MOST_DIGITS = 18
"""Of a number that is written somewhere: more than any count has."""


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 call`, `12,345 calls`; `nouns` is a plural that has another form."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"


def whole_number(text: str) -> int | None:
    """The number that is written in digits alone; None for anything else, and for more digits than count: `int` takes
    the square of their number in time, and raises ValueError from 4,300 on."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
