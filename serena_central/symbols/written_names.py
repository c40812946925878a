"""How people write names: the containers and the name that `ns::Class<T>::method(int)` or `(*Server).Serve` mean, and
the bare name of a type in whatever a language server calls it.
"""

import re
from functools import lru_cache

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
