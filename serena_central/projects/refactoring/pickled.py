"""Objects that are stored with the module and the name of their class: what pickled them before can't be loaded any
more when the class is renamed or deleted, and no code or test need show it."""

import re
from contextlib import suppress

from serena_central.core.errors import PathError
from serena_central.files.tree import FileTree
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.navigation import Navigation
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_LIBRARIES = ("pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve")
_IMPORTED = re.compile(rf"^[^\S\n]*(?:import|from)\s[^\n#]*?(?<![\w.])({'|'.join(_LIBRARIES)})(?!\w)", re.MULTILINE)


class Pickled:
    """Whether the classes of one project may be stored so; found out once for each state of its files, by the names of
    six libraries in all of them."""

    def __init__(self, tree: FileTree, navigation: Navigation, languages: ProjectLanguages) -> None:
        self._tree = tree
        self._navigation = navigation
        self._languages = languages
        self._imported: str | None = None
        self._looked_after = -1
        """That is as of so many changes."""

    async def note(self, hit: Hit) -> str | None:
        """For whoever renames or deletes a class of Python in a project that stores objects in this way."""
        if self._languages.language_of(hit.path) != "python" or hit.symbol.kind not in TYPES:
            return None
        changes = self._languages.changes
        if changes != self._looked_after:
            self._imported = await self._find()
            self._looked_after = changes
        if self._imported is None:
            return None
        return (
            f"{self._imported}, which stores objects with the module and name of their class: stored ones of "
            f"{hit.name_path} can't be loaded afterwards."
        )

    async def _find(self) -> str | None:
        """Where the first of these libraries is imported, and which."""
        possible, places = self._navigation.possible, self._navigation.places
        python = [path for path in self._tree.files if path.endswith(".py")]
        for path in sorted({path for word in _LIBRARIES for path in await possible.holding(python, word)}):
            with suppress(PathError):
                for read in (await places.readings([path])).values():
                    if found := _IMPORTED.search(read.text.content):
                        return f"{path}:{read.text.position(found.start(1)).line0} imports {found[1]}"
        return None
