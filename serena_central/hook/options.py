"""Parses the words of a command line into options, values and arguments. Knows how options look, not what they mean."""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Syntax(NamedTuple):
    """Which options of a program take a value."""

    short: str = ""
    """Letters."""
    long: Collection[str] = ()
    """Names, without dashes."""


class Parsed(NamedTuple):
    """Options in order, each with its value ("" for none), names without dashes; then what is no option."""

    options: list[tuple[str, str]]
    rest: list[str]
    after_dashes: int
    """How many of `rest` stood behind `--`."""

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.options if name in names]


def parse(words: Sequence[str], syntax: Syntax) -> Parsed:
    """As getopt_long does: options may stand anywhere before `--`."""
    options: list[tuple[str, str]] = []
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return Parsed(options, rest + left, len(left))
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            takes = not equals and name in syntax.long and left
            options.append((name, left.pop(0) if takes else value))
        elif word.startswith("-") and len(word) > 1:
            _take_letters(word[1:], syntax.short, options, left)
        else:
            rest.append(word)
    return Parsed(options, rest, 0)


def _take_letters(letters: str, with_value: str, options: list[tuple[str, str]], left: list[str]) -> None:
    """`-rnA3` and `-rn -A 3`: the first letter that takes a value has the rest of the word, or the next one."""
    for place, letter in enumerate(letters):
        if letter in with_value:
            value = letters[place + 1 :]
            options.append((letter, value if value or not left else left.pop(0)))
            return
        options.append((letter, ""))
