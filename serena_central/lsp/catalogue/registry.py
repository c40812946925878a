"""Loads the catalogue, and looks up languages by file, servers by language, and defaults.

It uses only names and never reads the disk; `lsp/detection.py` considers a file's folder and first line.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from serena_central.core.decoding import converted
from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue.spec import Language, Naming, ServerSpec, Watching

_FOLDER = Path(__file__).parent
T = TypeVar("T")
_GLOB_CHARACTERS = frozenset("*?[")


class FileKind(NamedTuple):
    """What a file is: its language, and LSP's identifier of it (`typescriptreact`)."""

    language: str
    identifier: str


class Claim(NamedTuple):
    """What a file name may stand for, and what must be near for it (empty: nothing)."""

    kind: FileKind
    markers: tuple[str, ...] = ()


class _Pattern(NamedTuple):
    """A claim on names with one ending; `form` is what the whole name must look like, None where the ending is all."""

    form: re.Pattern[str] | None
    claim: Claim


class Catalogue:
    """All languages and servers. Immutable; lookups by path cost one or two dictionary accesses."""

    def __init__(self, languages: Mapping[str, Language], servers: Mapping[str, ServerSpec]) -> None:
        self.languages = dict(languages)
        self.servers = dict(servers)
        self._names: dict[str, list[Claim]] = {}
        self._endings: dict[str, list[_Pattern]] = {}
        self._globs: list[_Pattern] = []
        self._shebangs: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._successors = {dead: name for name, spec in self.servers.items() for dead in spec.formerly}
        for language, entry in languages.items():
            self._check(language, entry)
            # What holds only near a marker is the stronger claim, and comes first.
            for near in entry.near:
                self._add_all(language, near.files, near.markers, first=True)
            self._add_all(language, entry.files, (), first=False)
            self._shebangs |= {program: language for program in entry.shebangs if program not in self._shebangs}
            self._aliases |= dict.fromkeys(entry.aliases, language)
        self._plain = {
            ending: [pattern.claim for pattern in patterns]
            for ending, patterns in self._endings.items()
            if not any(pattern.form for pattern in patterns)
        }
        """Endings that are all that counts: nearly every file has one of them."""
        self._only_identifier = {
            language: next(iter(identifiers))
            for language, entry in languages.items()
            if len(identifiers := {*entry.files, *(name for near in entry.near for name in near.files)}) == 1
        }
        """Of languages that have but one."""
        doubtful = [pattern for entry in languages.values() if entry.unless for pattern in entry.patterns]
        self.doubtful = tuple(pattern.removeprefix("*") for pattern in doubtful)
        """Endings of files whose text may show that they are none of what their name says."""
        self.markers = frozenset(
            marker for entry in languages.values() for near in entry.near for marker in near.markers
        )
        self.above = tuple(dict.fromkeys(name for entry in languages.values() for name in entry.above))
        """What any language's servers look for above a project."""
        self._last_endings = frozenset(ending[ending.rfind(".") :].lower() for ending in self._endings)
        self._root_markers = frozenset(
            marker.rpartition("/")[2]
            for spec in servers.values()
            for group in spec.roots.markers
            for marker in group
            if _GLOB_CHARACTERS.isdisjoint(marker)
        )

    def language(self, name: str) -> str:
        """The catalogue's name of a language, from any that people have.

        Raises:
            ConfigError
        """
        found = name if name in self.languages else self._aliases.get(name.lower(), name.lower())
        if found not in self.languages:
            close = get_close_matches(name.lower(), self.languages, n=1)
            which = f"Did you mean {close[0]}?" if close else f"Known languages: {', '.join(sorted(self.languages))}"
            raise ConfigError("languages", f"{name!r} is not a known language. {which}")
        return found

    def names_of(self, language: str) -> tuple[str, ...]:
        """All that people call a language, from any of these names; itself alone where it is not in the catalogue."""
        own = language if language in self.languages else self._aliases.get(language.lower(), language.lower())
        entry = self.languages.get(own)
        return (own, *entry.aliases) if entry else (language,)

    def successor(self, server: str) -> str | None:
        """The server that stands in for a dead or renamed one, or None."""
        return self._successors.get(server)

    def server(self, name: str) -> ServerSpec:
        """Raises: ConfigError for a name that is not in the catalogue."""
        try:
            return self.servers[self._successors.get(name, name)]
        except KeyError:
            raise ConfigError(
                "language_server",
                f"{name!r} is not a known language server. Known servers: {', '.join(sorted(self.servers))}",
            ) from None

    def default_server(self, language: str) -> ServerSpec | None:
        """None for a language without one.

        Raises:
            ConfigError: for a language that is not in the catalogue.
        """
        name = self.languages[self.language(language)].server
        return self.servers[name] if name else None

    def servers_of(self, language: str) -> list[ServerSpec]:
        """Every server that knows the language, the default first."""
        default = self.default_server(language)
        others = [spec for spec in self.servers.values() if language in spec.languages and spec is not default]
        return [default, *others] if default else others

    def claims(self, path: str) -> Sequence[Claim]:
        """What a file may be by its name, the strongest claim first. `path` is POSIX; only its last part counts."""
        name = path.rpartition("/")[2]
        found = self._claims(name)
        if not found and not name.islower():
            found = self._claims(name.lower())
        return found or [claim for form, claim in self._globs if form and form.match(name)]

    def is_read(self, name: str) -> bool:
        """Whether a language server may read a file of this name for what other files say: code, and what marks roots.
        May be called in any thread."""
        if name in self._root_markers:
            return True
        # The claims of a name that is no code take five times as long to look up.
        may_be = name[name.rfind(".") :].lower() in self._last_endings or name in self._names or self._globs_fit(name)
        return may_be and any(not self.languages[claim.kind.language].data for claim in self.claims(name))

    def _globs_fit(self, name: str) -> bool:
        return any(pattern.form and pattern.form.match(name) for pattern in self._globs)

    def language_of(self, path: str) -> str | None:
        """The language of a file by its name alone, or None."""
        return next((claim.kind.language for claim in self.claims(path) if not claim.markers), None)

    def identifier_of(self, path: str, languages: Sequence[str]) -> str:
        """The LSP language identifier that didOpen carries (`typescriptreact` for x.tsx), for a server of `languages`.

        A script whose name says nothing has the first identifier of the server's first language.
        """
        if (only := self._only_identifier.get(languages[0])) is not None and len(languages) == 1:
            return only
        for claim in self.claims(path):
            if claim.kind.language in languages:
                return claim.kind.identifier
        first = self.languages.get(languages[0])
        return next(iter(first.files), languages[0]) if first else languages[0]

    def language_of_shebang(self, first_line: str) -> str | None:
        """The language that `#!/usr/bin/env python3` and its like name, or None."""
        if not first_line.startswith("#!"):
            return None
        words = [word.rpartition("/")[2] for word in first_line[2:].split()]
        if words and words[0] == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return self._shebangs.get(words[0]) if words else None

    def _claims(self, name: str) -> Sequence[Claim]:
        if (known := self._names.get(name)) is not None:
            return known
        # The longest ending first: `x.component.html` before `x.html`.
        found: list[Claim] = []
        dot = name.find(".")
        while dot >= 0:
            more = self._plain.get(name[dot:])
            if more is None:
                patterns = self._endings.get(name[dot:], ())
                more = [claim for form, claim in patterns if form is None or form.match(name)]
            found = found + more if found else more
            dot = name.find(".", dot + 1)
        return found

    def _add_all(
        self, language: str, files: Mapping[str, Iterable[str]], markers: tuple[str, ...], *, first: bool
    ) -> None:
        for identifier, patterns in files.items():
            claim = Claim(FileKind(language, identifier), markers)
            for pattern in patterns:
                self._add(pattern, claim, first=first)

    def _add(self, pattern: str, claim: Claim, *, first: bool) -> None:
        if _GLOB_CHARACTERS.isdisjoint(pattern):
            of_name = self._names.setdefault(pattern, [])
            of_name.insert(0 if first else len(of_name), claim)
            return
        stem, dot, ending = pattern.rpartition(".")
        if not dot or not _GLOB_CHARACTERS.isdisjoint(ending):
            self._globs.append(_Pattern(re.compile(translate(pattern)), claim))
            return
        if stem.startswith("*.") and _GLOB_CHARACTERS.isdisjoint(stem[1:]):
            stem, ending = "*", f"{stem[2:]}.{ending}"
        form = None if stem == "*" else re.compile(translate(pattern))
        patterns = self._endings.setdefault(f".{ending}", [])
        named = sum(1 for known in patterns if known.form)  # the more exact comes first
        patterns.insert(0 if form else named if first else len(patterns), _Pattern(form, claim))

    def _check(self, language: str, entry: Language) -> None:
        if not entry.server and entry.without:
            return
        server = self.servers.get(entry.server)
        if server is None or language not in server.languages:
            raise ConfigError(f"{language}.server", f"{entry.server!r} is not a server for it in the catalogue")


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships with the product.

    Raises:
        ConfigError: names file and key.
    """
    return load(_FOLDER)


def is_read(name: str) -> bool:
    """`Catalogue.is_read` of the one that ships with the product, which is loaded when somebody asks."""
    return catalogue().is_read(name)


def load(folder: Path) -> Catalogue:
    """Reads `languages.toml` and `servers/*.toml`.

    Raises:
        ConfigError
    """
    languages = _read(folder / "languages.toml", dict[str, Language])
    servers: dict[str, ServerSpec] = {}
    for file in sorted((folder / "servers").glob("*.toml")):
        spec = _read(file, ServerSpec)
        if spec.name != file.stem:
            raise ConfigError("name", f"{spec.name!r} must be the file's name", file=str(file))
        unknown = [name for name in spec.read_languages if name not in languages]
        if unknown:
            raise ConfigError("languages", f"{', '.join(unknown)} not in languages.toml", file=str(file))
        servers[spec.name] = completed(spec, languages)
    return Catalogue(languages, servers)


def completed(spec: ServerSpec, languages: Mapping[str, Language]) -> ServerSpec:
    """The entry with what it leaves to its languages: how they name symbols, and globs for what it watches, which are
    those of their files and its root markers."""
    if spec.naming == Naming():
        named = (languages[name].naming for name in spec.read_languages)
        spec = msgspec.structs.replace(spec, naming=next((one for one in named if one != Naming()), spec.naming))
    if spec.watch.globs or spec.watch.by_itself:
        return spec
    patterns = [pattern for name in spec.read_languages for pattern in languages[name].patterns]
    patterns += [marker for group in spec.roots.markers for marker in group]
    globs = tuple(dict.fromkeys(f"**/{pattern}" for pattern in patterns))
    return msgspec.structs.replace(spec, watch=Watching(globs=globs))


def _read(file: Path, shape: type[T]) -> T:
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        return converted(data, shape)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("TOML", str(error), file=str(file)) from error
    except msgspec.ValidationError as error:
        problem, _, key = str(error).partition(" - at ")
        raise ConfigError(key.strip("`").removeprefix("$.") or "the entry", problem, file=str(file)) from error
