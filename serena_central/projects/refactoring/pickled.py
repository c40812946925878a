"""Objects that are stored with the module and the name of their class: what pickled them before can't be loaded any
more when the class is renamed or deleted, and no code or test need show it."""

import re
from collections.abc import Collection
from contextlib import suppress

from serena_central.core.errors import PathError
from serena_central.projects.navigation.navigation import Navigation
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_LIBRARIES = ("pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve")
_IMPORTED = re.compile(rf"^[^\S\n]*(?:import|from)\s[^\n#]*?(?<![\w.])({'|'.join(_LIBRARIES)})(?!\w)", re.MULTILINE)


async def pickled(files: Collection[str], navigation: Navigation, hit: Hit) -> str | None:
    """A note for whoever renames or deletes a class of Python in a project that stores objects in this way."""
    if navigation.questions.identifier(hit.path) != "python" or hit.symbol.kind not in TYPES:
        return None
    python = [path for path in files if path.endswith(".py")]
    for path in sorted({path for word in _LIBRARIES for path in await navigation.possible.holding(python, word)}):
        with suppress(PathError):
            for read in (await navigation.places.readings([path])).values():
                if found := _IMPORTED.search(read.text.content):
                    place = f"{path}:{read.text.position(found.start(1)).line0}"
                    return (
                        f"{place} imports {found[1]}, which stores objects with the module and name of their class: "
                        f"stored ones of {hit.name_path} can't be loaded afterwards."
                    )
    return None
