"""The view of a graph that a page's query asks for: the report, and the addresses of further views.

The query's `granularity`, `folder`, and the folders that a person has `opened` or `shut` (joined by `//`, which no path
holds) say all, so that a browser's history and bookmarks work.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from serena_central.analysis.analysis_run import GraphRun, reach_of
from serena_central.analysis.analysis_runs import AnalysisRuns, GraphRequest
from serena_central.analysis.graph import Granularity
from serena_central.analysis.report import GraphReport
from serena_central.web.pages.analysis_status import GRAPH, root_of
from serena_central.web.pages.graph_drawing import MOST_BYTES, Links, weight
from serena_central.web.pages.page import Visit, link
from serena_central.web.pages.projects import ONE

REFERENCES = f"{ONE}/references"

BETWEEN = "//"

GRANULARITIES: Mapping[str, Granularity] = {"file": "file", "folder": "folder", "module": "module"}
"""As the query names them; symbols are too many for a page."""

MOST_NODES = 60
"""More can't be read."""


class View(NamedTuple):
    """An analysis run as it is looked at."""

    root: str
    look: GraphRequest
    analysis_run: GraphRun
    report: GraphReport
    links: Links

    def reach(self, node: str) -> str:
        """The files of a node of the whole graph."""
        return reach_of(node, self.look.granularity, self.analysis_run.areas)


def look_of(visit: Visit) -> GraphRequest:
    """What the query asks for; what can't be meant is left out."""
    query = visit.query
    granularity = GRANULARITIES.get(query.get("granularity", ""), "file")
    opened, shut = (
        tuple(dict.fromkeys(filter(None, query.get(name, "").split(BETWEEN)))) for name in ("opened", "shut")
    )
    return GraphRequest(granularity, query.get("folder", "").strip("/"), opened, shut, MOST_NODES)


def address(root: str, look: GraphRequest) -> str:
    """Where a look is seen."""
    granularity = look.granularity if look.granularity != "file" else ""
    opened, shut = BETWEEN.join(look.opened), BETWEEN.join(look.shut)
    return link(GRAPH, root=root, granularity=granularity, folder=look.folder, opened=opened, shut=shut)


def unfolded(look: GraphRequest, folder: str) -> GraphRequest:
    """The look with a folder open."""
    return look._replace(opened=(*_without(look.opened, folder), folder), shut=_without(look.shut, folder))


def folded(look: GraphRequest, folder: str) -> GraphRequest:
    """The look with a folder shut."""
    return look._replace(opened=_without(look.opened, folder), shut=(*_without(look.shut, folder), folder))


def _without(folders: Iterable[str], folder: str) -> tuple[str, ...]:
    """Folders but this one and those in it."""
    return tuple(one for one in folders if one != folder and not one.startswith(f"{folder}/"))


def references_url(root: str, **query: Any) -> str:
    """Where references are listed: those `of` a reach and in it, or those in one (`source`) of another (`target`)."""
    return link(REFERENCES, root=root, **query)


async def view_of(visit: Visit) -> View | None:
    """The last analysis run as the query wants it, small enough for a page; None where there is no analysis_run yet."""
    root, look = root_of(visit), look_of(visit)
    analysis_runs = visit.parts.analysis_runs
    analysis_run = await analysis_runs.graph(root)
    if analysis_run is None:
        return None

    # The sections of a page ask one after the other, and a page that is open asks again.
    return await analysis_runs.derived(
        (root, analysis_run.at, look, "view"), lambda: _fitting(analysis_runs, root, analysis_run, look)
    )


async def _fitting(analysis_runs: AnalysisRuns, root: Path, analysis_run: GraphRun, look: GraphRequest) -> View:
    def viewed(report: GraphReport) -> View:
        return View(str(root), look, analysis_run, report, _links(str(root), look, report, analysis_run))

    view = viewed(await analysis_runs.look(root, analysis_run, look))
    while (heavy := weight(view.report, view.links)) > MOST_BYTES and len(view.report.drawn.files) > 1:
        drawn = len(view.report.drawn.files)
        room = min(drawn - 1, int(drawn * MOST_BYTES / heavy))
        view = viewed(await analysis_runs.look(root, analysis_run, look._replace(max_nodes=room)))
    return view


def _links(root: str, look: GraphRequest, report: GraphReport, analysis_run: GraphRun) -> Links:
    reach = {
        node: reach_of(node, look.granularity, analysis_run.areas, folded=node in report.folders)
        for node in report.drawn.files
    }
    return Links(
        url={node: references_url(root, of=reach[node]) for node in reach},
        unfold={node: address(root, unfolded(look, node)) if node in report.folders else "" for node in reach},
    )
