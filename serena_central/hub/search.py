"""Finds tools by words: over their names, descriptions and parameters, ranked as full-text search does (BM25).

No model and no service: a thousand tools are ranked in some milliseconds.
"""

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Any, cast

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
"""Parts of names, too: `create_pull_request`, `getHTTPServer`."""

MOST_WORDS = 100
"""Of a query that are looked for."""

LAST_CHARACTER = "\U0010ffff"

_K, _B = 1.2, 0.75
"""BM25's usual constants."""

_WEIGHTS = {"name": 4, "description": 2, "parameters": 1}

_ENDINGS = ("ing", "ies", "es", "ed", "s", "e")
"""Left off the ends of longer words, so that `issues` finds `issue`."""

_DEPTH = 3
"""How deep parameters of parameters are looked at."""


class ToolSearch:
    """An index of tools, as they are on the wire. Immutable."""

    def __init__(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        """`tools` maps the name by which a tool is called → MCP's Tool."""
        self._names = list(tools)
        lengths: list[int] = []
        counted: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, (name, tool) in enumerate(tools.items()):
            counts: Counter[str] = Counter()
            for part, text in (
                ("name", f"{name} {tool.get('title', '')}"),
                ("description", str(tool.get("description", ""))),
                ("parameters", " ".join(_parameters(tool.get("inputSchema"), _DEPTH))),
            ):
                for word in _words(text):
                    counts[word] += _WEIGHTS[part]
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                counted[word].append((place, count))
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        norms = [_K * (1 - _B + _B * length / average) for length in lengths]
        self._holding = {word: _weighed(places, norms) for word, places in counted.items()}
        """Word → the tools that hold it, each with what that counts."""
        self._vocabulary = sorted(self._holding)

    def find(self, query: str, limit: int) -> list[str]:
        """Names of the tools that fit best, the best first; those that hold none of the words are left out."""
        scores: dict[int, float] = defaultdict(float)
        total = len(self._names)
        for word in islice(dict.fromkeys(_words(query)), MOST_WORDS):
            for found, share in self._similar(word):
                holding = self._holding[found]
                rarity = math.log(1 + (total - len(holding) + 0.5) / (len(holding) + 0.5))
                for place, weight in holding:
                    scores[place] += share * rarity * weight
        best = nsmallest(limit, scores, key=lambda place: (-scores[place], self._names[place]))
        return [self._names[place] for place in best]

    def _similar(self, word: str) -> Sequence[tuple[str, float]]:
        """The word itself, else words that begin with it, each with what it counts."""
        if word in self._holding:
            return [(word, 1.0)]
        if len(word) < 3:
            return []
        first, end = (bisect_left(self._vocabulary, bound) for bound in (word, word + LAST_CHARACTER))
        return [(other, 0.5) for other in self._vocabulary[first:end]]


def _weighed(places: Iterable[tuple[int, int]], norms: Sequence[float]) -> list[tuple[int, float]]:
    return [(place, count * (_K + 1) / (count + norms[place])) for place, count in places]


def _words(text: str) -> list[str]:
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word[: -len(ending)]
    return word


def _parameters(schema: Any, depth: int) -> list[str]:
    """Names and descriptions of what a schema describes."""
    if not isinstance(schema, Mapping) or not depth:
        return []
    found: list[str] = []
    properties = cast("Mapping[str, Any]", schema).get("properties")
    for name, part in cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else {}).items():
        found.append(name)
        if isinstance(part, Mapping):
            held = cast("Mapping[str, Any]", part)
            found += [str(held.get("description", "")), *_parameters(held, depth - 1)]
            found += _parameters(held.get("items"), depth - 1)
    return found
