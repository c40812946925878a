"""Numbers with their nouns, as people read them."""


def counted(number: int, noun: str) -> str:
    """`1 call`, `12,345 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
