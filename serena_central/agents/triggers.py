"""Triggers: what the description of an agent says of when it is to be used without being asked for.

A sentence that has one of the phrases and names an occasion, "MUST BE USED after code changes", is a trigger. Only
what a tool has done is an occasion: what the words of a conversation come to, a model has to judge. Pure.
"""

import re
from enum import StrEnum
from functools import lru_cache


class Occasion(StrEnum):
    """What a tool has done."""

    EDIT = "code changes"
    COMMAND = "commands"
    READ = "reading code"


_PHRASE = re.compile(r"\b(?:must be used|automatically|always invoked?)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no longer|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")

_AFTER = r"\b(?:after|following|upon|on|once|each|every|any|whenever|when)\b"
_WORDS = {
    Occasion.EDIT: r"changes?|changed|changing|edits?|edited|editing|modif(?:ications?|ied|ying)|writes|written|writing"
    r"|refactor(?:ings?|ed)?|renam(?:es?|ed|ing)|implement(?:ations?|ed|ing)",
    Occasion.COMMAND: r"commands?|shell|(?:test|build)s? runs?|(?:running|run of)(?: the| all)? (?:tests|builds?)"
    r"|tests? (?:is|are|was|were|has been|have been) run|commits?|committing",
    Occasion.READ: r"reads?|reading|search(?:es|ing)?",
}
_OCCASIONS = {
    occasion: re.compile(rf"{_AFTER}[^.;:,]{{0,60}}?\b(?:{words})\b", re.IGNORECASE)
    for occasion, words in _WORDS.items()
}


@lru_cache(maxsize=1024)
def occasions_of(description: str) -> frozenset[Occasion]:
    """After what an agent is to be used; empty where its description has no trigger."""
    found: set[Occasion] = set()
    for sentence in _SENTENCE.split(description):
        phrase = _PHRASE.search(sentence)
        if phrase is None or _NEGATION.search(sentence, 0, phrase.start()):
            continue
        found.update(occasion for occasion, said in _OCCASIONS.items() if said.search(sentence))
    return frozenset(found)
