"""Replacements of long stretches become those of the words that they change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.text import Position, Range, Text
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.lsp.answers import Replacement
from serena_central.lsp.narrowing import narrowed

DOG = 'class Dog {\n  Dog() {}\n  String s = "Dog";\n  Dog copy() {\n    return new Dog();\n  }\n}\n'


def parts_of(content: str, old: str, new: str) -> tuple[list[tuple[str, str]], str]:
    """What each part replaces by what, and the text that comes of all, where `old` becomes `new` in one stretch."""
    text, start = Text(content), content.index(old)
    whole = Replacement(Range(text.position(start), text.position(start + len(old))), new)
    parts = list(narrowed(text, whole))
    done = apply_edits(text, [TextEdit(*part) for part in parts])
    return [(text.slice(part.range), part.new_text) for part in parts], done


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("Dog", "Cat", [("Dog", "Cat")]),
        ("Dog {\n  Dog() {}", "Cat {\n  Cat() {}", [("Dog", "Cat"), ("Dog", "Cat")]),
        (DOG[6:-1], DOG[6:-1].replace("Dog", "Cat").replace('"Cat"', '"Dog"'), [("Dog", "Cat")] * 4),
        ("Dog {\n  Dog()", "Cat {\n  zoo.Cat()", [("Dog", "Cat"), ("Dog", "zoo.Cat")]),
        ("Dog() {}", "Dog() {} // no more", [("Dog() {}", "Dog() {} // no more")]),
        ("", "import zoo.Cat;\n", [("", "import zoo.Cat;\n")]),
    ],
    ids=["a word", "two lines", "a string between", "more words", "one line", "an insertion"],
)
def test_a_stretch_is_split_into_the_words_that_change(old: str, new: str, parts: list[tuple[str, str]]) -> None:
    assert parts_of(DOG, old, new) == (parts, DOG.replace(old, new, 1))


def test_places_are_counted_in_characters_of_the_whole_text() -> None:
    text = Text("é😀 Dog;\n\tDog = 1;\n")
    whole = Replacement(Range(Position(0, 3), Position(1, 4)), "Cat;\n\tCat")
    assert [part.range for part in narrowed(text, whole)] == [
        Range(Position(0, 3), Position(0, 6)),
        Range(Position(1, 1), Position(1, 4)),
    ]


LINES = st.lists(
    st.sampled_from(["Dog();\n", "Cat();\n", "  }\n", "\r\n", "é 😀\n", "Dog", "\n\n", "x\x0b"]), max_size=9
)


@given(LINES, LINES)
def test_whatever_is_replaced_comes_of_its_parts(old: list[str], new: list[str]) -> None:
    text = Text(f"[{''.join(old)}]")
    whole = Replacement(Range(text.position(1), text.position(len(text.content) - 1)), "".join(new))
    parts = list(narrowed(text, whole))
    assert apply_edits(text, [TextEdit(*part) for part in parts]) == f"[{''.join(new)}]"
    assert all(text.slice(part.range) != part.new_text for part in parts if len(parts) > 1)
