"""Compares findings with a git revision: what differs from it, and which findings are new.

git is asked once, at the root that was asked about, and compares submodules with what that revision has of them. What
one module lost makes a finding of another one new.
"""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import anyio.from_thread
import msgspec

from serena_central.analysis.baseline import Baseline
from serena_central.analysis.broken_references import Broken
from serena_central.analysis.module_graph import ModulePart
from serena_central.analysis.selection import is_of_build
from serena_central.core.errors import InvalidArguments, PathError
from serena_central.core.quoting import quoted
from serena_central.files.revisions import Changed, changed_since, is_one_repository, texts_before


class Revised:
    """Of these parts, the first of which is the root. Asks git and reads files: belongs in a worker thread
    of the event loop's."""

    def __init__(self, parts: Sequence[ModulePart], revision: str, around: Path | None = None) -> None:
        """`around`: the root of the super-repo that holds the parts.

        Raises:
            InvalidArguments
        """
        self._root = parts[0].project.root
        self._innermost = sorted(parts, key=lambda part: len(part.area.path), reverse=True)
        self.note: str | None = None
        everything = changed_since(self._root, revision, trusted=False)
        if around is not None and around != self._root:
            everything += self._changed_around(around, revision)
        changed = [one for one in everything if self._counts(one.absolute)]
        now = {one.absolute: text for one in changed if (text := self._text(one.absolute)) is not None}
        parse = partial(anyio.from_thread.run, parts[0].project.languages.syntax.python)
        self.baseline = Baseline(texts_before(changed), now, parse)

    def marked(self, part: ModulePart, found: Sequence[Broken]) -> list[Broken]:
        """Findings of a part, with whether they are new."""

        @cache
        def lines(path: str) -> list[str]:
            return (_read(part, path) or "").splitlines()

        def is_new(one: Broken) -> bool:
            line = lines(one.path)[one.line] if one.line < len(lines(one.path)) else ""
            return self.baseline.is_new(one.message, line)

        return [msgspec.structs.replace(one, new=is_new(one)) for one in found]

    def _changed_around(self, around: Path, revision: str) -> list[Changed]:
        """What changed in other modules of the super-repo: their names may be missed here."""
        try:
            if is_one_repository(self._root, around):
                found = changed_since(around, revision, trusted=False)
                return [one for one in found if not Path(one.absolute).is_relative_to(self._root)]
        except InvalidArguments:
            pass
        self.note = (
            f"Changes since {quoted(revision)} in modules outside {quoted(self._root.name)} were not checked: "
            "they are in another repository. Findings that they cause are not marked as new."
        )
        return []

    def _counts(self, absolute: str) -> bool:
        """Whether names may come from a file: of code, or of how it is built (aliases of modules, where they lie)."""
        part, path = self._place(absolute)
        if part is None:
            return self._innermost[-1].project.languages.is_code(path)
        return part.project.languages.is_code(path) or is_of_build(part.project, path)

    def _text(self, absolute: str) -> str | None:
        part, path = self._place(absolute)
        return _read(part or self._innermost[-1], path)

    def _place(self, absolute: str) -> tuple[ModulePart | None, str]:
        """The part that a file lies in, and its path there; None and the path itself outside of all."""
        if not Path(absolute).is_relative_to(self._root):
            return None, absolute
        path = Path(absolute).relative_to(self._root).as_posix()
        part = next(part for part in self._innermost if part.area.holds(path))
        return part, part.area.inner(path)


def _read(part: ModulePart, path: str) -> str | None:
    try:
        return part.project.languages.read_text(part.project.root / path).content
    except PathError:
        return None
