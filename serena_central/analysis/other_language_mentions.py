"""Files of other languages that name a symbol: entry points in manifests, members in templates and markup.

No language server connects these. Where a name stands behind that of its module or type (`module:name`), it is the
symbol's; elsewhere it may be a word like any other.
"""

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from serena_central.core.errors import PathError
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.namepath import parse_pattern
from serena_central.symbols.symbol import CALLABLE

MOST_READ = 100
"""Files that are looked into for one name: beyond, it is an everyday word."""

_DEFINED = CALLABLE | {SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT}


class Named(NamedTuple):
    """Files, root-relative. `certain` hold the name behind that of its module or type, `possible` hold it."""

    certain: list[str]
    possible: list[str]


async def named_elsewhere(project: Project, hit: Hit) -> Named:
    """Which files of other languages name a symbol. Those of languages that define such a name themselves mean that."""
    name, named = hit.symbol.name, Named([], [])
    if not name.isidentifier():
        return named
    languages = project.languages
    defined = {
        languages.language_of(other.path)
        for other in project.index.find(parse_pattern(name))
        if other.symbol.kind in _DEFINED
    }
    files = await project.navigation.possible.files_elsewhere(hit)
    asked = [path for path in files if languages.language_of(path) not in defined]
    behind = _behind(hit)
    for path in asked[:MOST_READ]:
        try:
            text = (await project.read(path)).text.content
        except PathError:
            continue
        (named.certain if behind.search(text) else named.possible).append(path)
    named.possible.extend(asked[MOST_READ:])
    return named


def _behind(hit: Hit) -> re.Pattern[str]:
    """The name of a symbol behind that of its module (a package's is its folder's) or type."""
    file = PurePosixPath(hit.path)
    holders = {file.name.partition(".")[0], file.parent.name}
    if hit.symbol.container >= 0:
        holders.add(hit.file.symbols[hit.symbol.container].name)
    either = "|".join(re.escape(holder) for holder in holders if holder)
    return re.compile(rf"(?<!\w)(?:{either})\s*(?:[.:#/]|::)\s*{re.escape(hit.symbol.name)}(?!\w)")
