"""Methods of Java that one class inherits from types that know nothing of each other: there one implements the other.

jdtls renames both where their parameters have the same types (`class Both extends Sized implements Plain`), and one of
them where a type takes the place of a parameter (`class Met extends Words implements Filter<String>`).
"""

import re

from serena_central.core.errors import EditRefused
from serena_central.editing.rename import Rename
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.same_hierarchy import type_of
from serena_central.symbols.index import Hit
from serena_central.symbols.java_declarations import head_of, may_take_parameters_types, parameters

_OF_ITS_TYPE_ALONE = re.compile(r"\b(?:private|static)\b")


async def of_joined(navigation: Navigation, hit: Hit, rename: Rename) -> list[Hit]:
    """Methods that keep the old name, and that some type inherits beside the renamed ones, as far as the numbers of
    their parameters tell.

    Raises:
        EditRefused: the types could not be read in time.
    """
    if navigation.questions.identifier(hit.path) != "java" or hit.symbol.kind != SymbolKind.METHOD:
        return []
    methods = [one for one in await navigation.possible.namesakes(hit) if one.symbol.kind == SymbolKind.METHOD]
    texts = {
        path: read.text for path, read in (await navigation.places.readings({one.path for one in methods})).items()
    }
    inherited = [
        one
        for one in methods
        if one.path in texts
        and type_of(one) is not None
        and not _OF_ITS_TYPE_ALONE.search(head_of(one.symbol, texts[one.path]))
    ]
    edited = {(path, edit.range.start) for path, edits in rename.edits.items() for edit in edits}
    renamed = [one for one in inherited if (one.path, one.symbol.name_position) in edited]
    counts = {parameters(one, texts[one.path]) for one in renamed}
    kept = [one for one in inherited if one not in renamed and parameters(one, texts[one.path]) in counts]
    if not any(may_take_parameters_types(one, texts[one.path]) for one in renamed):
        kept = [one for one in kept if may_take_parameters_types(one, texts[one.path])]
    if not kept or not counts:
        return []
    found = await navigation.possible.meeting([its for one in renamed if (its := type_of(one))], kept)
    if found is None:
        raise EditRefused(
            f"Nothing was changed: whether a class inherits {hit.name_path} beside another method of that name could "
            "not be determined in time. Call again, or pass force=true to rename it anyway."
        )
    return found
