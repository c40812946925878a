"""The router: scores which module a description is about. Pure: configuration and words in, scores out.

A module gets 20 points for its name, 10 for each routing hint that names it, 5 for each of its concerns and 3 for each
of its languages. Words count whole and without case; `-`, `_` and space between words are alike:
"go" is not in "google", "vql-capability" is in "the VQL capability". Hints and concerns fit in singular and plural.

Longer names come first, and the words of a name count for nothing else: "risk-models" does not mean the module `risk`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

NAME_POINTS = 20
HINT_POINTS = 10
CONCERN_POINTS = 5
LANGUAGE_POINTS = 3

CLOSE = 0.8
"""A runner-up with more than this part of the best score makes a choice too uncertain for an edit."""

_WORD = re.compile(r"\b[cf](?:\+\+|#)(?!\w)|[^\W_]+")
"""C++, C# and F# are words, too."""

_TAKEN = "\0"
"""Stands in a text for the words of a name."""

_SHORTEST_PLURAL = 4
"""Characters: "aws" and "js" are no plurals."""


class Routed(NamedTuple):
    """The data of one module that the router uses."""

    name: str
    languages: Sequence[str] = ()
    concerns: Sequence[str] = ()


class Score(NamedTuple):
    """One module's points, and what gave them: `name chariot +20`."""

    module: str
    points: int
    reasons: tuple[str, ...]


def route(
    text: str,
    modules: Sequence[Routed],
    hints: Mapping[str, Sequence[str]],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> list[Score]:
    """Modules with points, the best first; of equal ones those that are named, by the length of their names, then in
    the order of the configuration. `hints`: keyword → modules; `aliases`: language → what else it is called."""
    said, left = _named(_plain(text), modules)
    scored = [_score(left, module, hints, aliases or {}, named=module.name in said) for module in modules]
    length = {name: len(_plain(name)) for name in said}
    return sorted(
        (score for score in scored if score.points),
        key=lambda score: (-score.points, -length.get(score.module, 0)),
    )


def is_certain(scores: Sequence[Score]) -> bool:
    """Whether the best is far enough ahead of the next that something may be changed on the strength of it."""
    return bool(scores) and (len(scores) == 1 or scores[1].points < scores[0].points * CLOSE)


def _named(words: str, modules: Sequence[Routed]) -> tuple[set[str], str]:
    """The modules that are named, and the words without their names, between spaces."""
    said: set[str] = set()
    left = f" {words} "
    for plain, name in sorted(((_plain(module.name), module.name) for module in modules), key=lambda one: -len(one[0])):
        if plain and f" {plain} " in left:
            said.add(name)
            while f" {plain} " in left:
                left = left.replace(f" {plain} ", f" {_TAKEN} ")
    return said, left


def _score(
    words: str,
    module: Routed,
    hints: Mapping[str, Sequence[str]],
    aliases: Mapping[str, Sequence[str]],
    *,
    named: bool,
) -> Score:
    reasons = [f"name {module.name} +{NAME_POINTS}"] if named else []
    points = NAME_POINTS if named else 0
    singular = _singular(words)
    hinted = [keyword for keyword, names in hints.items() if module.name in names]
    for kind, worth, phrases in (("hint", HINT_POINTS, hinted), ("concern", CONCERN_POINTS, module.concerns)):
        said = [phrase for phrase in dict.fromkeys(phrases) if _says(singular, _singular(_plain(phrase)))]
        points += worth * len(said)
        reasons += [f"{kind} {phrase} +{worth}" for phrase in said]
    for language in dict.fromkeys(module.languages):
        if any(_says(words, _plain(name)) for name in (language, *aliases.get(language, ()))):
            points += LANGUAGE_POINTS
            reasons.append(f"language {language} +{LANGUAGE_POINTS}")
    return Score(module.name, points, tuple(reasons))


def _says(words: str, plain: str) -> bool:
    return bool(plain) and f" {plain} " in words


def _plain(text: str) -> str:
    """Words without case, one space between them."""
    return " ".join(_WORD.findall(text.casefold()))


def _singular(words: str) -> str:
    """Each word without the ending of English plurals; what only looks like one loses it on both sides alike."""
    return " ".join(map(_singular_of, words.split(" ")))


def _singular_of(word: str) -> str:
    if len(word) < _SHORTEST_PLURAL or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ses", "xes", "zes", "ches", "shes")) else word[:-1]
