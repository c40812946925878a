"""Whether two types are of one hierarchy, by the names in the heads of their definitions.

No language server is asked: a call through a base class is found by each place that leads to the base's method, and
asking for a hierarchy each time would take longer than all the rest. Two types of one name are taken for one.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio.to_thread

from serena_central.core.errors import PathError
from serena_central.core.text import Text
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

MOST_TYPES = 100
"""Maximum of base types that are examined."""

HEAD_LINES = 12
"""Lines after a type's name in which its bases may stand."""

_HEAD_WORDS = frozenset({"class", "extends", "implements", "interface", "metaclass", "object", "public", "struct"})
"""Words in heads that are no bases."""

_TRAIT_IMPLEMENTED = re.compile(r"impl\b.+\bfor\b", re.DOTALL)
"""How a block of Rust is called that implements a trait: its members are called through that, wherever it is."""

_WORD = re.compile(r"[^\W\d]\w*")
_TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")
"""What stands in them is no base, nor are the bounds of type parameters."""

_HEAD_END = re.compile(r"[{]|:\s*(?:#.*)?$", re.MULTILINE)


TypesCalled = Callable[[str], Awaitable[Sequence[Hit] | None]]
"""Gives the project's types of a name; None if they are not known."""


class SameHierarchy:
    """Of the types of one project; remembers what it looked up. Belongs to the event loop's thread."""

    def __init__(self, root: Path, types_called: TypesCalled, languages: ProjectLanguages) -> None:
        self._root = root
        self._types_called = types_called
        self._languages = languages
        self._above: dict[tuple[str, int], set[str] | None] = {}

    async def related(self, one: Hit, other: Hit) -> bool:
        """Whether one of two members' types stands above the other's, or both have a base in common; also where that is
        not known."""
        first, second = type_of(one), type_of(other)
        if first is None or second is None:
            return False
        line, others = await self._line(first), await self._line(second)
        return line is None or others is None or not line.isdisjoint(others)

    async def stands_above(self, one: Hit, other: Hit) -> bool:
        """Whether a type is one of those from which another takes members; also where that is not known."""
        line = await self._line(other)
        return line is None or one.symbol.name in line

    async def may_override(self, member: Hit) -> bool:
        """Whether a base of a member's type has a member of its name, or is not known in this project."""
        own = type_of(member)
        if own is not None and _TRAIT_IMPLEMENTED.match(own.symbol.name):
            return True
        todo, seen = ([own] if own else []), set[str]()
        while todo:
            one = todo.pop()
            for name in await self._bases(one) - _HEAD_WORDS - seen:
                seen.add(name)
                bases = await self._types_called(name)
                if not bases or len(seen) > MOST_TYPES:
                    return True
                if any(_has_member(base, member.symbol.name) for base in bases):
                    return True
                todo += bases
        return False

    async def is_registered(self, hit: Hit) -> bool:
        """Whether a type's bases in this project, of Python, are told of their subclasses."""
        todo, seen = [hit], set[str]()
        while todo and len(seen) < MOST_TYPES:
            for name in await self._bases(todo.pop()) - seen:
                seen.add(name)
                bases = await self._types_called(name)
                if bases is None or any(_has_member(base, "__init_subclass__") for base in bases):
                    return True
                todo += bases
        return False

    async def _line(self, hit: Hit) -> set[str] | None:
        """The names of a type and of all that stand above it in this project; None if they are not known."""
        key = hit.path, hit.place
        if key not in self._above:
            self._above[key] = await self._names_above(hit)
        return self._above[key]

    async def _names_above(self, hit: Hit) -> set[str] | None:
        names = {hit.symbol.name}
        todo = [hit]
        while todo and len(names) < MOST_TYPES:
            one = todo.pop()
            for name in await self._bases(one) - names:
                bases = await self._types_called(name)
                if bases is None:
                    return None
                if bases:
                    names.add(name)
                    todo += bases
        return names

    async def _bases(self, hit: Hit) -> set[str]:
        """Words in the head of a type's definition, its own name excepted."""
        try:
            text = await anyio.to_thread.run_sync(self._languages.read_text, self._root / hit.path)
        except PathError:
            return set()
        head, before = _head(hit, text), ""
        while head != before:
            head, before = _TYPE_ARGUMENTS.sub("", head), head
        return set(_WORD.findall(head)) - {hit.symbol.name}


def type_of(member: Hit) -> Hit | None:
    """The type that a symbol is a direct part of."""
    container = member.symbol.container
    if container < 0 or member.file.symbols[container].kind not in TYPES:
        return None
    return Hit(member.path, member.file, container)


def _has_member(hit: Hit, name: str) -> bool:
    return any(hit.file.symbols[place].name == name for place in hit.file.children(hit.place))


def _head(hit: Hit, text: Text) -> str:
    symbol = hit.symbol
    last = min(symbol.name_line + HEAD_LINES, symbol.end_line)
    lines = text.lines(symbol.name_line, last)[symbol.name_column :]
    end = _HEAD_END.search(lines)
    return lines[: end.start()] if end else lines.partition("\n")[0]
