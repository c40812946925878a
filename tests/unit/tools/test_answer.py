"""Answers fit their limit, in the longest form that does, and say what they leave out."""

import json
from typing import Any

import pytest

from serena_central.tools.answer import MAX_CHARS, Answer, Form, Shaped, fit, shaped

NAMES = [f"name{number}" for number in range(100)]


def listed() -> Shaped:
    return shaped(
        lambda: NAMES,
        Form("as counts", lambda: {"names": len(NAMES)}),
        Form("as a total", lambda: "100"),
        narrow="Narrow the request.",
    )


def test_what_fits_comes_whole() -> None:
    assert fit({"p": listed()}, 5000, grouped=False)[:2] == (json.dumps(NAMES, separators=(",", ":")), False)


def test_a_longer_answer_comes_in_the_first_form_that_fits() -> None:
    text, shortened, *_ = fit({"p": listed()}, 120, grouped=False)
    excuse, answer = text.split("\n")
    assert (shortened, answer) == (True, '{"names":100}')
    assert "120 bytes" in excuse
    assert "as counts" in excuse
    assert excuse.endswith("Narrow the request.")
    assert len(text) <= 120


def test_forms_are_built_only_when_they_are_needed() -> None:
    def never() -> Any:
        raise AssertionError("built for nothing")

    assert fit({"p": shaped(lambda: "short", Form("never", never), narrow="")}, 10, grouped=False)[:2] == (
        "short",
        False,
    )


def test_the_sentence_alone_keeps_no_form_from_fitting() -> None:
    assert fit({"p": listed()}, 10, grouped=False)[0].endswith("as a total. Narrow the request.\n100")


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_sentence_stays_whole_when_nothing_fits(limit: int) -> None:
    text, shortened, *_ = fit({"p": listed()}, limit, grouped=False)
    assert shortened
    assert "3 characters" in text
    assert "Narrow the request." in text


def test_text_without_shorter_forms_is_cut() -> None:
    text, shortened, *_ = fit({"p": "x" * 1000}, 300, grouped=False)
    assert (len(text), shortened) == (300, True)
    assert text.startswith("Even the shortest form")


def test_groups_are_shortened_together_and_errors_stay() -> None:
    text, *_ = fit({"a": listed(), "b": {"error": "gone"}}, 180, grouped=True)
    assert json.loads(text.split("\n")[1]) == {"a": {"names": 100}, "b": {"error": "gone"}}


def test_no_caller_gets_more_than_the_bound() -> None:
    text, shortened, *_ = fit({"p": "x" * (MAX_CHARS + 1)}, 10**9, grouped=False)
    assert (len(text), shortened) == (MAX_CHARS, True)


def test_non_ascii_is_kept_and_bytes_that_are_no_text_are_replaced() -> None:
    assert fit({"p": {"é𝒳": ["a\udce9b"]}}, 100, grouped=False)[0] == '{"é𝒳":["a�b"]}'
    assert fit({"p": "𝒳\udce9"}, 100, grouped=False)[0] == "𝒳�"
    assert fit({"p\udcff": ("\udcff", 1)}, 100, grouped=True)[0] == '{"p�":["�",1]}'


def test_tokens_are_estimated_from_all_blocks() -> None:
    assert Answer(["x" * 10, "y" * 10]).token_estimate == 5


@pytest.mark.parametrize("limit", [400, 5000])
@pytest.mark.parametrize("letter", ["é", "字", "𝒳"])
def test_a_limit_counts_bytes(letter: str, limit: int) -> None:
    names = [f"{letter * 9}{number}" for number in range(300)]
    long = shaped(lambda: names, Form("as counts", lambda: {letter: len(names)}), narrow="Narrow the request.")
    for results in (
        {"p": long},
        {"p": letter * 3000},
        {"p": [letter, "ascii" * 3000, letter * 3000]},
        {"a": long, "b": letter * 3000},
    ):
        text, shortened, *_ = fit(results, limit, grouped=len(results) > 1)
        assert shortened
        assert len(text.encode()) <= limit
        assert f"{limit} bytes" in text or "truncated to" in text
        assert "p" not in results or results["p"] is long or len(text.encode()) > limit * 0.4
