"""Somebody's patterns end in time, say why they are given up, and answer as `re` does until then."""

import re
import threading

import pytest

from serena_central.core.errors import ConfigError
from serena_central.core.patterns import MAX_LENGTH, BoundedMatcher, FileMatcher, Matcher, OwnMatcher, TooSlow

CATASTROPHIC = r"(?P<scope>(\w|\w\w)+)(?P<name>[0-9])"
HOSTILE = "a" * 200


def matchers(source: str) -> list[Matcher]:
    return [OwnMatcher(source), BoundedMatcher("key", source)]


@pytest.mark.parametrize("text", ["(*Square).Area", "Area", "", "(Square[T]).Area", "x (Square).Area"])
def test_both_engines_answer_alike(text: str) -> None:
    source = r"\(\*?(?P<scope>\w+)(?:\[.*\])?\)\.(?P<name>\w+)"
    expected = re.compile(source)
    for matcher in matchers(source):
        for mine, own in ((matcher.fullmatch, expected.fullmatch), (matcher.search, expected.search)):
            found, right = mine(text), own(text)
            assert (found and (found["scope"], found["name"])) == (right and (right["scope"], right["name"]))
        assert matcher.trouble == ""
    assert FileMatcher("key", source).spans(text) == [match.span() for match in expected.finditer(text)]


@pytest.mark.parametrize("method", ["fullmatch", "search"])
def test_a_pattern_that_takes_too_long_is_given_up_with_its_key_and_its_source(method: str) -> None:
    matcher = BoundedMatcher("ty naming.scoped", CATASTROPHIC)
    others: list[int] = []
    ended = threading.Event()

    def count() -> None:
        while not ended.is_set():
            others.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert not getattr(matcher, method)(HOSTILE)
    finally:
        ended.set()
        thread.join()
    assert others  # other threads ran meanwhile
    assert "ty naming.scoped is disabled" in matcher.trouble
    assert CATASTROPHIC in matcher.trouble
    assert matcher.fullmatch("ab1") is None  # nor is it tried again
    assert matcher.search("ab1") is None


def test_a_file_that_takes_too_long_is_no_reason_not_to_look_at_the_next_one() -> None:
    matcher = FileMatcher("ty naming.imports", CATASTROPHIC)
    with pytest.raises(TooSlow, match=r"ty naming.imports took longer than 0.25 s on \d+ characters"):
        matcher.spans(HOSTILE)
    assert matcher.spans("ab1") == [(0, 3)]


@pytest.mark.parametrize("source", ["(", "a" * (MAX_LENGTH + 1), "(" * 4000 + ")" * 4000, r"(?P<x>a)(?P=y)"])
def test_what_is_no_pattern_is_refused_with_its_key(source: str) -> None:
    with pytest.raises(ConfigError, match=r"naming\.scoped"):
        BoundedMatcher("naming.scoped", source)
