"""A graph as a picture: layers in columns, what is used on the left, circles in colour. No program is needed.

Each node is a group of class `node` with its id in `data-node`, each edge a path with `data-source` and `data-target`,
so that a page can fold, mark and follow them.
"""

from html import escape
from typing import NamedTuple

from serena_central.analysis.graph import Analysis, Graph

ROW, GAP, MARGIN = 34, 90, 20
"""Pixels: height of a row, space between columns, border."""

CHARACTER = 7
"""Pixels of one character of a label, about."""

LONGEST = 44
"""Characters of a label; the whole is in the title."""

COLOURS = ("#c0392b", "#8e44ad", "#d35400", "#2471a3", "#117a65", "#7d6608")
"""Of circles, in turn."""

STYLE = (
    "text{font:12px sans-serif;fill:#222}.node rect{fill:#f4f6f8;stroke:#8a97a6}"
    ".edge{fill:none;stroke:#8a97a6;stroke-opacity:.55}"
)

TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#8a97a6"/></marker></defs>'
)


class _Box(NamedTuple):
    x: int
    y: int
    width: int

    @property
    def middle(self) -> int:
        return self.y + 12


def svg(graph: Graph, analysis: Analysis) -> str:
    """A whole SVG document."""
    boxes = _layout(graph, analysis)
    colours = {
        node: COLOURS[number % len(COLOURS)] for number, circle in enumerate(analysis.circles) for node in circle.nodes
    }
    width = max((box.x + box.width for box in boxes.values()), default=0) + MARGIN
    height = max((box.y for box in boxes.values()), default=0) + ROW + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>{TIP}",
    ]
    strongest = max((edge.count for edge in graph.edges), default=1)
    for edge in graph.edges:
        line = _line(boxes[edge.source], boxes[edge.target])
        within = colours.get(edge.source) if colours.get(edge.source) == colours.get(edge.target) else None
        style = f' style="stroke:{within}"' if within else ""
        parts.append(
            f'<path class="edge" data-source="{_attribute(edge.source)}" data-target="{_attribute(edge.target)}" '
            f'd="{line}" stroke-width="{1 + 3 * edge.count / strongest:.1f}" marker-end="url(#tip)"'
            f"{style}><title>{escape(_clean(f'{edge.source} → {edge.target}: {edge.count} uses'))}</title></path>"
        )
    parts += [_node(node, graph.files[node], box, colours.get(node)) for node, box in boxes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _layout(graph: Graph, analysis: Analysis) -> dict[str, _Box]:
    """A column per layer, each row as near as can be to the middle of what its node uses."""
    rows: dict[str, float] = {}
    uses: dict[str, list[str]] = {}
    for edge in graph.edges:
        uses.setdefault(edge.source, []).append(edge.target)
    boxes: dict[str, _Box] = {}
    x = MARGIN
    for layer in analysis.layers:
        wished = {node: _mean([rows[used] for used in uses.get(node, ()) if used in rows]) for node in layer}
        ordered = sorted(layer, key=lambda node: (wished[node], node))
        width = max(len(_label(node, graph.files[node])) for node in layer) * CHARACTER + 16
        for row, node in enumerate(ordered):
            rows[node] = row
            boxes[node] = _Box(x, MARGIN + row * ROW, width)
        x += width + GAP
    return boxes


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _line(source: _Box, target: _Box) -> str:
    """From the left end of the user to the right end of the used; within one column around its right side."""
    end_x, end_y = target.x + target.width, target.middle
    if source.x == target.x:
        start_x = source.x + source.width
        bend = start_x + GAP // 2
        return f"M{start_x} {source.middle}C{bend} {source.middle} {bend} {end_y} {end_x} {end_y}"
    start_x = source.x
    bend = GAP // 2
    return f"M{start_x} {source.middle}C{start_x - bend} {source.middle} {end_x + bend} {end_y} {end_x} {end_y}"


def _node(node: str, files: int, box: _Box, colour: str | None) -> str:
    style = f' style="stroke:{colour};stroke-width:2"' if colour else ""
    return (
        f'<g class="node{" circle" if colour else ""}" data-node="{_attribute(node)}"><title>{escape(_clean(node))}'
        f'</title><rect x="{box.x}" y="{box.y}" width="{box.width}" height="24" rx="4"{style}/>'
        f'<text x="{box.x + 8}" y="{box.y + 16}">{escape(_label(node, files))}</text></g>'
    )


def _label(node: str, files: int) -> str:
    text = _clean(node)
    if len(text) > LONGEST:
        text = f"…{text[-LONGEST + 1 :]}"
    return f"{text} ({files})" if files > 1 else text


def _attribute(text: str) -> str:
    return escape(_clean(text), quote=True)


def _clean(text: str) -> str:
    """Without the characters that XML can't hold."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
