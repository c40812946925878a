"""A graph in Graphviz' language."""

from serena_central.analysis.graph import Analysis, Graph
from serena_central.core.quoting import escaped


def dot(graph: Graph, analysis: Analysis) -> str:
    """A digraph from left to right; circles are red, edges of possible references dashed."""
    circled = {node for circle in analysis.circles for node in circle.nodes}
    lines = ["digraph dependencies {", "    rankdir=LR;", '    node [shape=box, fontname="sans-serif"];']
    lines += [f"    {_quoted(node)}{' [color=red]' if node in circled else ''};" for node in sorted(graph.files)]
    for edge in graph.edges:
        colour = ", color=red" if edge.source in circled and edge.target in circled else ""
        shown = f"label={edge.count}{colour}" if edge.count else f'label="{edge.possible}?", style=dashed'
        lines.append(f"    {_quoted(edge.source)} -> {_quoted(edge.target)} [{shown}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped(plain)}"'
