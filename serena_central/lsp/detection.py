"""Detects a file's language: by its name, by neighbouring files, or by its first line.

The name is enough for nearly all files. Where several languages claim it, markers in the folders above decide, the
nearest first; where it says nothing and has no ending, the first line is read. The result is cached by folder
and by file until the tree reports a change: a loop over all of 100,000 files may ask again.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from serena_central.core.nofollow import open_file
from serena_central.lsp.catalogue import Catalogue, Claim, FileKind

FIRST_LINE_BYTES = 128

BEGINNING_BYTES = 2048
"""Of a file whose name may be wrong: it may begin with a long path."""

_GLOB = frozenset("*?[")

_UNKNOWN = FileKind("", "")
"""Nothing was found out yet."""


class Detection:
    """Languages of one root's files. Belongs to the event loop's thread; only `read_scripts` is for a worker."""

    def __init__(self, root: Path, catalogue: Catalogue, only: Iterable[str] = ()) -> None:
        """`only` limits what is served (empty: everything)."""
        self._root = root
        self._catalogue = catalogue
        self._only = frozenset(only)
        self._kinds: dict[str, FileKind | None] = {}
        self._contested: dict[str, None] = {}
        """Files about which markers decide, as far as they were asked about."""
        self._scripts: dict[str, FileKind | None] = {}
        """Files of which their text decides, as far as they were asked about."""
        self._marked: dict[tuple[str, tuple[str, ...]], int] = {}
        """(folder, markers) → depth of the nearest folder above, itself included, that holds one; -1: none."""

    def kind_of(self, path: str) -> FileKind | None:
        """What a root-relative path is, if its language is served."""
        kind = self._kinds.get(path, _UNKNOWN)
        if kind is _UNKNOWN:  # not an exception: of 100,000 files each is asked about for the first time
            kind = self._kinds[path] = self._kind(path)
        return kind

    def language_of(self, path: str) -> str | None:
        """The language of a root-relative path, if it is served."""
        kind = self.kind_of(path)
        return None if kind is None else kind.language

    def _kind(self, path: str) -> FileKind | None:
        claims = self._catalogue.claims(path)
        if not claims:
            return self._script(path) if _says_nothing(path) else None
        claim: Claim | None = claims[0]
        if claims[0].markers or (self._only and len(claims) > 1):
            self._contested[path] = None
            claim = self._decide(path, claims)
        if claim is None or not self._serves(claim.kind.language):
            return None
        return self._script(path) if self._catalogue.languages[claim.kind.language].unless else claim.kind

    def is_searched(self, language: str) -> bool:
        """Whether its files' symbols are found by name in the whole project; data's only where it was asked for."""
        return language in self._only or not self._catalogue.languages[language].data

    def read_scripts(self, paths: Iterable[str]) -> dict[str, FileKind | None]:
        """What the text says of those files whose names say nothing or may be wrong, for `remember`. Reads the disk."""
        doubtful, claims = self._catalogue.doubtful, self._catalogue.claims
        unclear = (one for one in paths if one.endswith(doubtful) or (_says_nothing(one) and not claims(one)))
        return {path: self._read_script(path) for path in unclear}

    def remember(self, scripts: dict[str, FileKind | None]) -> None:
        self._scripts |= scripts

    def changed(self, paths: Sequence[str]) -> Mapping[str, FileKind | None]:
        """Forgets what no longer holds; the other files that may be of another kind now, with the one they had."""
        for path in paths:
            self._kinds.pop(path, None)
            self._scripts.pop(path, None)
            self._contested.pop(path, None)
        names = {path.rpartition("/")[2] for path in paths}
        if not any(fnmatch.fnmatchcase(name, marker) for marker in self._catalogue.markers for name in names):
            return {}
        contested, self._contested = self._contested, {}
        self._marked.clear()
        return {path: self._kinds.pop(path) for path in contested}

    def _serves(self, language: str) -> bool:
        return not self._only or language in self._only

    def _decide(self, path: str, claims: Sequence[Claim]) -> Claim | None:
        served = [claim for claim in claims if self._serves(claim.kind.language)]
        if self._only and len({claim.kind.language for claim in served}) == 1:
            return served[0]  # the settings name one of those that claim the file
        if served and not served[0].markers:
            return served[0]  # a name of its own (compose.yml) is stronger than an ending near a marker
        folder = path.rpartition("/")[0]
        near = [(self._depth(folder, claim.markers), claim) for claim in served if claim.markers]
        depth, nearest = max(near, key=lambda found: found[0], default=(-1, None))
        return nearest if depth >= 0 else next((claim for claim in served if not claim.markers), None)

    def _depth(self, folder: str, markers: tuple[str, ...]) -> int:
        known = self._marked.get((folder, markers))
        if known is None:
            if self._has(folder, markers):
                known = folder.count("/") + 1 if folder else 0
            else:
                known = self._depth(folder.rpartition("/")[0], markers) if folder else -1
            self._marked[folder, markers] = known
        return known

    def _has(self, folder: str, markers: tuple[str, ...]) -> bool:
        where = f"{self._root}/{folder}"
        globs = [marker for marker in markers if not _GLOB.isdisjoint(marker)]
        if any(os.path.lexists(f"{where}/{marker}") for marker in markers if marker not in globs):
            return True
        try:
            names = os.listdir(where) if globs else []  # noqa: PTH208 - names alone
        except OSError:
            return False
        return any(fnmatch.filter(names, marker) for marker in globs)

    def _script(self, path: str) -> FileKind | None:
        if path not in self._scripts:
            self._scripts[path] = self._read_script(path)
        kind = self._scripts[path]
        return kind if kind is not None and self._serves(kind.language) else None

    def _read_script(self, path: str) -> FileKind | None:
        claims = self._catalogue.claims(path)
        start = self._beginning(path, BEGINNING_BYTES if claims else FIRST_LINE_BYTES)
        if start is None:
            return None
        if claims:
            kind = claims[0].kind
            return None if re.match(self._catalogue.languages[kind.language].unless, start) else kind
        language = self._catalogue.language_of_shebang(start.partition("\n")[0])
        return FileKind(language, self._catalogue.identifier_of(path, [language])) if language else None

    def _beginning(self, path: str, most_bytes: int) -> str | None:
        try:
            descriptor = open_file(f"{self._root}/{path}")
        except (OSError, ValueError):
            return None
        try:
            return os.read(descriptor, most_bytes).decode("latin-1")
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _says_nothing(path: str) -> bool:
    return "." not in path.rpartition("/")[2]
