from abc import ABC, abstractmethod


class Shape(ABC):
    """What has an area."""

    @abstractmethod
    def area(self) -> float: ...


def total(shapes: list[Shape]) -> float:
    """The sum of all areas."""
    return sum(shape.area() for shape in shapes)
