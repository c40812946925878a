"""Whether two types are of one hierarchy, by the names in the heads of their definitions.

No language server is asked: a call through a base class is found by each place that leads to the base's method, and
asking for a hierarchy each time would take longer than all the rest. Two types of one name are taken for one.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.core.errors import PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Text
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

MOST_TYPES = 100
"""Maximum of names of types above one that are followed; past it, they are unknown."""

HEAD_LINES = 12
"""Lines after a type's name in which its bases may stand."""

_HEAD_WORDS = frozenset({"class", "extends", "implements", "interface", "metaclass", "object", "public", "struct"})
"""Words in heads that are no bases."""

_METACLASSES = frozenset({"type", "ABCMeta", "EnumMeta", "EnumType"})
"""Bases of what makes classes of Python, and so hears of each."""

_TRAIT_IMPLEMENTED = re.compile(r"impl\b.+\bfor\b", re.DOTALL)
"""How a block of Rust is called that implements a trait: its members are called through that, wherever it is."""

_WORD = re.compile(r"[^\W\d]\w*")
_TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")
"""What stands in them is no base, nor are the bounds of type parameters."""

_HEAD_END = re.compile(r"[{]|:\s*(?:#.*)?$", re.MULTILINE)


KIN_S = 10.0
"""For finding the types below one, by the heads of all that have a member of some name: a head takes 0.1 to 0.5 ms."""

Place = tuple[str, int]
"""Of a symbol in the index: its file, and its place there."""

TypesCalled = Callable[[str], Awaitable[Sequence[Hit] | None]]
"""Gives the project's types of a name; None if they are not known."""


class SameHierarchy:
    """Of the types of one project; remembers what it looked up, for one question: files change. What can't be read in
    time is None in its answers: unknown. Belongs to the event loop's thread."""

    def __init__(self, root: Path, types_called: TypesCalled, languages: ProjectLanguages) -> None:
        self._root = root
        self._find_types = types_called
        self._languages = languages
        self._types: dict[str, Sequence[Hit] | None] = {}
        self._named: dict[Place, set[str]] = {}
        self._above: dict[Place, set[str] | None] = {}

    async def related(self, one: Hit, other: Hit) -> bool:
        """Whether one of two members' types stands above the other's, or both have a base in common; also where that is
        not known."""
        first, second = type_of(one), type_of(other)
        if first is None or second is None:
            return False
        above, others = await self._names_above(first), await self._names_above(second)
        if above is None or others is None:
            return True
        return not {first.symbol.name, *above}.isdisjoint({second.symbol.name, *others})

    async def kin(self, own: Hit, members: Iterable[Hit]) -> list[Hit] | None:
        """Those of some members whose types stand above a type or below it. Unknown only if none is found."""
        types = [(member, its) for member in members if (its := type_of(member)) and _place(its) != _place(own)]
        found: dict[Place, Hit] = {}
        with anyio.move_on_after(KIN_S):
            above = await self._names_above(own)
            found = {_place(one): one for one, its in types if above and its.symbol.name in above}
            unknown = above is None
            async for one, its in paced(types):
                if _place(one) not in found:
                    others = await self._names_above(its)
                    unknown |= others is None
                    if others and own.symbol.name in others:
                        found[_place(one)] = one
            return list(found.values()) if found or not unknown else None
        return list(found.values()) or None

    async def meeting(self, own: Iterable[Hit], members: Iterable[Hit], near: TypesCalled) -> list[Hit] | None:
        """Those of some members whose types stand above a type that also stands below one of `own`, and neither above
        these nor below. `near`: the types of the files that hold a name."""
        below: dict[Place, Hit] = {}
        todo, names = list(own), set[str]()
        apart = {_place(one) for one in todo}
        with anyio.move_on_after(KIN_S):
            for one in todo:
                above = await self._names_above(one)
                types = await near(one.symbol.name)
                if above is None or types is None:
                    return None
                if _place(one) in apart:
                    names |= above
                async for other in paced(types):
                    if _place(other) not in below and one.symbol.name in await self._bases(other):
                        below[_place(other)] = other
                        todo.append(other)
            met: set[str] = set()
            for one in below.values():
                met |= await self._names_above(one) or set()
            types = [(member, its) for member in members if (its := type_of(member))]
            return [
                one for one, its in types if its.symbol.name in met - names and _place(its) not in apart | below.keys()
            ]
        return None

    async def may_override(self, member: Hit) -> bool | None:
        """Whether a base of a member's type has a member of its name, or is not in this project."""
        own = type_of(member)
        if own is not None and _TRAIT_IMPLEMENTED.match(own.symbol.name):
            return True
        todo, seen = ([own] if own else []), set[str]()
        while todo:
            for name in await self._bases(todo.pop()) - _HEAD_WORDS - seen:
                seen.add(name)
                called = await self._called(name)
                if called is None or len(seen) > MOST_TYPES:
                    return None
                bases = [base for base in called if own is None or _place(base) != _place(own)]
                if not bases or any(_has_member(base, member.symbol.name) for base in bases):
                    return True
                todo += bases
        return False

    async def is_registered(self, hit: Hit) -> bool | None:
        """Whether a type's bases in this project, of Python, or their metaclasses are told of their subclasses."""
        names = await self._names_above(hit)
        if names is None:
            return None
        bases = [base for name in names for base in await self._called(name) or () if _place(base) != _place(hit)]
        if any(_has_member(base, "__init_subclass__") for base in bases):
            return True
        making = [base for base in bases if _has_member(base, "__new__") or _has_member(base, "__init__")]
        return any([not _METACLASSES.isdisjoint(await self._bases(base)) for base in making])

    async def types_above(self, hit: Hit) -> list[Hit]:
        """A type's bases in this project, and theirs, as far as they are known."""
        return [base for name in await self.names_above(hit) for base in await self._called(name) or ()]

    async def names_above(self, hit: Hit) -> set[str]:
        """The names of a type's bases in this project, and of theirs, as far as they are known."""
        return await self._names_above(hit) or set()

    async def _names_above(self, hit: Hit) -> set[str] | None:
        """The names of all types that stand above one in this project: its own, too, if one of them is called so."""
        place = _place(hit)
        if place not in self._above:
            self._above[place] = await self._climb(hit)
        return self._above[place]

    async def _climb(self, hit: Hit) -> set[str] | None:
        names, todo = set[str](), [hit]
        while todo:
            for name in await self._bases(todo.pop()) - names:
                bases = await self._called(name)
                if bases is None or (bases and len(names) == MOST_TYPES):
                    return None
                if bases:
                    names.add(name)
                    todo += bases
        return names

    async def _called(self, name: str) -> Sequence[Hit] | None:
        if name not in self._types:
            self._types[name] = await self._find_types(name)
        return self._types[name]

    async def _bases(self, hit: Hit) -> set[str]:
        """Words in the head of a type's definition, behind its own name."""
        place = _place(hit)
        if place not in self._named:
            self._named[place] = await self._words_behind(hit)
        return self._named[place]

    async def _words_behind(self, hit: Hit) -> set[str]:
        try:
            text = await anyio.to_thread.run_sync(self._languages.read_text, self._root / hit.path)
        except PathError:
            return set()
        head, before = _head(hit, text), ""
        while head != before:
            head, before = _TYPE_ARGUMENTS.sub("", head), head
        return set(_WORD.findall(head.removeprefix(hit.symbol.name)))


def type_of(member: Hit) -> Hit | None:
    """The type that a symbol is a direct part of."""
    container = member.symbol.container
    if container < 0 or member.file.symbols[container].kind not in TYPES:
        return None
    return Hit(member.path, member.file, container)


def _place(hit: Hit) -> Place:
    return hit.path, hit.place


def _has_member(hit: Hit, name: str) -> bool:
    return any(hit.file.symbols[place].name == name for place in hit.file.children(hit.place))


def _head(hit: Hit, text: Text) -> str:
    symbol = hit.symbol
    last = min(symbol.name_line + HEAD_LINES, symbol.end_line)
    lines = text.lines(symbol.name_line, last)[symbol.name_column :]
    end = _HEAD_END.search(lines)
    return lines[: end.start()] if end else lines.partition("\n")[0]
