from shapes.base import total


def wrong() -> int:
    number: int = "three"
    return total(number)
