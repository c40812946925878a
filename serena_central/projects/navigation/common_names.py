"""Names of built-in types' members: where the receiver's type is unknown, most places with such a name mean those."""

from collections.abc import Mapping
from io import TextIOBase

_PYTHON = (bytes, bytearray, dict, Exception, float, frozenset, int, list, property, set, str, tuple, type, TextIOBase)

_SCRIPT = """
    apply at bind call catch charAt clear concat delete endsWith entries every exec fill filter finally find findIndex
    flat flatMap forEach get has includes indexOf join keys lastIndexOf length map match matchAll message name pop push
    reduce repeat replace replaceAll reverse search set shift size slice some sort splice split startsWith stack test
    then toString trim unshift value valueOf values
"""

_MEMBERS: Mapping[str, frozenset[str]] = {
    "python": frozenset(name for kind in _PYTHON for name in dir(kind)),
    "javascript": frozenset(_SCRIPT.split()),
    "typescript": frozenset(_SCRIPT.split()),
}


def is_common(language: str | None, name: str) -> bool:
    """Whether built-in types of a language have a member of that name."""
    return name in _MEMBERS.get(language or "", ())


def is_unusual(name: str) -> bool:
    """Whether a string with this name in it means the symbol, rather than an everyday word."""
    everyday = name.isalpha() and (name.islower() or name.istitle())
    return len(name) >= 4 and not everyday
