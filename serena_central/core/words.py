"""Formats counts with their nouns."""


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 call`, `12,345 calls`; `nouns` is a plural that has another form."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {nouns or noun + 's'}"
