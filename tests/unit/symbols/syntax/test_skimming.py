"""What is left out of a text before it is parsed changes nothing of its outline."""

import pytest

from serena_central.core.text import Position
from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.outline import outline, outline_around
from serena_central.symbols.syntax.skimming import blanked, skimmed

PLAIN = b"""
static int first(struct inode *inode, int (*call)(void)) __must_hold(lock)
{
	int local = call();
#ifdef ONE
	if (local) {
#else
	while (local) {
#endif
		return 1;
	}
	{ int scoped; }
	return "}"[0];
}

struct point {
	int x, y;
};

int empty(void)
{
}

int last(void)
{
	return 0;
}
"""


def names(source: bytes, identifier: str = "c") -> list[str]:
    symbols, _ = outline(identifier, source)
    file = flatten(symbols)
    return [file.name_path(place) for place in range(len(file.symbols))]


def test_bodies_are_blanks_of_the_same_length_and_what_is_around_them_stays() -> None:
    skim = blanked(PLAIN)
    assert len(skim) == len(PLAIN)
    assert b"local" not in skim
    assert b"ifdef" not in skim
    assert names(PLAIN) == ["first", "point", "point/x", "point/y", "empty", "last"]
    (first, *_), _ = outline("c", PLAIN)
    assert (first.range.start.line0, first.range.end.line0) == (1, 13)


@pytest.mark.parametrize(
    "source",
    [
        b"struct __aligned(8)\n{\n\tint a;\n};\n",  # no body
        b"int f(void)\n{ return 2; }\n",  # another layout
        b"#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n\treturn 1;\n}\n",  # two heads, one body
        b"int f(void)\n{\n\treturn 1;\n",  # no end
        b"",
    ],
)
def test_what_is_no_whole_body_stays(source: bytes) -> None:
    assert skimmed("c", source).text is source


def test_code_in_a_comment_hides_no_function_behind_it() -> None:
    source = b"/* as in\n for (;;) switch (state) {\n ...\n }\n*/\nint f(int a) {\n\treturn 1;\n}\nint g;\n"
    assert names(source) == ["f", "g"]
    assert b"return" not in skimmed("c", source).text


@pytest.mark.parametrize(
    "body",
    [
        b"\tif (in) {\n\t\tuse(in);\n\t}\n",
        b"\tif (! in)\n\t\tgoto out;\nout:\n\tif (in) {\n\t\tuse(in);\n\t}\n",
        b"#define twice(x) \\\n({ \\\n\tx + x; \\\n})\n\tif (in) {\n\t\tuse(in);\n\t}\n",
        b"\tstatic const struct {\n\t\tint a;\n\t} list[] = {\n\t\t{ 1 },\n};\n\tfor (;;) {\n\t\tuse(in);\n\t}\n",
    ],
)
@pytest.mark.parametrize("head", [b"int first(\n\tint *in)\t// input\n{\n", b"int first(int *in) // input\n{\n"])
def test_a_block_of_a_body_that_stays_is_not_taken_for_a_function(head: bytes, body: bytes) -> None:
    source = (
        b"\n"
        + head
        + body
        + b"}\n\nint second(int a,\n\tint b) {\n\treturn 1;\n}\n\nint third(void)\n{\n\treturn 3;\n}\n"
    )
    assert names(source) == ["first", "second", "third"]
    assert b"return" not in skimmed("c", source).text


def test_a_comment_behind_parameters_does_not_keep_a_body() -> None:
    source = b"\nint first(\n\tint a, /* one */\n\tint b) /* two */\n{\n\treturn 1;\n}\n"
    assert b"return" not in skimmed("c", source).text
    assert names(source) == ["first"]


def test_other_languages_are_read_whole() -> None:
    source = b"int f(void)\n{\n\tauto g = 1;\n}\n"
    assert skimmed("cpp", source).text is source
    assert skimmed("c", source).text != source


def test_columns_after_other_letters_than_asciis_are_counted_in_code_points() -> None:
    source = '/* äö */ int f(void)\n{\n\tputs("𝔘");\n}\n/* ß */ int g;\n'.encode()
    (f, g), _ = outline("c", source)
    assert (f.range.start, f.range.end, g.selection.start) == (Position(0, 9), Position(3, 1), Position(4, 12))


def test_lines_that_define_macros_are_left_out_and_those_that_go_on_are_not() -> None:
    source = (
        b"\n#define ONE 1 /* a comment */\n  # define TWO(a) ((a) / 2)\n#define LONG \\\n\tint hidden;\n"
        b"#define OPEN 1 /* goes\n   on */\nint kept;\n#define LAST 2"
    )
    skim = blanked(source)
    assert len(skim) == len(source)
    assert skim.split(b"\n", 2)[2] == source[source.index(b"#define LONG") :].replace(b"#define LAST 2", b" " * 14)
    assert not skim.split(b"\n", 2)[1].strip()
    assert names(source) == ["kept"]


GAP = b" " * 100


@pytest.mark.parametrize(
    "source",
    [
        b"int f(void)\n{" + GAP + b"}\n\nint g;\n",
        GAP + b"int f(void)\n{" + GAP + b"\n}" + GAP,
        b"#ifdef A" + GAP + b"\nint a;\n#endif" + GAP + b"\n\n\n\tint b;",
        b'char *s = "in' + GAP + b'a string"; /* in' + GAP + b"a comment */ int c;\n",
        "/* ä */ int é;".encode() + GAP + "/* ß */ int f(".encode() + GAP + b"int d)" + GAP + b";\n",
        b"int a;" + GAP + b"\r\nint b;\rint c;" + GAP,
        GAP,
    ],
)
def test_symbols_are_at_the_same_places_where_long_gaps_are_left_out(source: bytes) -> None:
    assert len(skimmed("c", source).text) < len(source) - 90
    symbols, _ = outline("c", source)
    assert symbols == outline_around("c", source, 0, len(source))
    assert bool(symbols) == bool(source.strip())


def test_each_offset_of_what_is_left_is_traced_to_the_same_byte() -> None:
    source = b"\n" + PLAIN + b"int a;" + GAP + b"int b;\n#define X" + GAP + b"1\nint c;"
    skim = skimmed("c", source)
    traced = list(skim.traced(range(len(skim.text) + 1)))
    assert [skim.text[at] for at, _ in traced[:-1]] == [blanked(source)[origin] for _, origin in traced[:-1]]
    assert traced[-1] == (len(skim.text), len(source))
    assert skim.text.count(b";") == blanked(source).count(b";")


def test_hostile_macros_take_no_longer_than_others() -> None:
    skimmed("c", b"#define A " + b"/**/" * 200_000 + b"/*")
    skimmed("c", (b"#define A /" * 100_000) + b"\\")
    skimmed("c", b"\n" + b"define " * 1_000_000)
    skimmed("c", b"\n define" * 300_000)


def test_hostile_braces_take_no_longer_than_others() -> None:
    skimmed("c", b"x{\n" * 300_000 + b"\n}")
    skimmed("c", b"f() {\n" * 200_000)
    skimmed("c", b"f()\n{\n}x\n" * 100_000)
