from shapes.base import Shape, total
from shapes.square import Square, Tile


def report(shapes: list[Shape]) -> str:
    text = "Größe 📏"; size = total(shapes)
    return f"{text}: {size}"


def main() -> None:
    print(report([Square(2), Tile(3)]))
    print(total([]))
