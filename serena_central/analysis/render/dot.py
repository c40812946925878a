"""A graph in Graphviz' language."""

from serena_central.analysis.graph import Analysis, Graph
from serena_central.core.quoting import escaped


def dot(graph: Graph, analysis: Analysis) -> str:
    """A digraph from left to right; cycles are red, edges of possible references dashed."""
    cyclic = {node for cycle in analysis.cycles for node in cycle.nodes}
    lines = ["digraph dependencies {", "    rankdir=LR;", '    node [shape=box, fontname="sans-serif"];']
    lines += [f"    {_quoted(node)}{' [color=red]' if node in cyclic else ''};" for node in sorted(graph.files)]
    for edge in graph.edges:
        colour = ", color=red" if edge.source in cyclic and edge.target in cyclic else ""
        shown = f"label={edge.count}{colour}" if edge.count else f'label="{edge.possible}?", style=dashed'
        lines.append(f"    {_quoted(edge.source)} -> {_quoted(edge.target)} [{shown}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped(plain)}"'
