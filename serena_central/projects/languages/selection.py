"""Decides a file's language and its language server, by file names and settings.

It starts nothing and reads no more of a file than its first line.

Side languages are those that a project has so few files of that no language server is started, installed or waited for
on their account, before somebody asks about such a file. The rule: files of the languages that one server answers for
are counted together. The server is left alone while they are fewer than a given share (`side_language_percent`) of all
files that are searched for symbols. It never is if the project's settings name one of its languages or the server, if
no other server has more files, or once a file of it was asked about by name. So with 1 % nothing is left alone in a
project of up to 100 such files, however few a language has.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import translate
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread

from serena_central.core.errors import ConfigError
from serena_central.core.pacing import paced
from serena_central.files.tree import Change
from serena_central.lsp.catalogue import FileKind, ServerSpec, catalogue
from serena_central.lsp.catalogue.choices import ChoiceProblem
from serena_central.lsp.catalogue.permitted import Permitted
from serena_central.lsp.detection import Detection
from serena_central.symbols.symbol import VALUES
from serena_central.symbols.syntax.grammars import grammar_of

SORTED_AT_ONCE = 200
"""Files: half a millisecond."""

_GLOB = re.compile(r"[*?\[]")


class MarkerNames(NamedTuple):
    """Files that mark the roots of servers, looked up among all files of a project. Most markers are plain names, which
    a set finds in a tenth of a microsecond."""

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


class SideLanguages:
    """The side languages of one project. Servers and languages are known by their names."""

    def __init__(self, percent: float, named: Collection[str] = ()) -> None:
        """`named` are the servers that the project's settings name."""
        self._percent = percent
        self._named = frozenset(named)
        self._awake: set[str] = set()
        self._files: Counter[str] = Counter()
        self._all = 0
        self._sides: frozenset[str] = frozenset()
        """Servers whose languages have so few files; asked of each of 100,000 files."""

    def set(self, files: Counter[str]) -> None:
        """Takes how many files there are of each server, all in all."""
        self._files = Counter(files)
        self._all = files.total()
        self._compare()

    def count(self, server: str, by: int) -> None:
        """A file of a server came (1) or went (-1)."""
        self._files[server] += by
        self._all += by
        self._compare()

    def _compare(self) -> None:
        few, most = self._percent * self._all, max(self._files.values(), default=0)
        small = {server for server, files in self._files.items() if 0 < files * 100 < few and files < most}
        self._sides = frozenset(small - self._named)

    @property
    def exist(self) -> bool:
        """Whether there is any, left alone or not."""
        return bool(self._sides)

    def is_side(self, server: str) -> bool:
        """Whether a server's languages have so few files, whether or not somebody has asked about one."""
        return server in self._sides

    def is_left_alone(self, server: str) -> bool:
        return server in self._sides and server not in self._awake

    def wake(self, server: str) -> bool:
        """Somebody asks about a file of this server by name; whether it was left alone until now."""
        left_alone = self.is_left_alone(server)
        self._awake.add(server)
        return left_alone

    def left_alone(self) -> dict[str, int]:
        """Servers that are, and how many files there are of each."""
        return {server: files for server, files in self._files.items() if self.is_left_alone(server)}

    def woken(self) -> list[str]:
        """Servers of side languages of which somebody has asked about a file."""
        return [server for server in self._files if server in self._awake and self.is_side(server)]

    def share(self, server: str) -> str:
        """`12 of 3,412 code files`"""
        return f"{self._files[server]:,} of {self._all:,} code files"


REBINDING: Mapping[str, frozenset[int]] = {
    "python": frozenset(),
    "ruby": frozenset(),
    "typescript": VALUES,
    "deno": VALUES,
}
"""Languages in which definitions of one name in one scope are one symbol (a name that is bound again, a property's
accessors, signatures, declarations that merge), but for those of these kinds: variables of several blocks. In all
other languages they are overloads."""


Place = tuple[str, FileKind | None]
"""A folder, and what files of it are: at one moment the same server answers for all of them, and the same grammar reads
them. A bare tuple, since 100,000 are made at once."""


class _Served(NamedTuple):
    """What becomes of all files of one kind."""

    server: ServerSpec | None
    is_code: bool


class LanguageSelection:
    """Of one project. Belongs to the event loop's thread."""

    def __init__(
        self,
        root: Path,
        *,
        trusted: bool,
        languages: Sequence[str],
        chosen: dict[str, Any],
        users: dict[str, Any],
        side_percent: float,
        has_syntax: bool,
    ) -> None:
        """Parameters as of `ProjectLanguages`; `has_syntax`: files may be read by syntax."""
        self.choices = Permitted(catalogue(), chosen, users=users, trusted=trusted)
        self.problems = [*self.choices.problems]
        """What of the settings has no effect, and why."""
        known = [found for name in languages if (found := self._known(name))]
        self._detection = Detection(root, catalogue(), known)
        own = [key for key, value in chosen.items() if value != users.get(key)]
        self.side = SideLanguages(side_percent, {*self._servers_named(languages), *self._servers_named(own)})
        self._has_syntax = has_syntax
        self.on_woken: Callable[[], None] = _nothing
        """Called when the servers of side languages may be asked from now on, or no longer."""
        self._specs: dict[str, ServerSpec | None] = {}
        self._served: dict[FileKind | None, _Served] = {}
        """Kinds are a few, and are asked about for each of 100,000 files."""
        self._markers: MarkerNames | None = None
        """Of the servers above; None when one has come since."""

    def language_of(self, path: str) -> str | None:
        """The language of a root-relative path, if this project serves it."""
        return self._detection.language_of(path)

    def place(self, path: str) -> Place:
        """What all files have in common that what is said of languages depends on, for loops over 100,000 of them."""
        return path.rpartition("/")[0], self._detection.kind_of(path)

    def _as_served(self, kind: FileKind | None) -> _Served:
        served = self._served.get(kind)
        if served is None:
            language = kind.language if kind is not None else None
            served = self._served[kind] = _Served(self._spec_of(language), self._counts_as_code(kind))
        return served

    def _counts_as_code(self, kind: FileKind | None) -> bool:
        return kind is not None and self._detection.is_searched(kind.language) and not _is_configuration(kind)

    def is_code_file(self, path: str) -> bool:
        """Whether a root-relative path is code, in any language."""
        return self._as_served(self._detection.kind_of(path)).is_code

    def is_configuration(self, path: str) -> bool:
        """Whether a root-relative path says how code is built, and neither holds nor names symbols."""
        return _is_configuration(self._detection.kind_of(path))

    def has_references(self, path: str) -> bool:
        """Whether other files refer to what a root-relative path declares: not so of data and markup."""
        language = self.language_of(path)
        return language is not None and not catalogue().languages[language].data

    def with_code(self, paths: Iterable[str]) -> list[str]:
        """Those that are code, in any language, or folders (`a/b/`), in which there may be some. Root-relative."""
        return [path for path in paths if path.endswith("/") or self.is_code_file(path)]

    def is_code(self, path: str) -> bool:
        """Whether a root-relative path is code that a language server is asked about."""
        return self.is_code_file(path) and not self.is_left_alone(path)

    def is_left_alone(self, path: str) -> bool:
        """Whether a root-relative path is of a side language: its server waits until such a file is asked about."""
        spec = self.spec_for(path)
        return spec is not None and self.side.is_left_alone(spec.name)

    def is_side(self, path: str) -> bool:
        """Whether a root-relative path is of a side language, whether or not somebody has asked about it."""
        spec = self.spec_for(path)
        return spec is not None and self.side.is_side(spec.name)

    def side_languages(self, missing: Container[str]) -> dict[str, str]:
        """Titles of the side languages whose servers are left alone, or were asked for and are `missing` → what becomes
        of how many files."""
        found: dict[str, str] = {}
        in_vain = (server for server in self.side.woken() if server in missing)
        for server in (*self.side.left_alone(), *in_vain):
            languages = [catalogue().languages[name] for name in self.choices.spec(server).languages]
            title = "/".join(one.title for one in languages)
            read = any(grammar_of(identifier) for one in languages for identifier in one.files)
            how = "by syntax only" if read and self._has_syntax else "not searched"
            found[title] = f"{title} {how} ({self.side.share(server)})"
        return found

    def asked_about(self, path: str) -> None:
        """Somebody asks about a root-relative file by its name: its language is no side language from now on."""
        spec = self.spec_for(path)
        if spec is not None and self.side.wake(spec.name):
            self.on_woken()

    async def by_place(self, paths: Sequence[str]) -> dict[Place, list[str]]:
        """Files of each place."""
        found: dict[Place, list[str]] = {}
        async for at in paced(range(0, len(paths), SORTED_AT_ONCE)):
            folder, here = "", dict[FileKind | None, list[str]]()  # paths of one folder stand together
            for path in paths[at : at + SORTED_AT_ONCE]:
                inside, kind = self.place(path)
                if inside != folder:
                    folder, here = inside, {}
                alike = here.get(kind)
                if alike is None:
                    alike = here[kind] = found.setdefault((inside, kind), [])
                alike.append(path)
        return found

    async def count(self, places: Mapping[Place, Sequence[str]]) -> None:
        """Takes all files of the project, to know its side languages."""
        files = Counter[str]()
        async for (_, kind), paths in paced(list(places.items())):
            if server := self._counted_with(kind):
                files[server] += len(paths)
        self.side.set(files)

    def _counted_with(self, kind: FileKind | None) -> str | None:
        """The server whose share of the project a file of this kind adds to."""
        served = self._as_served(kind)
        return served.server.name if served.server is not None and served.is_code else None

    def changed(self, changes: Sequence[Change]) -> Collection[str]:
        """Follows which languages there are; returns other files whose language may have changed."""
        before = self.side.left_alone().keys()
        gone = [self._detection.kind_of(one.path) for one in changes if one.kind != "created"]
        moved = self._detection.changed([one.path for one in changes])
        come = [*(one.path for one in changes if one.kind != "deleted"), *moved]
        for kind in (*gone, *moved.values()):
            if server := self._counted_with(kind):
                self.side.count(server, -1)
        for path in come:
            if server := self._counted_with(self._detection.kind_of(path)):
                self.side.count(server, 1)
        if self.side.left_alone().keys() != before:
            self.on_woken()
        return moved.keys()

    def rebinds(self, path: str, kind: int) -> bool:
        """Whether definitions of one name in one scope of a root-relative path, such as one of this kind, are one
        symbol."""
        others = REBINDING.get(self.language_of(path) or "")
        return others is not None and kind not in others

    async def look_at_scripts(self, paths: Iterable[str]) -> None:
        """Reads the first lines of files whose names say nothing: many at once, before they are asked for."""
        unknown = list(paths)
        self._detection.remember(await anyio.to_thread.run_sync(self._detection.read_scripts, unknown))

    def spec_for(self, path: str) -> ServerSpec | None:
        """The server that answers for a root-relative path; None where no language or no server for it is known."""
        return self._as_served(self._detection.kind_of(path)).server

    def _spec_of(self, language: str | None) -> ServerSpec | None:
        if language is None:
            return None
        if language not in self._specs:
            self._specs[language] = self.choices.server_for(language)
            self._markers = None
        return self._specs[language]

    def identifier(self, path: str) -> str:
        """LSP's identifier of a file's language; empty where this project serves none."""
        kind = self._detection.kind_of(path)
        return "" if kind is None else kind.identifier

    def marks_builds(self, path: str) -> bool:
        """Whether a file may say how files are built of which that is not known."""
        unknown = [spec for spec in self._specs.values() if spec is not None and spec.roots.unmarked is not None]
        names = MarkerNames.of(marker for spec in unknown for group in spec.roots.markers for marker in group)
        return names.fit(path.rpartition("/")[2])

    def is_marker(self, path: str) -> bool:
        """Whether a file may say where a server's root is. Takes a microsecond: it is asked of all files."""
        if self._markers is None:
            specs = [spec for spec in self._specs.values() if spec is not None]
            self._markers = MarkerNames.of(marker for spec in specs for group in spec.roots.markers for marker in group)
        return self._markers.fit(path.rpartition("/")[2])

    def _servers_named(self, keys: Iterable[str]) -> set[str]:
        """Servers that settings mean by languages or their own names."""
        named = set[str]()
        for key in keys:
            with suppress(ConfigError):
                named.add(self.choices.named_by(key))
        return named

    def _known(self, name: str) -> str | None:
        """The catalogue's name of a language; None, and a problem, for an unknown one."""
        try:
            return catalogue().language(name)
        except ConfigError as error:
            self.problems.append(ChoiceProblem("languages", error.problem))
            return None

    def share(self, server: str) -> str | None:
        """How many files a side language's server has, for people; None for all others."""
        return self.side.share(server) if self.side.is_left_alone(server) else None


def _is_configuration(kind: FileKind | None) -> bool:
    return kind is not None and kind.identifier in catalogue().languages[kind.language].configuration


def _nothing() -> None:
    """Nobody wants to know."""
