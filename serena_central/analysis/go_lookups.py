"""Methods of Go that code looks up by names which it does not write: `MethodByName(name)`, all methods of a value by
their numbers, and those that `net/rpc` serves.

By the text: a language server lists what names a method. Only exported ones can be found so, and of which types is not
known, as it is not to Go's own linker. Names in strings and templates are known to others.
"""

import re

from serena_central.core.errors import PathError
from serena_central.core.pacing import paced
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit

_LOOKED_UP = re.compile(
    r"""^(?:[^/\n]|/(?!/))*?(?:
        \.MethodByName\(\s*(?!["`\s])
        | (?:<|\brange)\s*[\w.()]{1,100}?\.NumMethod\(\)
        | \brpc\.(?:NewServer|Register(?:Name)?)\(
    )""",
    re.MULTILINE | re.VERBOSE,
)
_WORDS = ("MethodByName", "NumMethod", "rpc")
"""Words of which one stands in each such lookup."""


class GoLookups:
    """Knows such things of one project. Built for each question: files change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._place: str | None = None
        self._is_known = False

    async def reason(self, hit: Hit) -> str | None:
        """Why a method may be in use, as a clause."""
        if hit.symbol.kind != SymbolKind.METHOD or not hit.symbol.name[:1].isupper():
            return None
        if not self._is_known:
            self._place, self._is_known = await self._first(), True
        return f"{self._place} calls exported methods that it does not name" if self._place else None

    async def _first(self) -> str | None:
        """The first place of such code, as `path:line`."""
        languages, files = self._project.languages, list(self._project.tree.files)
        of_go = [path async for path in paced(files) if languages.language_of(path) == "go"]
        holding = [path for word in _WORDS for path in await self._project.navigation.possible.holding(of_go, word)]
        for path in dict.fromkeys(holding):
            try:
                text = (await self._project.read(path)).text
            except PathError:
                continue
            if found := _LOOKED_UP.search(text.content):
                return f"{path}:{text.position(found.end()).line0}"
        return None
