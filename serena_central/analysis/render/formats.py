"""The output formats of a graph report."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from serena_central.analysis.render.dot import dot
from serena_central.analysis.render.markdown import markdown
from serena_central.analysis.render.mermaid import mermaid
from serena_central.analysis.render.svg import svg
from serena_central.analysis.report import GraphReport

Format = Literal["markdown", "mermaid", "dot", "json", "svg"]

RENDERERS: Mapping[Format, Callable[[GraphReport], str]] = {
    "markdown": markdown,
    "mermaid": lambda report: mermaid(report.drawn, report.drawn_analysis),
    "dot": lambda report: dot(report.drawn, report.drawn_analysis),
    "json": lambda report: msgspec.json.format(msgspec.json.encode(report).decode(), indent=1),
    "svg": lambda report: svg(report.drawn, report.drawn_analysis),
}
