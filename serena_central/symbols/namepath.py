"""Name paths: how a symbol is named inside its file, and the patterns that agents ask for.

A name path joins the names from the file's top to the symbol by `/`: `Class/method`. An overloaded symbol (several
siblings of one name) carries its place among them: `Class/method[1]`. A pattern is

- `method`, `Class/method`: fits the end of a symbol's path;
- `Type/method` in Rust: fits the method of an `impl` of the type, too;
- `/Class/method`: fits the whole path;
- `method[1]`: fits that overload, and overloaded symbols only; without an index any overload fits;
- with substring matching, the last part fits any name that contains it.

Names are compared case-sensitively. Names that hold a `/` of their own (headings, keys) are split like any other, on
both sides; one that ends like an index (`Notes [1]`) is found by it, too.
"""

import re
from collections.abc import Sequence

import msgspec

from serena_central.core.errors import InvalidArguments

_PART = re.compile(r"(?P<name>.+?)(?:\[(?P<index>\d{1,9})\])?", re.DOTALL)

_ARGUMENTS = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")

PATTERN_LIMIT = 1000
"""Characters; no language nests names deeper than this, hostile input does."""


class Part(msgspec.Struct, frozen=True):
    """One name of a path, and which of its overloads is meant (None: any, or the symbol has none)."""

    name: str
    overload: int | None = None

    def __str__(self) -> str:
        return self.name if self.overload is None else f"{self.name}[{self.overload}]"

    def fits(self, asked: "Part") -> bool:
        if self.name == asked.name:
            return asked.overload in (None, self.overload)
        return asked.overload is not None and self.name == str(asked)


def split_name(name: str) -> list[str]:
    """The parts of a name that holds a `/`; never empty."""
    return [part for part in name.split("/") if part] or [name]


class Pattern(msgspec.Struct, frozen=True):
    """A parsed name-path pattern; `parts` is never empty."""

    text: str
    parts: tuple[Part, ...]
    absolute: bool
    substring: bool

    @property
    def last(self) -> Part:
        return self.parts[-1]

    def fits_name(self, name: str) -> bool:
        """Whether a symbol of this name can fit, overloads and containers aside."""
        return self.last.name in name if self.substring else name in self.names

    @property
    def names(self) -> set[str]:
        """Names of symbols that can fit: the last part, and what a name with a `/` in it may be."""
        names = {str(self.last), self.last.name}
        if len(self.parts) > 1 or self.absolute:
            parts = [*(str(part) for part in self.parts[:-1]), ""]
            joined = ["/".join(parts[first:]) for first in range(len(parts))]
            names.update(head + name for head in [*joined, *("/" + one for one in joined)] for name in tuple(names))
        return names

    def _is_in(self, own: Part) -> bool:
        return self.last.name in own.name and self.last.overload in (None, own.overload)

    def fits(self, path: Sequence[Part]) -> bool:
        """Whether a symbol whose path is `path` (from the file's top) fits."""
        if len(path) < len(self.parts) or (self.absolute and len(path) != len(self.parts)):
            return False
        own = path[-1]
        if not (own.fits(self.last) or (self.substring and self._is_in(own))):
            return False
        containers = path[-len(self.parts) : -1]
        return all(_contains(part, asked) for part, asked in zip(containers, self.parts[:-1], strict=True))


def _contains(container: Part, asked: Part) -> bool:
    """Whether a container is the one asked for: an implementation in Rust counts as its type."""
    return container.fits(asked) or (asked.overload is None and implemented(container.name) == asked.name)


def implemented(name: str) -> str | None:
    """The bare name of the type that a symbol of this name implements, such as `impl<R: Read> Trait for &mut Type<R>`;
    None if it is no implementation."""
    if not name.startswith(("impl ", "impl<")):
        return None
    before = ""
    while name != before:
        name, before = _ARGUMENTS.sub("", name), name
    words = _WORD.findall(name.rpartition(" for ")[2].partition(" where ")[0])
    return words[-1] if words else None


def parse_pattern(text: str, *, substring: bool = False) -> Pattern:
    """Parses what an agent wrote.

    Raises:
        InvalidArguments: the pattern is empty, too long, or has an empty part.
    """
    if len(text) > PATTERN_LIMIT:
        raise InvalidArguments(f"A name path has {PATTERN_LIMIT} characters at most; this one has {len(text)}.")
    names = text.strip().rstrip("/").removeprefix("/").split("/")
    if not all(names):
        raise InvalidArguments(
            f"{text!r} is no name path. Write a name (method), a path in its file (Class/method), or /Class."
        )
    return Pattern(text, tuple(_parse_part(name) for name in names), text.strip().startswith("/"), substring)


def _parse_part(text: str) -> Part:
    match = _PART.fullmatch(text)
    if match is None or match["index"] is None:
        return Part(text)
    return Part(match["name"], int(match["index"]))
