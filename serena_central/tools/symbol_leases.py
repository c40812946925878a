"""Which files and symbols running tasks hold: others who edit them are warned, and not stopped.

A place is a root-relative file, or `FILE#NAME_PATH` for a symbol in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from serena_central.agents.plans.order import overlap
from serena_central.core.quoting import quoted

if TYPE_CHECKING:
    from serena_central.projects.editing.edits import Edited

MOST_WARNINGS = 3


class Held(NamedTuple):
    task: str
    session: str
    places: Sequence[str]


class SymbolLeases:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._held: dict[Path, dict[str, Held]] = {}

    def hold(self, root: Path, task: str, session: str, places: Sequence[str]) -> None:
        """A task holds places until it is released."""
        if places:
            self._held.setdefault(root, {})[task] = Held(task, session, places)

    def release(self, task: str) -> None:
        for root, of_root in list(self._held.items()):
            of_root.pop(task, None)
            if not of_root:
                del self._held[root]

    def warnings(self, root: Path, session: str, edited: "Edited") -> Iterator[str]:
        """What a session is told whose edit touches what the task of another one holds."""
        held = self._held.get(root)
        if not held or edited.id is None:
            return
        places = list(_touched(edited))
        others = [one for one in held.values() if one.session != session]
        found = ((one, place) for one in others for place in one.places if any(overlap(place, own) for own in places))
        for one, place in list(found)[:MOST_WARNINGS]:
            yield f"The task {one.task} is working on {quoted(place)} at this time; read it again before further edits."


def _touched(edited: "Edited") -> Iterable[str]:
    bodies = [f"{body.path}#{body.name_path}" for body in edited.consequences.bodies if body.name_path]
    known = {place.partition("#")[0] for place in bodies}
    files = [path for file in edited.files for path in (file.path, file.moved_to) if path]
    return [*bodies, *(path for path in files if path not in known)]
