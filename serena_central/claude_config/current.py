"""The settings of all roots as their files are now, and the last good version of what is broken now."""

from collections.abc import Hashable
from pathlib import Path
from typing import NamedTuple

from serena_central.claude_config.effective import Effective
from serena_central.claude_config.locations import Locations, Stamp, stamp_of
from serena_central.claude_config.problems import Problem
from serena_central.claude_config.reading import Settings, read_settings
from serena_central.claude_config.tiers import TierFile, tier_files
from serena_central.core.lru import Lru

MOST_KEPT = 1000
"""Roots, and files, that are remembered; a box has fewer."""


class _Read(NamedTuple):
    stamp: Stamp
    settings: Settings | None
    good: Settings | None
    """The last version that was not broken."""


class CurrentSettings:
    """Belongs to the event loop's thread, or to a command. Reads small files when they have changed."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations
        self._files: Lru[TierFile, _Read] = Lru(MOST_KEPT)
        self._roots: Lru[Path, tuple[Hashable, Effective]] = Lru(MOST_KEPT)

    def of(self, root: Path, stamp: Hashable = None) -> Effective:
        """What counts in a root now; `stamp` is that of the locations, if it was just taken."""
        stamp = self._locations.stamp(root) if stamp is None else stamp
        known = self._roots.get(root)
        if known is None or known[0] != stamp:
            known = self._roots[root] = stamp, self._read(root)
        return known[1]

    def _read(self, root: Path) -> Effective:
        found: list[Settings] = []
        kept: set[Path] = set()
        for file in tier_files(root, self._locations):
            read = self._file(file)
            now, good = read.settings, read.good
            if now is None:
                continue
            if now.broken and good is not None:
                kept.add(file.path)
                now = good._replace(problems=tuple(_kept(problem) for problem in now.problems))
            found.append(now)
        return Effective(root, self._locations, found, kept=frozenset(kept))

    def _file(self, file: TierFile) -> _Read:
        stamp = stamp_of(file.path)
        known = self._files.get(file)
        if known is None or known.stamp != stamp:
            settings = read_settings(file, self._locations.environment) if stamp is not None else None
            good = settings if settings is None or not settings.broken else known.good if known else None
            known = self._files[file] = _Read(stamp, settings, good)
        return known


def _kept(problem: Problem) -> Problem:
    return problem._replace(remedy="; ".join(filter(None, (problem.remedy, "what it said before stays in force"))))
