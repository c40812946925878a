"""What the compiler would say if files had other texts, asked before anything is written.

A type may demand a symbol without naming it or what holds it: a value fits if it has the members, and where that is
looked at may be any file. Language servers list no such uses, so the one that checks types is asked for all files.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from serena_central.core.errors import DeadlineExceeded, LanguageServerError, PathError, Unsupported
from serena_central.core.quoting import quoted
from serena_central.core.text import Text
from serena_central.files.tree import FileTree
from serena_central.lsp.answers import Diagnostic
from serena_central.lsp.client import LanguageServer
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.navigation.navigation import Navigation
from serena_central.symbols.index import Hit

MOST_FILES = 1_000
"""That one change is checked in: those first that name what it is about, or its module."""

MOST_CHANGED = 50
"""A change of more files is not checked: all of them have to be open at once."""

MOST_OPENED = 100
"""Files that are opened first: the server loads the projects of open files alone."""

WITHIN_S = 5.0

FIRST_FILES = 40
"""That are asked about at once; then four times as many, if there is time for them. A server that is asked about a
thousand files works at all of them, and may have told of none when the time is over."""

GROWTH = 4

COMPARED = 20
"""Files with errors that are asked about as they are."""

LISTED = 5

ERROR = 1
"""LSP DiagnosticSeverity."""

_UNUSED = frozenset({"6133", "6138", "6192", "6196", "6198", "6199", "6205"})
"""Errors by which TypeScript says that something else is used no more."""


class ForeseenErrors(NamedTuple):
    """`errors`: path → those that a change would bring; `examined`: of how many of the `files` that is known."""

    errors: dict[str, list[Diagnostic]]
    files: int = 0
    examined: int = 0

    def listed(self, besides: Iterable[str] = ()) -> str:
        """The first ones, those in files `besides` left out: `path:line: message`; empty if there are none."""
        left_out = set(besides)
        found = [(path, one) for path, some in self.errors.items() if path not in left_out for one in some]
        shown = [f"{path}:{one.range.start.line0} ({quoted(one.message)})" for path, one in found[:LISTED]]
        more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
        return ", ".join(shown) + more

    def notes(self) -> list[str]:
        """What was not found out, if anything."""
        if self.examined == self.files:
            return []
        return [f"Errors that this may cause were looked for in {self.examined:,} of {self.files:,} files only."]


NONE_FORESEEN = ForeseenErrors({})


class Foresight:
    """Asks what changes of one project would break. Belongs to the event loop's thread."""

    def __init__(self, root: Path, tree: FileTree, navigation: Navigation, languages: ProjectLanguages) -> None:
        self._root = root
        self._tree = tree
        self._navigation = navigation
        self._languages = languages

    async def of(self, hit: Hit, texts: Mapping[str, Text]) -> ForeseenErrors:
        """The errors that files would have if some had other `texts` (by root-relative path), for a change that is
        about a symbol. None where its server can't tell."""
        spec = self._languages.spec_for(hit.path)
        if spec is None or not spec.documents.answers_in_order or len(texts) > MOST_CHANGED:
            return NONE_FORESEEN
        workplace = self._languages.workplace_of(hit.path)
        files = [
            path
            for path in self._tree.files
            if self._languages.spec_for(path) is spec and self._languages.workplace_of(path) == workplace
        ]
        changed = {self._root / path: text for path, text in texts.items() if path in files}
        naming = await self._naming(hit, files)
        first = list(dict.fromkeys([*texts, *naming]))
        asked = list(dict.fromkeys([*first, *files]))[:MOST_FILES]
        opened = [self._root / path for path in first[:MOST_OPENED]]

        async def ask(server: LanguageServer) -> dict[Path, list[Diagnostic]]:
            told: dict[Path, list[Diagnostic]] = {}
            until, rest, count = time.monotonic() + WITHIN_S, [self._root / path for path in asked], FIRST_FILES
            while rest:
                some, rest, begun = rest[:count], rest[count:], time.monotonic()
                answered = await server.errors_if(changed, some, opened=opened, within_s=until - begun)
                told |= answered
                now, count = time.monotonic(), count * GROWTH
                if len(answered) < len(some) or (now - begun) * GROWTH > until - now:
                    break
            return told

        try:
            told, _ = await self._navigation.questions.when_ready(hit.path, ask)
        except Unsupported:
            return NONE_FORESEEN
        except (LanguageServerError, PathError):
            return ForeseenErrors({}, len(files))
        found = {path: _errors(some) for path in asked if (some := told.get(self._root / path))}
        new, unknown = await self._new(found)
        return ForeseenErrors(new, len(files), len(told) - unknown)

    async def _naming(self, hit: Hit, files: Sequence[str]) -> list[str]:
        """Files that may hold the name of the outermost symbol around one, or of its module."""
        place = hit.place
        while hit.file.symbols[place].container >= 0:
            place = hit.file.symbols[place].container
        module = PurePosixPath(hit.path)
        stem = module.name.partition(".")[0]
        names = [hit.file.symbols[place].name, module.parent.name if stem == "index" else stem]
        return [path for name in names for path in await self._navigation.possible.holding(files, name)]

    async def _new(self, found: Mapping[str, list[Diagnostic]]) -> tuple[dict[str, list[Diagnostic]], int]:
        """Those errors that files do not have as they are, and of how many files that is not known. Errors of one kind
        are alike, since messages quote types that the change is part of."""
        new: dict[str, list[Diagnostic]] = {}
        with_errors = [path for path, errors in found.items() if errors]
        unknown = len(with_errors[COMPARED:])
        for path in with_errors[:COMPARED]:
            try:
                views, _ = await self._navigation.diagnostics(path)
            except (LanguageServerError, PathError, DeadlineExceeded):
                unknown += 1
                continue
            before = _errors(view.diagnostic for view in views)
            kinds, messages = Counter(one.code for one in before), Counter((one.code, one.message) for one in before)
            for one in sorted(found[path], key=lambda one: (one.code, one.message) not in messages):
                if kinds[one.code] > 0:
                    kinds[one.code] -= 1
                else:
                    one.message = await self._navigation.closed_text.without(path, one.message)
                    new.setdefault(path, []).append(one)
        return new, unknown


def _errors(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [one for one in found if one.severity == ERROR and one.code not in _UNUSED]
