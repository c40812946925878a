"""A graph as a Mermaid flowchart. Ids are numbers, so that no name can break it; names are quoted labels."""

from serena_central.analysis.graph import Analysis, Edge, Graph
from serena_central.core.quoting import is_visible

MOST_EDGES = 450
"""Mermaid refuses more than 500."""


def mermaid(graph: Graph, analysis: Analysis) -> str:
    """The flowchart; nodes of a cycle have the class of their cycle."""
    ids = {node: f"n{number}" for number, node in enumerate(sorted(graph.files))}
    lines = ["flowchart LR"]
    lines += [f'    {ids[node]}["{_label(node, graph.files[node])}"]' for node in ids]
    lines += [f"    {ids[edge.source]} {_arrow(edge)} {ids[edge.target]}" for edge in graph.edges[:MOST_EDGES]]
    if analysis.cycles:
        lines.append("    classDef cycle fill:#fde2e2,stroke:#c0392b,color:#222")
        cyclic = ",".join(ids[node] for cycle in analysis.cycles for node in cycle.nodes)
        lines.append(f"    class {cyclic} cycle")
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
