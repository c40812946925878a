"""The page of all tools that agents can call."""

import msgspec

from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.references import tool_page
from serena_central.web.views import has_words

PATH = "/tools"


class ToolRow(msgspec.Struct, frozen=True):
    """A tool; `needs` is the setting that must be on for it, "" for none, and `off` says that it is not."""

    name: str
    url: str
    title: str
    summary: str
    effect: str
    needs: str
    off: bool


COLUMNS = Columns[ToolRow](
    {
        "name": Column("Tool", lambda one: one.name),
        "summary": Column("What it does"),
        "effect": Column("Effect", lambda one: one.effect, "minor"),
    },
)


class Tools(msgspec.Struct, frozen=True):
    """In the catalogue's order, unless the query names another; `words` chose them."""

    words: str
    sort: str
    columns: list[Heading]
    rows: list[ToolRow]
    total: int


async def tools(visit: Visit) -> Tools:
    words, settings = visit.query.get("q", ""), visit.parts.loaded.value
    found = list(visit.parts.catalogue)
    rows = [
        ToolRow(
            name=tool.name,
            url=tool_page(tool.name),
            title=tool.title,
            summary=tool.description.partition("\n\n")[0].replace("\n", " "),
            effect="reads" if tool.read_only else "edits" if tool.edits else "acts",
            needs=tool.needs or "",
            off=tool.refusal(settings) is not None
            or (tool.needs is not None and not getattr(settings, tool.needs, True)),
        )
        for tool in found
        if has_words(words, tool.name, tool.title, tool.description)
    ]
    return Tools(
        words=words,
        sort=visit.query.get("sort", ""),
        columns=COLUMNS.headings(visit, PATH),
        rows=COLUMNS.arranged(rows, visit),
        total=len(found),
    )


PAGE = Page(
    path=PATH,
    title="Tools",
    template="tools.html",
    sections={"tools": Section("tools/_tools.html", tools)},
    live=False,
)
