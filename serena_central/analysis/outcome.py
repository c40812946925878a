"""The outcome of a search for findings, of one project or of several together."""

from typing import Generic, TypeVar

import msgspec

from serena_central.analysis.module_graph import Area
from serena_central.core.quoting import quoted


class Finding(msgspec.Struct, frozen=True):
    """A place; `line` is 0-based."""

    path: str
    line: int


F = TypeVar("F", bound=Finding)


class Outcome(msgspec.Struct, Generic[F]):
    """`checked` counts the checked files or symbols, `failed` those that no server answered for, `unasked` those that
    time did not suffice for. `notes` say what may lack, and why."""

    found: list[F] = []
    checked: int = 0
    failed: int = 0
    unasked: int = 0
    notes: list[str] = []

    def add(self, of_module: "Outcome[F]", area: Area) -> None:
        """Adds what was found in a module, by its place in the super-repo."""
        self.found += [msgspec.structs.replace(one, path=area.outer(one.path)) for one in of_module.found]
        self.checked += of_module.checked
        self.failed += of_module.failed
        self.unasked += of_module.unasked
        before = f"{quoted(area.name)}: " if area.name else ""
        self.notes += dict.fromkeys(before + note for note in of_module.notes)
