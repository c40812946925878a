"""A graph as a picture that needs no program: a document, cycles in colour.

Each node is a group of class `node` with its id in `data-node`, each edge a path with `data-source` and `data-target`,
so that a page can fold, mark and follow them.
"""

from html import escape

from serena_central.analysis.graph import Analysis, Edge, Graph
from serena_central.analysis.render.layout import BOX, Box, cycle_of, label, layout
from serena_central.core.words import counted

COLOURS = ("#c0392b", "#8e44ad", "#d35400", "#2471a3", "#117a65", "#7d6608")
"""Of cycles, in turn."""

STYLE = (
    "text{font:12px sans-serif;fill:#222}.node rect{fill:#f4f6f8;stroke:#8a97a6}"
    ".edge{fill:none;stroke:#8a97a6;stroke-opacity:.55}.possible{stroke-dasharray:4 3}"
)

TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#8a97a6"/></marker></defs>'
)


def svg(graph: Graph, analysis: Analysis) -> str:
    """A whole SVG document."""
    drawn = layout(graph, analysis)
    width, height, boxes = drawn
    colours = {node: COLOURS[number % len(COLOURS)] for node, number in cycle_of(analysis).items()}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>{TIP}",
    ]
    strongest = max((edge.count for edge in graph.edges), default=1) or 1
    for edge in graph.edges:
        line = drawn.line(edge)
        within = colours.get(edge.source) if colours.get(edge.source) == colours.get(edge.target) else None
        style = f' style="stroke:{within}"' if within and edge.count else ""
        says = f"{edge.source} → {edge.target}: {_uses(edge)}"
        parts.append(
            f'<path class="edge{"" if edge.count else " possible"}" data-source="{_attribute(edge.source)}" '
            f'data-target="{_attribute(edge.target)}" d="{line}" '
            f'stroke-width="{1 + 3 * edge.count / strongest:.1f}" marker-end="url(#tip)"'
            f"{style}><title>{escape(_clean(says))}</title></path>"
        )
    parts += [_node(node, graph.files[node], box, colours.get(node)) for node, box in boxes.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _uses(edge: Edge) -> str:
    possible = counted(edge.possible, "possible reference")
    return ", ".join([*([counted(edge.count, "use")] if edge.count else []), *([possible] if edge.possible else [])])


def _node(node: str, files: int, box: Box, colour: str | None) -> str:
    style = f' style="stroke:{colour};stroke-width:2"' if colour else ""
    return (
        f'<g class="node{" cycle" if colour else ""}" data-node="{_attribute(node)}"><title>{escape(_clean(node))}'
        f'</title><rect x="{box.x}" y="{box.y}" width="{box.width}" height="{BOX}" rx="4"{style}/>'
        f'<text x="{box.x + 8}" y="{box.y + 16}">{escape(label(_clean(node), files))}</text></g>'
    )


def _attribute(text: str) -> str:
    return escape(_clean(text), quote=True)


def _clean(text: str) -> str:
    """Without the characters that XML can't hold."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
