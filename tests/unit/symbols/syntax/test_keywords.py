"""Keywords are no names, but for members where the language lets them be."""

import pytest

from serena_central.symbols.syntax.grammars import GRAMMARS
from serena_central.symbols.syntax.keywords import KEYWORDS, is_keyword


@pytest.mark.parametrize(
    ("identifier", "name", "member", "expected"),
    [
        ("python", "class", True, True),
        ("python", "match", False, False),
        ("typescript", "class", False, True),
        ("typescript", "delete", True, False),
        ("typescript", "type", False, False),
        ("go", "func", True, True),
        ("rust", "impl", False, True),
        ("cobol", "class", False, False),
    ],
)
def test_a_keyword_is_told_by_language_and_place(identifier: str, name: str, member: bool, expected: bool) -> None:
    assert is_keyword(identifier, name, member=member) is expected


def test_every_programming_language_with_a_grammar_has_its_keywords() -> None:
    assert GRAMMARS.keys() - KEYWORDS.keys() == {"markdown", "toml"}


def test_some_words_are_names_but_not_of_types() -> None:
    assert is_keyword("java", "record", member=False, of_type=True)
    assert not is_keyword("java", "record", member=False)
    assert not is_keyword("kotlin", "record", member=False, of_type=True)
