"""The router: which module some free words are about, by points. Pure: configuration and words in, scores out.

A module gets 20 points for its name, 10 for each routing hint that names it, 5 for each of its concerns and 3 for each
of its languages. Words count whole and without case; `-`, `_` and space between words are alike:
"go" is not in "google", "vql-capability" is in "the VQL capability".
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

_WORD = re.compile(r"[^\W_]+")


class Routed(NamedTuple):
    """What the router looks at of one module."""

    name: str
    languages: Sequence[str] = ()
    concerns: Sequence[str] = ()


class Score(NamedTuple):
    """One module's points, and what gave them: `name chariot +20`."""

    module: str
    points: int
    reasons: tuple[str, ...]


def route(text: str, modules: Sequence[Routed], hints: Mapping[str, Sequence[str]]) -> list[Score]:
    """Modules with points, the best first; equal ones in the order of the configuration. `hints`: keyword → modules."""
    words = f" {_plain(text)} "
    scored = [_score(words, module, hints) for module in modules]
    return sorted((score for score in scored if score.points), key=lambda score: -score.points)


def is_certain(scores: Sequence[Score]) -> bool:
    """Whether the best is far enough ahead of the next that something may be changed on the strength of it."""
    return bool(scores) and (len(scores) == 1 or scores[1].points < scores[0].points * CLOSE)


def _score(words: str, module: Routed, hints: Mapping[str, Sequence[str]]) -> Score:
    reasons = [f"name {module.name} +{NAME_POINTS}"] if _says(words, module.name) else []
    points = NAME_POINTS if reasons else 0
    kinds = (
        ("hint", HINT_POINTS, [keyword for keyword, names in hints.items() if module.name in names]),
        ("concern", CONCERN_POINTS, module.concerns),
        ("language", LANGUAGE_POINTS, module.languages),
    )
    for kind, worth, phrases in kinds:
        said = [phrase for phrase in dict.fromkeys(phrases) if _says(words, phrase)]
        points += worth * len(said)
        reasons += [f"{kind} {phrase} +{worth}" for phrase in said]
    return Score(module.name, points, tuple(reasons))


def _says(words: str, phrase: str) -> bool:
    plain = _plain(phrase)
    return bool(plain) and f" {plain} " in words


def _plain(text: str) -> str:
    """Words without case, one space between them."""
    return " ".join(_WORD.findall(text.casefold()))
