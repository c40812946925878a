"""Keeps answers from one page to the next, bounded in number, size and age. Knows no tool and no project."""

import time
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from serena_central.core.lru import Lru

KEPT_S = 600.0
"""Seconds after which nobody asks for the next page."""

KEPT_ANSWERS = 64

KEPT_ITEMS = 30_000
"""Of all answers together: some 10 MB of references. A longer answer is not kept."""


class KeptAnswer(NamedTuple):
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
        self._answers: Lru[Hashable, KeptAnswer] = Lru(
            KEPT_ANSWERS, max_size=KEPT_ITEMS, size_of=lambda kept: kept.items
        )

    def get(self, question: Hashable) -> KeptAnswer | None:
        """The last answer to a question, whether or not it is still true."""
        self._drop_old()
        return self._answers.get(question)

    def keep(self, question: Hashable, state: Hashable, value: Any, items: int, notes: Sequence[str]) -> None:
        """Keeps an answer in place of the one before; `items` is how much there is of it."""
        self._drop_old()
        self._answers[question] = KeptAnswer(state, value, items, notes, time.monotonic())

    def _drop_old(self) -> None:
        now = time.monotonic()
        old = [
            question
            for question, kept in zip(self._answers, self._answers.values(), strict=True)
            if now - kept.at > KEPT_S
        ]
        for question in old:
            self._answers.discard(question)
