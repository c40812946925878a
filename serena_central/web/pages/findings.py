"""The findings of a project's analysis run: broken references and unused symbols."""

import msgspec

from serena_central.analysis.analysis_run import FindingsRun
from serena_central.core.event_kinds import AnalysisEnded
from serena_central.symbols.symbol import kind_name
from serena_central.web.pages.analysis_status import FINDINGS, GRAPH, WORK, root_of, told
from serena_central.web.pages.listing import Column, Columns, Heading, Option, Pager, options, paged
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.projects import known
from serena_central.web.pages.references import project_named
from serena_central.web.pages.rendering import bounded
from serena_central.web.views import has_words

KINDS = ("broken reference", "unused symbol")

NOTES, MESSAGE_CHARS = 8, 200


class FindingsFilters(msgspec.Struct, frozen=True):
    """The form above the table."""

    name: str
    root: str
    graph_url: str
    words: str
    kinds: list[Option]
    sort: str


class Finding(msgspec.Struct, frozen=True):
    """`line` is 1-based; `what` says which kind of break, or of symbol; `confidence` is that of an unused symbol, and
    the certainty of a broken reference."""

    kind: str
    path: str
    line: int
    what: str
    says: str
    confidence: str


COLUMNS = Columns[Finding](
    {
        "where": Column("Where", lambda one: (one.path, one.line)),
        "what": Column("What", lambda one: (one.kind, one.what)),
        "confidence": Column("Confidence", lambda one: (one.confidence, one.kind), "minor"),
    },
)


class FindingsTable(msgspec.Struct, frozen=True):
    """One page of what matches. `broken` counts what is certain, `possible` the others; `checked`: files looked at."""

    analyzed: bool
    columns: list[Heading]
    rows: list[Finding]
    pager: Pager
    broken: int
    possible: int
    unused: int
    checked: int
    notes: list[str]


async def filters(visit: Visit) -> FindingsFilters:
    root, query = str(root_of(visit)), visit.query
    return FindingsFilters(
        name=known(visit, root).name,
        root=root,
        graph_url=link(GRAPH, root=root),
        words=query.get("q", ""),
        kinds=options(KINDS, query.get("kind", "")),
        sort=query.get("sort", ""),
    )


async def table(visit: Visit) -> FindingsTable:
    analysis_run = await visit.parts.analysis_runs.findings(root_of(visit))
    kind, words = visit.query.get("kind", ""), visit.query.get("q", "")
    found = [
        one
        for one in (_findings(analysis_run) if analysis_run else [])
        if kind in ("", one.kind) and has_words(words, one.path, one.what, one.says)
    ]
    certain = sum(one.certainty == "certain" for one in analysis_run.broken) if analysis_run else 0
    rows, pager = paged(COLUMNS.arranged(found, visit), visit, FINDINGS)
    return FindingsTable(
        analyzed=analysis_run is not None,
        columns=COLUMNS.headings(visit, FINDINGS),
        rows=list(rows),
        pager=pager,
        broken=certain,
        possible=len(analysis_run.broken) - certain if analysis_run else 0,
        unused=len(analysis_run.unused) if analysis_run else 0,
        checked=analysis_run.checked if analysis_run else 0,
        notes=told(analysis_run.notes, NOTES, "serena-central validate") if analysis_run else [],
    )


def _findings(analysis_run: FindingsRun) -> list[Finding]:
    broken, unused = KINDS
    return [
        *(
            Finding(broken, one.path, one.line + 1, one.what, bounded(one.message, MESSAGE_CHARS), one.certainty)
            for one in sorted(analysis_run.broken, key=lambda one: one.certainty)
        ),
        *(
            Finding(
                unused,
                one.path,
                one.line + 1,
                f"{kind_name(one.kind).lower()} {one.name_path}",
                one.reason,
                one.confidence,
            )
            for one in analysis_run.unused
        ),
    ]


PAGE = Page(
    path=FINDINGS,
    title="Findings",
    template="findings.html",
    sections={
        "filters": Section("findings/_filters.html", filters, every_s=3600),
        "work": WORK,
        "table": Section("findings/_table.html", table, (AnalysisEnded,), every_s=3600),
    },
    in_navigation=False,
    names=project_named,
)
