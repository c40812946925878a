from shapes import Shape


class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side * self.side


class Tile(Square):
    def area(self) -> float:
        return 1.0
