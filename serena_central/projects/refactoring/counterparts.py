"""Other declarations of a symbol, of which a build has one: a Go file per platform, a module of Python and its stub, a
script and its declaration file.

Language servers take each for a symbol of its own, and code that uses one uses all of them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

import anyio.to_thread

from serena_central.core.errors import EditRefused, listed
from serena_central.core.text import Text, whole_word
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import Rename
from serena_central.files.text import read_each
from serena_central.files.tree import FileTree
from serena_central.lsp.go_platforms import build_condition
from serena_central.projects.navigation.language_rules import declared_beside, have_one_path
from serena_central.projects.navigation.possible_references import Possible
from serena_central.symbols.go_packages import package_name
from serena_central.symbols.index import Hit, SymbolIndex
from serena_central.symbols.indexing.indexer import Indexer

_DECLARED_OFTEN = frozenset({"_", "init", "main"})
"""Names that files of Go declare independently of each other."""


class Counterparts:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(self, tree: FileTree, index: SymbolIndex, indexer: Indexer, possible: Possible) -> None:
        self._tree = tree
        self._index = index
        self._indexer = indexer
        self._possible = possible

    async def of(self, hit: Hit) -> list[Hit]:
        """In other files than its own."""
        paths = await self._files(hit)
        await self._indexer.ensure(paths)
        files = {path: self._index.file(path) for path in paths if path in self._index}
        return [
            other
            for path, file in files.items()
            for place, name in enumerate(file.names)
            if name == hit.symbol.name and have_one_path(other := Hit(path, file, place), hit)
        ]

    async def _files(self, hit: Hit) -> list[str]:
        match PurePosixPath(hit.path).suffix:
            case ".go" if hit.symbol.name not in _DECLARED_OFTEN:
                beside = [path for path in self._tree.beside(hit.path) if path.endswith(".go")]
                holding = sorted(await self._possible.holding(beside, hit.symbol.name))
                return await anyio.to_thread.run_sync(_built_instead, self._tree.root, hit.path, holding)
            case _:
                return [path for path in declared_beside(hit.path) if path in self._tree.files]


def _built_instead(root: Path, path: str, others: Sequence[str]) -> list[str]:
    """Those files of Go that are in the package of one, and built under another condition. In a thread."""
    built = {
        one: (package_name(source), build_condition(one, source)) for one, source in read_each(root, [path, *others])
    }
    if path not in built:
        return []
    package, condition = built.pop(path)
    return [
        other
        for other, (its_package, its_condition) in built.items()
        if its_package == package and its_condition != condition and "ignore" not in (*its_condition, *condition)
    ]


_EXPORTS = re.compile(r"\bexports?\s*(?:=\s*)?\{")
"""`export { name }` and `module.exports = { name }`."""

MOST_EXPORTS = 100
"""Of these that are looked at: a script has few."""

_BRACKET = re.compile(r"[()\[\]{}]")


def check_exported_alike(hit: Hit, rename: Rename, texts: Mapping[str, Text]) -> None:
    """Raises EditRefused where a script goes on exporting what is renamed under the old name, and its declaration file
    does not, or the other way round: importers follow the declaration, and run the script."""
    files = [path for path in (hit.path, *declared_beside(hit.path)) if path in rename.edits]
    keeping = [path for path in files if _keeps_exporting(hit.symbol.name, rename.edits[path], texts[path])]
    if keeping and len(keeping) < len(files):
        name, others = hit.symbol.name, listed(path for path in files if path not in keeping)
        raise EditRefused(
            f"Nothing was changed: {listed(keeping)} would still export {name} under this name, and {others} under the "
            "new one. Edit the export and its uses as text (replace_content), or pass force=true."
        )


def _keeps_exporting(name: str, edits: Sequence[TextEdit], text: Text) -> bool:
    word, changed = whole_word(name), {text.offset(edit.range.start): edit.new_text for edit in edits}
    kept = sorted(start for start, new_text in changed.items() if word.search(new_text))  # `new as name`, `name: new`
    if kept and any(bisect_left(kept, start) < bisect_left(kept, end) for start, end in _exported(text.content)):
        return True
    members = re.finditer(rf"\bexports\.(?={word.pattern})", text.content)
    return any(member.end() not in changed for member in members)


def _exported(content: str) -> Iterator[tuple[int, int]]:
    """The stretches of a script that stand directly in the brackets of what it exports."""
    for opened in islice(_EXPORTS.finditer(content), MOST_EXPORTS):
        depth, start = 1, opened.end()
        for bracket in _BRACKET.finditer(content, start):
            if depth == 1:
                yield start, bracket.start()
            depth += 1 if bracket[0] in "([{" else -1
            start = bracket.end()
            if depth == 0:
                break
