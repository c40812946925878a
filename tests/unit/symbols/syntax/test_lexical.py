"""What is told without a parser is what the parser tells."""

import re
import sysconfig
from pathlib import Path

import pytest

from serena_central.core.text import Text
from serena_central.symbols.syntax.lexical import kinds, tokens
from serena_central.symbols.syntax.messages import Kind
from serena_central.symbols.syntax.occurrences import occurrences

WORD = re.compile(r"(?<![\w$])name(?![\w$])")


def told(source: str) -> list[Kind | None]:
    """Of each place of the word `name`."""
    return kinds(source, tokens("python", source), [match.start() for match in WORD.finditer(source)])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("name = 'name' # name\nname", ["code", "string", "comment", "code"]),
        ('"""name\n\'name\n""" + name', ["string", "string", "code"]),
        ("'' + name + \"\" + name", ["code", "code"]),
        (r"'\'name' + name", ["string", "code"]),
        ("'a\\\nname' + name", ["string", "code"]),
        ("'a\\\r\nname' + name", ["string", "code"]),
        ("# it's\rname", ["code"]),
        (r'r"\\" + "name" + name', ["string", "code"]),
        ("'name''name' + name", ["string", "string", "code"]),
        ("b'#' + name # 'name", ["code", "comment"]),
    ],
)
def test_code_strings_and_comments_are_told_apart(source: str, expected: list[Kind]) -> None:
    assert told(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('name + f"{name}" + name\nname', ["code", None, None, "code"]),
        ('f"{a["b"] + name + c["d"]}"\nname', [None, "code"]),
        ('rF"""{x}\nname\n""" + name\nname', [None, None, "code"]),
        ('x = f"{a["b"]}", """\nname"""\nname', [None, "code"]),
        ("t'{name}'", [None]),
        ('name\n"""name', [None, None]),
        ("name\n'name\nname", [None, None, None]),
    ],
)
def test_nothing_is_told_near_code_in_strings_nor_of_a_string_without_an_end(
    source: str, expected: list[Kind | None]
) -> None:
    assert told(source) == expected


def test_a_language_without_an_expression_is_left_to_its_grammar() -> None:
    assert kinds("name", tokens("rust", "name"), [0]) == [None]


def library() -> list[Path]:
    """Modules of Python's own library, of all kinds of authors."""
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::12]


def test_the_grammar_says_the_same_of_real_code() -> None:
    compared = silent = 0
    for file in library():
        source = file.read_text(encoding="utf-8")
        text, words = Text(source), sorted(set(re.findall(r"\b[a-z_]{5,}\b", source)))[::30]
        for word in words:
            found = occurrences("python", source.encode(), word)
            said = kinds(source, tokens("python", source), [text.offset(one.range.start) for one in found])
            compared += len(found)
            silent += said.count(None)
            assert [one.kind for one, kind in zip(found, said, strict=True) if kind is not None] == [
                kind for kind in said if kind is not None
            ], f"{file.name}: {word}"
    assert silent < compared / 10
    assert compared > 500


def test_a_line_of_very_many_strings_is_looked_through_once() -> None:
    """Looking back over all of the line for each of its places takes minutes."""
    content = "names = [" + "'a', name, " * 20_000 + "]"
    places = [match.start() for match in re.finditer("name,", content)]
    assert set(kinds(content, tokens("python", content), places)) == {"code"}
