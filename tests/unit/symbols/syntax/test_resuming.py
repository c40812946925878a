"""What a parser loses behind a construct that it does not know is found, statement by statement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.outline import outline, outline_around
from serena_central.symbols.syntax.resuming import roots_of
from serena_central.symbols.syntax.trees import parsed

UNKNOWN = """export const plain: {
  <A, B>(a: A): Result<A, B>
  /** and again */
  <A, B, const C extends { readonly d: true }>(
    a: A, options: C): Result<A, B>
} = dual((args) => isResult(args[0]) && isResult(args[1]), <A, B>(a: A, b: B): Result<A, B> => make(a, b))
"""
"""Generic call signatures behind generic types: the grammar takes them for comparisons, and loses what follows."""

SOUND = [
    "export interface Held<A> {\n  readonly value: A\n}\n",
    "export function told(a: number): number {\n  return a\n}\n",
    "@decorated({ with: 1 })\nexport class Told {\n  method(): void {}\n}\n",
    "/**\n * export function commented() {}\n */\nexport type Name = string\n",
    "/*\nexport function commented() {}\n*/\nconst value = 1\n",
    "const code = `\nexport function written() {}\n`\n",
    "const ended = '`'; const code2 = `${'`'}\nfunction written2() {}\n${{ a: `b` }}\nclass Written3 {}\n`\n",
    "const glob = 'a*/b' /*\nfunction commented2() {}\n*/\n",
    "const long = 'a \\\nfunction written4() {} \\\n'\n",
    "export declare namespace Inner {\n  interface Deep {}\n}\n",
]


def names(source: str, identifier: str = "typescript") -> list[str]:
    file = flatten(outline(identifier, source.encode(), is_asked_again=False)[0])
    return [file.name_path(place) for place in range(len(file.symbols))]


def test_the_grammar_still_loses_what_follows() -> None:
    """Else this module is needed no longer."""
    root = parsed("typescript", (UNKNOWN * 2 + "".join(SOUND)).encode()).root_node
    assert root.has_error
    assert "class_declaration" not in {child.type for child in root.children}


@given(st.lists(st.sampled_from(SOUND), max_size=4), st.lists(st.sampled_from(SOUND), max_size=4))
def test_what_stands_around_is_found_as_if_it_stood_alone(before: list[str], after: list[str]) -> None:
    text = "".join([*before, UNKNOWN, UNKNOWN.replace("plain", "other"), *after])
    found = set(names(text))
    expected = set(names("".join([*before, *after])))
    assert expected <= found
    assert {"plain", "other"} <= found
    assert not {name for name in found if "commented" in name or "written" in name.lower()}


@pytest.mark.parametrize("places", ["bg", "bgb", "bgbg", "bgbgb", "gbbg"])
def test_damage_in_several_places_costs_nothing_between(places: str) -> None:
    damage = "const w = (((;\n" * 2
    made = {"b": lambda _: damage, "g": lambda at: "".join(f"class A{at}_{n} {{ m() {{}} }}\n" for n in range(20))}
    text = "".join(made[place](at) for at, place in enumerate(places))
    assert {f"A{at}_{n}/m" for at, place in enumerate(places) if place == "g" for n in range(20)} <= set(names(text))


def test_symbols_stand_where_they_are() -> None:
    text = UNKNOWN + UNKNOWN + SOUND[1]
    symbols, _ = outline("typescript", text.encode(), is_asked_again=False)
    (told,) = [symbol for symbol in symbols if symbol.name == "told"]
    assert text.splitlines()[told.range.start.line0].startswith("export function told")
    assert text.splitlines()[told.range.end.line0] == "}"


def test_a_stretch_is_told_like_the_whole() -> None:
    text = (UNKNOWN + UNKNOWN + SOUND[1]).encode()
    whole, _ = outline("typescript", text, is_asked_again=False)
    start = text.index(b"export function told")
    assert outline_around("typescript", text, start, len(text)) == [one for one in whole if one.name == "told"]


@pytest.mark.parametrize(
    ("identifier", "source"),
    [
        ("typescript", SOUND[1]),
        ("typescript", "function f() {\n  a b c\n}\nfunction g() {}\n"),
        ("typescript", "}}}}\n"),
        ("typescript", ""),
        ("c", "int f( {\n"),
    ],
)
def test_a_text_of_which_nothing_is_lost_has_its_own_tree(identifier: str, source: str) -> None:
    root = parsed(identifier, source.encode()).root_node
    assert roots_of(identifier, source.encode(), root) == [root]


@pytest.mark.parametrize(
    "source",
    [
        "async<\n" * 40_000,
        "const w = (((;\n" + "const a = 1; function f() {}\n" * 20_000,
        "@a\n" * 50_000,
        "function `" * 20_000,
        "export {\n" * 20_000,
        "const a = `\n" * 20_000,
    ],
)
def test_hostile_texts_are_read_in_time(source: str) -> None:
    outline("typescript", source.encode(), is_asked_again=False)
