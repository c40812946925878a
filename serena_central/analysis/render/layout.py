"""Lays out nodes and edges of a graph: layers in columns, what is used on the left. Pure; units are pixels."""

from typing import NamedTuple

from serena_central.analysis.graph import Analysis, Edge, Graph

ROW, GAP, MARGIN = 34, 90, 20
"""Height of a row, space between columns, border."""

BOX = 24
"""Height of a node."""

CHARACTER = 7
"""Width of one character of a label, about."""

LONGEST = 44
"""Characters of a label; the whole is in the title."""


class Box(NamedTuple):
    """The place of a node."""

    x: int
    y: int
    width: int

    @property
    def middle(self) -> int:
        return self.y + BOX // 2


class Layout(NamedTuple):
    """A drawing's size, and the places of its nodes."""

    width: int
    height: int
    boxes: dict[str, Box]

    def line(self, edge: Edge) -> str:
        """An edge as an SVG path: from the left end of the user to the right end of the used; within one column around
        its right side."""
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        end_x, end_y = target.x + target.width, target.middle
        start_x = source.x + source.width if source.x == target.x else source.x
        out = GAP // 2 if source.x == target.x else -GAP // 2
        return f"M{start_x} {source.middle}C{start_x + out} {source.middle} {end_x + GAP // 2} {end_y} {end_x} {end_y}"


def layout(graph: Graph, analysis: Analysis) -> Layout:
    """A column per layer, each row as near as can be to the middle of what its node uses."""
    rows: dict[str, float] = {}
    uses: dict[str, list[str]] = {}
    for edge in graph.edges:
        uses.setdefault(edge.source, []).append(edge.target)
    boxes: dict[str, Box] = {}
    x = MARGIN
    for layer in analysis.layers:
        wished = {node: _mean([rows[used] for used in uses.get(node, ()) if used in rows]) for node in layer}
        ordered = sorted(layer, key=lambda node: (wished[node], node))
        width = max(len(label(node, graph.files[node])) for node in layer) * CHARACTER + 16
        for row, node in enumerate(ordered):
            rows[node] = row
            boxes[node] = Box(x, MARGIN + row * ROW, width)
        x += width + GAP
    width = max((box.x + box.width for box in boxes.values()), default=0) + MARGIN
    height = max((box.y for box in boxes.values()), default=0) + ROW + MARGIN
    return Layout(width, height, boxes)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def label(node: str, files: int) -> str:
    """What is written into a node: the end of a long name, and how many files it stands for."""
    text = node if len(node) <= LONGEST else f"…{node[-LONGEST + 1 :]}"
    return f"{text} ({files})" if files > 1 else text


def cycle_of(analysis: Analysis) -> dict[str, int]:
    """Node → the number of its cycle."""
    return {node: number for number, cycle in enumerate(analysis.cycles) for node in cycle.nodes}
