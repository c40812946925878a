"""Loads the catalogue and answers which language a file is, which servers know it, and which one is the default.

It looks at names alone, never at the disk: a file's shebang is handed in by whoever has read it.
"""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from serena_central.core.errors import ConfigError
from serena_central.lsp.catalogue.spec import Part, ServerSpec

_FOLDER = Path(__file__).parent
T = TypeVar("T")
_GLOB_CHARACTERS = frozenset("*?[")


class Language(Part, frozen=True):
    """A language as people name it in settings; `files` maps LSP language identifier → file name patterns."""

    title: str
    server: str
    files: dict[str, tuple[str, ...]]
    shebangs: tuple[str, ...] = ()


class _Claim(msgspec.Struct, frozen=True):
    """What a file name pattern stands for: the language and its LSP identifier."""

    language: str
    identifier: str


class Catalogue:
    """All languages and servers. Immutable; lookups by path cost one or two dictionary accesses."""

    def __init__(self, languages: Mapping[str, Language], servers: Mapping[str, ServerSpec]) -> None:
        self.languages = dict(languages)
        self.servers = dict(servers)
        self._names: dict[str, _Claim] = {}
        self._endings: dict[str, _Claim] = {}
        self._globs: list[tuple[str, _Claim]] = []
        self._shebangs: dict[str, str] = {}
        for language, entry in languages.items():
            self._check(language, entry)
            for identifier, patterns in entry.files.items():
                for pattern in patterns:
                    self._add(pattern, _Claim(language, identifier))
            for program in entry.shebangs:
                self._shebangs.setdefault(program, language)

    def server(self, name: str) -> ServerSpec:
        """Raises: ConfigError for a name that is not in the catalogue."""
        try:
            return self.servers[name]
        except KeyError:
            raise ConfigError(
                "language_server", f"{name!r} is no language server; known are {', '.join(sorted(self.servers))}"
            ) from None

    def default_server(self, language: str) -> ServerSpec:
        """Raises: ConfigError for a language that is not in the catalogue."""
        try:
            return self.server(self.languages[language].server)
        except KeyError:
            raise ConfigError(
                "languages", f"{language!r} is no language; known are {', '.join(sorted(self.languages))}"
            ) from None

    def servers_of(self, language: str) -> list[ServerSpec]:
        """Every server that knows the language, the default first."""
        default = self.default_server(language)
        return [default, *(s for s in self.servers.values() if language in s.languages and s is not default)]

    def language_of(self, path: str) -> str | None:
        """The language of a file by its name, or None. `path` is POSIX; only its last part counts."""
        claim = self._claim(path)
        return claim.language if claim else None

    def identifier_of(self, path: str) -> str | None:
        """The LSP language identifier that didOpen carries (`typescriptreact` for x.tsx), or None."""
        claim = self._claim(path)
        return claim.identifier if claim else None

    def for_file(self, path: str) -> ServerSpec | None:
        """The default server for a file, or None when its language is unknown."""
        language = self.language_of(path)
        return self.default_server(language) if language else None

    def language_of_shebang(self, first_line: str) -> str | None:
        """The language that `#!/usr/bin/env python3` and its like name, or None."""
        if not first_line.startswith("#!"):
            return None
        words = [word.rpartition("/")[2] for word in first_line[2:].split()]
        if words and words[0] == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return self._shebangs.get(words[0]) if words else None

    def _claim(self, path: str) -> _Claim | None:
        name = path.rpartition("/")[2]
        for form in (name, name.lower()) if not name.islower() else (name,):
            claim = self._names.get(form) or self._by_ending(form)
            if claim:
                return claim
        return next((claim for pattern, claim in self._globs if fnmatchcase(name, pattern)), None)

    def _by_ending(self, name: str) -> _Claim | None:
        # The longest ending first: `x.component.html` before `x.html`.
        dot = name.find(".")
        while dot >= 0:
            claim = self._endings.get(name[dot:])
            if claim:
                return claim
            dot = name.find(".", dot + 1)
        return None

    def _add(self, pattern: str, claim: _Claim) -> None:
        rest = pattern.removeprefix("*")
        if _GLOB_CHARACTERS.isdisjoint(pattern):
            self._names.setdefault(pattern, claim)
        elif rest.startswith(".") and _GLOB_CHARACTERS.isdisjoint(rest):
            self._endings.setdefault(rest, claim)
        else:
            self._globs.append((pattern, claim))

    def _check(self, language: str, entry: Language) -> None:
        server = self.servers.get(entry.server)
        if server is None or language not in server.languages:
            raise ConfigError(f"{language}.server", f"{entry.server!r} is no server for it in the catalogue")


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships with the product. Raises: ConfigError that names file and key."""
    return load(_FOLDER)


def load(folder: Path) -> Catalogue:
    """Reads `languages.toml` and `servers/*.toml`. Raises: ConfigError."""
    languages = _read(folder / "languages.toml", dict[str, Language])
    servers: dict[str, ServerSpec] = {}
    for file in sorted((folder / "servers").glob("*.toml")):
        spec = _read(file, ServerSpec)
        if spec.name != file.stem:
            raise ConfigError("name", f"{spec.name!r} must be the file's name", file=str(file))
        unknown = [name for name in spec.languages if name not in languages]
        if unknown:
            raise ConfigError("languages", f"{', '.join(unknown)} not in languages.toml", file=str(file))
        servers[spec.name] = spec
    return Catalogue(languages, servers)


def _read(file: Path, shape: type[T]) -> T:
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        return msgspec.convert(data, shape)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("TOML", str(error), file=str(file)) from error
    except msgspec.ValidationError as error:
        problem, _, key = str(error).partition(" - at ")
        raise ConfigError(key.strip("`").removeprefix("$.") or "the entry", problem, file=str(file)) from error
