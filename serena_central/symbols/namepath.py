"""Name paths: how a symbol is named inside its file, and the patterns that agents ask for.

A name path joins the names from the file's top to the symbol by `/`: `Class/method`. An overloaded symbol (several
siblings of one name) carries its place among them: `Class/method[1]`. A pattern is

- `method`, `Class/method`: fits the end of a symbol's path;
- `Type/method` in Rust: fits the method of an `impl` of the type, too; `impl Trait for Type/method` fits that of other
  ones only where there is no such `impl`, and so do a template's arguments;
- `/Class/method`: fits the whole path; where one symbol is meant, what is called just so comes first;
- `method[1]`: fits that overload, and overloaded symbols only; without an index any overload fits;
- with substring matching, the last part fits any name that contains it;
- `Class.method`, `ns::Class<T>::method(int)`, `(*Server).Serve`, `<Type as Trait>::method`: where no symbol is called
  so, what they mean (`written_parts`); what leads the containers may name the file: `package.module.Class.method`.

Names are compared case-sensitively. Names that hold a `/` of their own (headings, keys) are split like any other, on
both sides, and several in a row count as one; one that ends like an index (`Notes [1]`) is found by it, too.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from serena_central.core.errors import InvalidArguments

_PART = re.compile(r"(?P<name>.+?)(?:\[(?P<index>\d{1,9})\])?", re.DOTALL)

_UNNAMED = frozenset({"lib", "src"})
"""Folders that are left out before a name."""

_HERE = frozenset({"crate", "self", "super"})
"""Rust's words for a module."""

PATTERN_LIMIT = 1000
"""Characters; no language nests names deeper than this, hostile input does."""

REMEMBERED_CHARS = 200
"""Of a pattern that is kept, or what was found by it: some are asked for again and again. One of the longest has 500
parts, and takes 100 KB."""


class PathPart(msgspec.Struct, frozen=True):
    """One name of a path, and the index of its overload (None: any, or the symbol has none)."""

    name: str
    overload: int | None = None

    def __str__(self) -> str:
        return self.name if self.overload is None else f"{self.name}[{self.overload}]"

    def fits(self, asked: "PathPart") -> bool:
        if self.name == asked.name:
            return asked.overload in (None, self.overload)
        return asked.overload is not None and self.name == str(asked)


def split_name(name: str) -> list[str]:
    """The parts of a name that holds a `/`; never empty."""
    return [part for part in name.split("/") if part] or [name]


def in_path(name: str) -> str:
    """A name as name paths have it."""
    return "/".join(split_name(name))


def is_odd(name: str) -> bool:
    """Whether a name has slashes that its name path leaves out: `/health`, `src/`, `http://host`."""
    return "/" in name and (name[0] == "/" or name[-1] == "/" or "//" in name)


class Reading(msgspec.Struct, frozen=True):
    """What a pattern may mean. `parts` is never empty. `written`: as people write it, so that what leads the containers
    may name the file. `verbatim`: containers are called just so."""

    parts: tuple[PathPart, ...]
    absolute: bool
    substring: bool
    written: bool = False
    verbatim: bool = False

    @property
    def last(self) -> PathPart:
        return self.parts[-1]

    @property
    def is_bare(self) -> bool:
        """Whether every symbol fits whose own name does."""
        return len(self.parts) == 1 and not self.absolute and self.last.overload is None

    @property
    def names(self) -> set[str]:
        """Names of symbols that can fit: the last part, and what a name with a `/` in it may be."""
        own = {str(self.last), self.last.name}
        if len(self.parts) == 1 and not self.absolute:
            return own
        parts = [*(str(part) for part in self.parts[:-1]), ""]
        joined = ["/".join(parts[first:]) for first in range(len(parts))]
        return {head + name for head in [*joined, *("/" + one for one in joined)] for name in own}

    @property
    def held(self) -> list[set[str]]:
        """One of each set is a name by which every file is found that defines a symbol which fits (`lookup_names`), or
        stands in that file's path: names of its containers."""
        return [
            {part.name, str(part), bare(part.name)}
            for part in self.parts[:-1]
            if not (self.written and part.name in _HERE)
        ]

    def _is_in(self, own: PathPart) -> bool:
        return self.last.name in own.name and self.last.overload in (None, own.overload)

    def fits(self, path: Sequence[PathPart], file: str = "") -> bool:
        """Whether a symbol whose path is `path` (from the file's top) fits; `file` is the root-relative path."""
        own = path[-1]
        if not (own.fits(self.last) or (self.substring and self._is_in(own))):
            return False
        containers, asked = path[:-1], self.parts[:-1]
        if len(asked) > len(containers):
            modules, asked = asked[: len(asked) - len(containers)], asked[len(asked) - len(containers) :]
            if not (self.written and _leads_to(modules, file)):
                return False
        elif self.absolute and len(asked) != len(containers):
            return False
        contains = PathPart.fits if self.verbatim else _contains
        return all(map(contains, containers[len(containers) - len(asked) :], asked))


class Pattern(msgspec.Struct, frozen=True, cache_hash=True):
    """A parsed name-path pattern. `readings` is never empty: the text as it stands, and what else it may mean, which
    counts where nothing fits the one before."""

    text: str
    readings: tuple[Reading, ...]
    substring: bool

    @property
    def parts(self) -> tuple[PathPart, ...]:
        """Of the text as it stands."""
        return self.readings[0].parts

    @property
    def last(self) -> PathPart:
        """The name in its shortest reading: it stands in each file that defines what is asked for."""
        return self.readings[-1].last

    @property
    def container(self) -> PathPart | None:
        """What is to hold it, in its shortest reading."""
        parts = self.readings[-1].parts
        return parts[-2] if len(parts) > 1 else None

    @property
    def packaged(self) -> tuple[str, "Pattern | None"]:
        """What the first part of its last reading may be, a package, and the pattern without it; None where it has but
        one part, or is not written with dots."""
        reading = self.readings[-1]
        if not reading.written or len(reading.parts) < 2:
            return "", None
        rest = msgspec.structs.replace(reading, parts=reading.parts[1:])
        return reading.parts[0].name, msgspec.structs.replace(self, readings=(rest,))

    def fits(self, path: Sequence[PathPart], file: str = "") -> bool:
        """Whether a symbol fits by any reading."""
        return any(reading.fits(path, file) for reading in self.readings)

    def is_whole(self, path: Sequence[PathPart]) -> bool:
        """Whether it names a symbol's whole path, by the first reading that the symbol fits."""
        fitting = next((reading for reading in self.readings if reading.fits(path)), None)
        return fitting is not None and len(fitting.parts) == len(path)


def _contains(container: PathPart, asked: PathPart) -> bool:
    """Whether a container is the one asked for: an implementation in Rust counts as its type, a template's
    specialization as the template."""
    return container.fits(asked) or (asked.overload is None and bare(container.name) == bare(asked.name))


def _leads_to(modules: Sequence[PathPart], file: str) -> bool:
    """Whether these are the names of a file and its folders, or of its folders alone, as far as they go."""
    wanted = [part.name for part in modules if part.name not in _HERE]
    *folders, own = _modules_of(file)
    known = [folder for folder in folders if folder not in _UNNAMED]
    return any(
        names[len(names) - len(wanted) :] == wanted for names in ([*known, own], known) if len(names) >= len(wanted)
    )


@lru_cache(maxsize=4096)
def _modules_of(file: str) -> tuple[str, ...]:
    """A file's folders and its own name as modules are called: `polars-core/src/lib.rs` is polars_core, src, lib."""
    *folders, own = file.replace("-", "_").split("/")
    return (*folders, own.partition(".")[0])


def parse_pattern(text: str, *, substring: bool = False) -> Pattern:
    """Parses what an agent wrote.

    Raises:
        InvalidArguments: the pattern is empty or too long.
    """
    if len(text) > PATTERN_LIMIT:
        raise InvalidArguments(f"The limit for a name path is {PATTERN_LIMIT} characters; this one has {len(text)}.")
    return (_remembered if len(text) <= REMEMBERED_CHARS else _parsed)(text, substring)


def _parsed(text: str, substring: bool) -> Pattern:
    names = [name for name in text.strip().split("/") if name]  # as in `split_name`
    if not names:
        raise InvalidArguments(
            f"{text!r} is not a name path. Use a name (method), a path in its file (Class/method), or /Class."
        )
    absolute = text.strip().startswith("/")
    literal = Reading(tuple(map(_parse_part, names)), absolute, substring)
    return Pattern(text, (*_verbatim(literal), literal, *_as_written(text, literal)), substring)


_remembered = lru_cache(maxsize=256)(_parsed)


def _verbatim(literal: Reading) -> list[Reading]:
    """Where a container is named with more than its bare name, which others may have, too."""
    is_more = any(bare(part.name) != part.name for part in literal.parts[:-1])
    return [msgspec.structs.replace(literal, verbatim=True)] if is_more else []


def _as_written(text: str, literal: Reading) -> list[Reading]:
    parts = written_parts(text)
    if parts is None:
        return []
    meant = Reading(tuple(map(_parse_part, parts)), literal.absolute, literal.substring, written=True)
    return [meant] if meant.parts != literal.parts else []


def _parse_part(text: str) -> PathPart:
    match = _PART.fullmatch(text)
    if match is None or match["index"] is None:
        return PathPart(text)
    return PathPart(match["name"], int(match["index"]))


_ARGUMENTS = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")

_TYPE = re.compile(r"(?P<name>[^\W\d][\w$]*)\s*(?:<.*>|\[(?!\d+\]$).*\])", re.DOTALL)
"""A type with its arguments: `Class<T>`, Go's `List[T]`; `name[1]` is an overload."""

_RECEIVER = re.compile(r"\(\s*(?:\w+\s+)?\*?\s*(?P<name>\w+)\s*(?:\[.*\])?\s*\)", re.DOTALL)
"""Go's `(*Server)`, `(s *Server)`, `(List[T])`."""

_AS_TRAIT = re.compile(r"<\s*(?P<type>.+)\s+as\s.+>", re.DOTALL)
"""Rust's `<Type as Trait>`."""

_CALLED = re.compile(r"(?P<name>~?[\w$#!?]+)\s*(?:<.*>)?\s*\(.*\)", re.DOTALL)
"""With parameters, or none."""

_TURBOFISH = re.compile(r"::\s*(?=<)")
_OPERATOR = re.compile(r"\boperator\b")
_TOKEN = re.compile(r"(?P<separator>::|->|[./#])|(?P<opens>[<(\[{])|(?P<closes>[>)\]}])")


@lru_cache(maxsize=4096)
def bare(name: str) -> str:
    """The name of the type that a container is or implements, without arguments; any other name as it is."""
    if name.startswith(("impl ", "impl<")):
        return implemented(name) or name
    match = _TYPE.fullmatch(name)
    return match["name"] if match else name


def implemented(name: str) -> str | None:
    """The bare name of the type that a symbol of this name implements, such as `impl<R: Read> Trait for &mut Type<R>`;
    None if it is no implementation."""
    if not name.startswith(("impl ", "impl<")):
        return None
    before = ""
    while name != before:
        name, before = _ARGUMENTS.sub("", name), name
    words = _WORD.findall(name.rpartition(" for ")[2].partition(" where ")[0].partition(" + ")[0])
    return words[-1] if words else None


def written_parts(text: str) -> list[str] | None:
    """The containers and the name that a text means where `.`, `::`, `->` or `#` separate them as `/` does, without
    arguments, receivers and parameters. None where it means none."""
    parts = _split(_TURBOFISH.sub("", text.strip().rstrip("/").removeprefix("/").removeprefix("::")))
    named = [_named(part.strip()) for part in parts]
    return named if all(named) else None


def _split(text: str) -> list[str]:
    """At separators that stand in no brackets; an operator's name is one part with all that follows."""
    operator = _OPERATOR.search(text)
    last = text[operator.start() :] if operator else ""
    text = text[: operator.start()] if operator else text
    parts: list[str] = []
    begin = depth = 0
    for token in _TOKEN.finditer(text):
        if token["opens"]:
            depth += 1
        elif token["closes"]:
            depth -= 1
        elif depth == 0:
            parts.append(text[begin : token.start()])
            begin = token.end()
            if token["separator"] == "#" and not parts[-1]:  # JavaScript's private names begin with it
                parts.pop()
                begin = token.start()
    rest = text[begin:]
    return [*parts, last] if last and not rest.strip() else [*parts, rest + last]


def _named(part: str) -> str:
    if part.startswith("operator"):
        return part
    for pattern, group in ((_RECEIVER, "name"), (_AS_TRAIT, "type"), (_CALLED, "name")):
        match = pattern.fullmatch(part)
        if match:
            return bare(match[group].strip().rpartition("::")[2])
    return bare(part)
