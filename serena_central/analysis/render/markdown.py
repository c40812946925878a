"""A graph report as a Markdown page: diagram, cycles with the uses that make them, and the analysis."""

from collections.abc import Sequence

from serena_central.analysis.graph import Cycle, Edge, Ranked
from serena_central.analysis.render.mermaid import mermaid
from serena_central.analysis.report import GraphReport
from serena_central.core.quoting import escaped
from serena_central.core.words import counted

MOST_CYCLES = 20
MOST_EDGES = 30
"""Of one cycle, the weakest first: where it is cut most easily."""

MOST_NODES = 60
"""Named of one cycle, and of one layer."""


def markdown(report: GraphReport) -> str:
    """The page. Line numbers in it are 1-based, as editors count."""
    found, drawn = report.analysis, report.drawn
    lines = [
        f"# Dependencies of {_text(report.title)}",
        "",
        (
            f"{counted(report.nodes, 'node')} ({drawn.granularity}), {counted(report.uses, 'reference')}, "
            f"{_possible(report)}"
            f"{counted(len(found.cycles), 'cycle')}, {counted(len(found.layers), 'layer')}. "
            "An arrow points from the referencing node to the referenced one; its number counts references."
        ),
        *(f"\n> {_text(note)}" for note in report.notes),
        "",
        "```mermaid",
        mermaid(drawn, report.drawn_analysis).rstrip(),
        "```",
        "",
        "## Cycles",
        "",
    ]
    lines += ["No dependency cycles."] if not found.cycles else []
    for number, cycle in enumerate(found.cycles[:MOST_CYCLES], 1):
        lines += _cycle(number, cycle)
    if len(found.cycles) > MOST_CYCLES:
        lines.append(f"{counted(len(found.cycles) - MOST_CYCLES, 'smaller cycle')} omitted.")
    lines += [
        "",
        "## Layers",
        "",
        "The first layer depends on nothing else here; each other layer depends on earlier ones.",
        "",
    ]
    lines += [f"{number}. {_named(layer)}" for number, layer in enumerate(found.layers, 1)]
    lines += ["", "## Most referenced", "", *_table(found.most_used, "users")]
    lines += ["", "## Most dependencies", "", *_table(found.most_using, "dependencies")]
    return "\n".join(lines) + "\n"


def _possible(report: GraphReport) -> str:
    return f"{counted(report.possible, 'possible reference')} (dashed), " if report.possible else ""


def _cycle(number: int, cycle: Cycle) -> list[str]:
    weakest = sorted(cycle.edges, key=lambda edge: (edge.count, edge.source, edge.target))
    lines = [f"### {number}. {_text(cycle.name)}", "", f"{len(cycle.nodes)} nodes: {_named(cycle.nodes)}.", ""]
    lines += [
        f"- {_code(edge.source)} → {_code(edge.target)}: {counted(edge.count, 'reference')}, {_samples(edge)}"
        for edge in weakest[:MOST_EDGES]
    ]
    if len(weakest) > MOST_EDGES:
        lines.append(f"- {counted(len(weakest) - MOST_EDGES, 'stronger edge')} omitted.")
    return [*lines, ""]


def _samples(edge: Edge) -> str:
    return ", ".join(f"{_code(use.name_path)} at {_code(f'{use.path}:{use.line + 1}')}" for use in edge.samples)


def _named(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
    return ", ".join(map(_code, nodes[:MOST_NODES])) + more


def _table(ranked: Sequence[Ranked], of: str) -> list[str]:
    return [f"| node | {of} | references |", "| --- | --- | --- |"] + [
        f"| {_code(one.node)} | {one.nodes} | {one.uses} |" for one in ranked
    ]


def _code(text: str) -> str:
    return f"`{_text(text).replace('`', '´')}`"


def _text(text: str) -> str:
    return escaped(text).replace("|", "¦")
