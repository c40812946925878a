"""Answers kept between pages are bounded in number, size and age."""

import pytest

from serena_central.tools import kept_answers
from serena_central.tools.kept_answers import KeptAnswers


def kept(answers: KeptAnswers, *questions: str) -> list[str]:
    return [question for question in questions if answers.get(question) is not None]


def test_the_oldest_go_when_all_together_are_too_large() -> None:
    answers = KeptAnswers()
    for question in ("a", "b", "c"):
        answers.keep(question, 1, question, kept_answers.KEPT_ITEMS // 2, ())
    assert kept(answers, "a", "b", "c") == ["b", "c"]
    answers.keep("b", 2, "b", kept_answers.KEPT_ITEMS + 1, ())
    assert kept(answers, "a", "b", "c") == ["c"]


def test_there_are_only_so_many() -> None:
    answers = KeptAnswers()
    for number in range(kept_answers.KEPT_ANSWERS + 1):
        answers.keep(number, 1, number, 1, ())
    assert answers.get(0) is None
    assert answers.get(1) is not None


def test_what_is_old_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = KeptAnswers()
    answers.keep("a", 1, "a", 1, ())
    assert kept(answers, "a") == ["a"]
    monkeypatch.setattr(kept_answers, "KEPT_S", -1)
    assert kept(answers, "a") == []
