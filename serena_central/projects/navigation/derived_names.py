"""Names that libraries of Python make of a field's: `author__name` leads through fields in Django, factory_boy and
django-filter, and Django gives a foreign key `author` an `author_id`, and choices a `get_genre_display`.

No language server connects them with the field, and a search for its name as a word does not find them.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

from serena_central.core.errors import PathError
from serena_central.core.pacing import paced
from serena_central.core.text import Range, whole_word
from serena_central.files.tree import FileTree
from serena_central.projects.navigation.navigation import Navigation
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import CALLABLE, TYPES

_MADE = (
    (re.compile(r"\b(?:ForeignKey|OneToOneField)\b"), "{}_id"),
    (re.compile(r"\bchoices\s*="), "get_{}_display"),
)
"""What stands in a field's definition, and the name that Django makes of the field's then."""


async def derived_names(tree: FileTree, navigation: Navigation, hit: Hit) -> list[PlaceInCode]:
    """Where such names stand that are made of a field's, in Python and in files of other languages."""
    container, name = hit.symbol.container, hit.symbol.name
    is_field = container >= 0 and hit.file.symbols[container].kind in TYPES and hit.symbol.kind not in CALLABLE
    if navigation.questions.identifier(hit.path) != "python" or not is_field or name.startswith("_"):
        return []
    found = await _places(navigation, [hit.path, *await navigation.possible.joining(name)], _lookup(name))
    text = (await navigation.places.readings([hit.path]))[hit.path].text
    definition = text.slice(hit.symbol.range)
    for made in (form.format(name) for given, form in _MADE if given.search(definition)):
        files = await navigation.possible.holding(list(tree.files), made)
        found += await _places(navigation, files, whole_word(made))
    return found


async def _places(navigation: Navigation, paths: Iterable[str], pattern: re.Pattern[str]) -> list[PlaceInCode]:
    """Where a pattern matches in those of some files that can be read."""
    found: list[PlaceInCode] = []
    async for path in paced(dict.fromkeys(paths)):
        with suppress(PathError):
            for read in (await navigation.places.readings([path])).values():
                spans = (match.span() for match in pattern.finditer(read.text.content))
                found += (PlaceInCode(path, Range(*map(read.text.position, span))) for span in spans)
    return found


def _lookup(name: str) -> re.Pattern[str]:
    """A name that `__` joins with others where a call is given it as a keyword, or in a string.

    What follows a word is looked at first, once: not again from each place of the name in a long one."""
    part, ends = re.escape(name), r"""(?:\s*=(?!=)|["'{])"""
    begins = rf"(?<![\w.])(?=[^\W_]\w*+{ends})"
    joined = rf"{begins}(?:\w+__{part}(?:__\w+)?|{part}__[^\W_]\w*)(?!\w)"
    return re.compile(rf"{joined}|(?<=\}})__{part}(?:__\w+)?(?={ends})")
