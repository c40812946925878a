"""The table of the server's tool families, in the order in which clients see them."""

from serena_central.tools import (
    analysis,
    changes,
    diagnostics,
    files,
    guidance,
    hierarchies,
    memories,
    refactoring_report,
    references,
    shell,
    symbols,
    tasks,
    upstreams,
    validation,
    workflow,
)
from serena_central.tools.catalogue import Catalogue, tools_in
from serena_central.tools.edits import refactorings, symbol_edits, text_edits

FAMILIES = (
    symbols,
    analysis,
    changes,
    diagnostics,
    files,
    guidance,
    hierarchies,
    memories,
    validation,
    refactoring_report,
    references,
    shell,
    workflow,
    tasks,
    symbol_edits,
    refactorings,
    text_edits,
    upstreams,
)

CATALOGUE = Catalogue(tool for family in FAMILIES for tool in tools_in(family))
