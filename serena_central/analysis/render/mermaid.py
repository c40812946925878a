"""A graph as a Mermaid flowchart. Ids are numbers, so that no name can break it; names are quoted labels."""

from serena_central.analysis.graph import Analysis, Edge, Graph
from serena_central.core.quoting import is_visible

MOST_EDGES = 450
"""Mermaid refuses more than 500."""


def mermaid(graph: Graph, analysis: Analysis) -> str:
    """The flowchart; nodes of a circle have the class of their circle."""
    ids = {node: f"n{number}" for number, node in enumerate(sorted(graph.files))}
    lines = ["flowchart LR"]
    lines += [f'    {ids[node]}["{_label(node, graph.files[node])}"]' for node in ids]
    lines += [f"    {ids[edge.source]} {_arrow(edge)} {ids[edge.target]}" for edge in graph.edges[:MOST_EDGES]]
    if analysis.circles:
        lines.append("    classDef circle fill:#fde2e2,stroke:#c0392b,color:#222")
        circled = ",".join(ids[node] for circle in analysis.circles for node in circle.nodes)
        lines.append(f"    class {circled} circle")
    left_out = len(graph.edges) - MOST_EDGES
    if left_out > 0:
        lines.append(f"    %% the {left_out} weakest edges are omitted")
    return "\n".join(lines) + "\n"


def _arrow(edge: Edge) -> str:
    """With the number of uses; dotted, with a question mark, where they are only possible."""
    return f'-->|"{edge.count}"|' if edge.count else f'-.->|"{edge.possible}?"|'


def _label(node: str, files: int) -> str:
    text = "".join(f"#{ord(char)};" if char in '"#<>&`\\' or not is_visible(char) else char for char in node)
    return f"{text} ({files} files)" if files > 1 else text
