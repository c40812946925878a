"""Real language servers, on a machine that may be busy."""

import pytest

from serena_central.projects.build import INDEXING
from serena_central.projects.editing import edit_effects
from serena_central.projects.navigation import possible_references
from serena_central.projects.superrepo import sibling_references

PLENTY_S = 100.0
"""Less than what a test may take."""


@pytest.fixture(autouse=True)
def _nobody_is_in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lifts the bounds of answers that somebody waits for: where a server is slow, these answers hold less, and say so.
    Whoever tests a bound sets it."""
    for name in ("patience_s", "answer_s"):
        monkeypatch.setattr(INDEXING, name, PLENTY_S)
    monkeypatch.setattr(possible_references, "FIRST_S", PLENTY_S)
    monkeypatch.setattr(sibling_references, "FINDING_S", PLENTY_S)
    monkeypatch.setattr(edit_effects, "SYMBOLS_S", PLENTY_S)
