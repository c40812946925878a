"""Files that mark the roots of servers, looked up among all files of a project."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import NamedTuple

_GLOB = re.compile(r"[*?\[]")


class MarkerNames(NamedTuple):
    """Most markers are plain names, which a set finds in a tenth of a microsecond."""

    plain: frozenset[str]
    globs: re.Pattern[str] | None

    @classmethod
    def of(cls, markers: Iterable[str]) -> "MarkerNames":
        """`markers` are patterns of `fnmatch`, perhaps with folders, which are left out."""
        names = {marker.rpartition("/")[2] for marker in markers}
        globs = sorted(name for name in names if _GLOB.search(name))
        return cls(frozenset(names.difference(globs)), re.compile("|".join(map(translate, globs))) if globs else None)

    def fit(self, name: str) -> bool:
        """Whether a file of this name, without its folders, may be a marker."""
        return name in self.plain or (self.globs is not None and self.globs.match(name) is not None)
