"""Answers kept from one page to the next: bounded in number, size and age. Knows no tool and no project."""

import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

KEPT_S = 600.0
"""Nobody goes on after so long."""

KEPT_ANSWERS = 64

KEPT_ITEMS = 30_000
"""Of all answers together: some 30 MB of references with the lines around them. A longer answer is not kept."""


class Kept(NamedTuple):
    """An answer, its notes, and the state of the projects that it was true of."""

    state: Hashable
    value: Any
    items: int
    notes: Sequence[str]
    at: float
    """Monotonic."""


class KeptAnswers:
    """Newest answers by what was asked. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, Kept] = OrderedDict()

    def get(self, question: Hashable) -> Kept | None:
        """The last answer to a question, whether or not it is still true."""
        self._drop_old()
        return self._answers.get(question)

    def keep(self, question: Hashable, state: Hashable, value: Any, items: int, notes: Sequence[str]) -> None:
        """Keeps an answer in place of the one before; `items` is how much there is of it."""
        self._drop_old()
        self._answers.pop(question, None)
        if items > KEPT_ITEMS:
            return
        self._answers[question] = Kept(state, value, items, notes, time.monotonic())
        total = sum(kept.items for kept in self._answers.values())
        while total > KEPT_ITEMS or len(self._answers) > KEPT_ANSWERS:
            _, dropped = self._answers.popitem(last=False)
            total -= dropped.items

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._answers and now - next(iter(self._answers.values())).at > KEPT_S:
            self._answers.popitem(last=False)
