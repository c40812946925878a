"""Where the text of a symbol goes, to the last blank."""

import pytest

from serena_central.core.errors import InvalidArguments
from serena_central.core.text import Position, Range, Text
from serena_central.editing.placement import Style, inserted_after, inserted_before, replaced, with_doc_comment
from serena_central.editing.plan import apply_edits
from serena_central.editing.strings import lines_inside_strings

DEFINITION = Style("\n", "python", set_apart=True)
PLAIN = Style("\n", "python", set_apart=False)


def span_of(text: str, symbol: str) -> Range:
    at = Text(text)
    start = text.index(symbol)
    return Range(at.position(start), at.position(start + len(symbol)))


def after(text: str, symbol: str, body: str, style: Style = DEFINITION) -> str:
    return apply_edits(Text(text), [inserted_after(Text(text), span_of(text, symbol), body, style)])


def before(text: str, symbol: str, body: str, style: Style = DEFINITION) -> str:
    return apply_edits(Text(text), [inserted_before(Text(text), span_of(text, symbol), body, style)])


def test_a_definition_is_replaced_and_the_space_around_it_stays() -> None:
    text = "x = 1\n\n\n    def f(): pass   # tail\n\n"
    edit = replaced(Text(text), span_of(text, "def f(): pass"), "\n\n    def g():\n        pass\n\n", DEFINITION)

    assert apply_edits(Text(text), [edit]) == "x = 1\n\n\n    def g():\n        pass   # tail\n\n"


def test_line_ends_become_the_file_s() -> None:
    text = "a\r\nb\r\n"

    assert apply_edits(
        Text(text), [replaced(Text(text), span_of(text, "a"), "1\n2\r\n3\r", Style("\r\n", None, False))]
    ) == ("1\r\n2\r\n3\r\nb\r\n")
    assert after("def a\r\ndef b\r\n", "def a", "def c\nend", Style("\r\n", None, True)) == (
        "def a\r\n\r\ndef c\r\nend\r\n\r\ndef b\r\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def a\n", "def a\n\nnew\n"),
        ("def a\ndef b\n", "def a\n\nnew\n\ndef b\n"),
        ("def a\n\n\ndef b\n", "def a\n\nnew\n\n\ndef b\n"),
        ("def a  # tail\n\ndef b\n", "def a  # tail\n\nnew\n\ndef b\n"),
        ("{\n  def a\n}\n", "{\n  def a\n\n  new\n}\n"),
        ("\tdef a\n", "\tdef a\n\n\tnew\n"),
        ("def a", "def a\n\nnew"),
    ],
)
def test_a_definition_behind_another_is_set_apart(text: str, expected: str) -> None:
    assert after(text, "def a", "new\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def a\n", "new\n\ndef a\n"),
        ("import x\ndef a\n", "import x\n\nnew\n\ndef a\n"),
        ("import x\n\n\ndef a\n", "import x\n\n\nnew\n\ndef a\n"),
        ("class C:\n    def a\n", "class C:\n    new\n\n    def a\n"),
        ("{\n\tdef a\n}\n", "{\n\tnew\n\n\tdef a\n}\n"),
        ("    return 1\ndef a", "    return 1\n\nnew\n\ndef a"),
    ],
)
def test_a_definition_before_another_is_set_apart(text: str, expected: str) -> None:
    assert before(text, "def a", "new") == expected


def test_a_definition_before_another_leaves_it_its_doc_comment() -> None:
    style = Style("\n", "go", set_apart=True)
    assert before("type A\n// Does.\nfunc f\n", "func f", "new", style) == "type A\n\nnew\n\n// Does.\nfunc f\n"
    assert before("// Far.\n\nfunc f\n", "func f", "new", style) == "// Far.\n\nnew\n\nfunc f\n"
    assert before("\t// A.\n\tfunc f\n", "func f", "new", style) == "\tnew\n\n\t// A.\n\tfunc f\n"


def test_what_is_no_definition_stands_close() -> None:
    assert after("A = 1\nC = 3\n", "A = 1", "B = 2", PLAIN) == "A = 1\nB = 2\nC = 3\n"
    assert before("A = 1\nC = 3\n", "C = 3", "B = 2", PLAIN) == "A = 1\nB = 2\nC = 3\n"


def test_blank_lines_that_are_given_are_kept() -> None:
    assert after("def a\ndef b\n", "def a", "\n\nnew\n\n\n\n") == "def a\n\n\nnew\n\n\n\ndef b\n"
    assert before("A = 1\n", "A = 1", "\n\nnew\n\n\n", PLAIN) == "\n\nnew\n\n\nA = 1\n"


def test_a_definition_that_ends_where_the_next_line_begins_is_one_line_shorter() -> None:
    text = Text("def a\nend\ndef b\n")
    span = Range(text.position(0), text.position(len("def a\nend\n")))

    assert apply_edits(text, [inserted_after(text, span, "new", DEFINITION)]) == "def a\nend\n\nnew\n\ndef b\n"


def test_a_body_is_indented_like_its_neighbour_unless_it_is_indented_already() -> None:
    text = "class C:\n    def a\n"

    assert after(text, "def a", "new:\n    x\n\n    y") == "class C:\n    def a\n\n    new:\n        x\n\n        y\n"
    assert after(text, "def a", "  new:\n    x") == "class C:\n    def a\n\n  new:\n    x\n"


@pytest.mark.parametrize("body", ["", " \n\t\n", "\r\n"])
def test_an_empty_body_is_refused(body: str) -> None:
    with pytest.raises(InvalidArguments, match="empty"):
        after("def a\n", "def a", body)


@pytest.mark.parametrize(
    ("language", "code", "inside"),
    [
        ("python", 'a = """\nx\ny"""\nb = "\'\'\'"\n# """\nc = r\'\'\'\n\'\'\'', {1, 2, 6}),
        ("python", 'f = "\\"\\"\\""\nx', set()),
        ("typescript", "a = `\n${x}\n` // `\nb", {1, 2}),
        ("go", 'a := `\n\\\n` + "`"\nb', {1, 2}),
        ("java", 'String a = """\n  x\n  """;\n/* """ */\nb', {1, 2}),
        ("rust", 'let a = r#"\n"\n"#; // "\nlet b = "\nx";\nfn f<\'a>() {}', {1, 2, 4}),
        ("cpp", 'auto a = R"x(\n)"\n)x";\nchar q = \'"\';\nb', {1, 2}),
        ("python", 'never = """\nclosed\n', {1, 2}),
        ("cobol", 'a = """\nx"""', set()),
        (None, "a = `\n`", set()),
    ],
)
def test_lines_inside_strings_are_known_where_the_language_is(
    language: str | None, code: str, inside: set[int]
) -> None:
    assert lines_inside_strings(code, language) == inside


@pytest.mark.parametrize("hostile", ['R"x(', "/*", '"""', 'r#"', "`", "'", "\\"])
@pytest.mark.parametrize("language", ["python", "typescript", "go", "java", "rust", "cpp"])
def test_no_text_takes_long_to_be_looked_through(hostile: str, language: str) -> None:
    assert len(lines_inside_strings((hostile + "\n") * 30_000, language)) <= 30_000


@pytest.mark.parametrize(
    ("language", "text", "first0"),
    [
        ("go", "package a\n\n// F does.\n// More.\nfunc F() {}\n", 2),
        ("go", "package a\n\n// Far away.\n\nfunc F() {}\n", 4),
        ("go", "//go:build linux\nfunc F() {}\n", 1),
        ("rust", "//! The crate.\n/// Does.\nfn f() {}\n", 1),
        ("c", "int a;\n/*\n * Does.\n */\nint f(void);\n", 1),
        ("c", "int a; /* of a */\nint f(void);\n", 1),
        ("c", "/* of a */ int a; /* of f */\nint f(void);\n", 1),
        ("c", "/* of a\n */ int a; /* of\n f */\nint f(void);\n", 3),
        ("dart", "/// Does.\nvoid f() {}\n", 0),
        ("typescript", "// @ts-check\n/** Does. */\nfunction f() {}\n", 1),
        ("typescript", "/* eslint-disable */\n// Does.\nfunction f() {}\n", 1),
        ("typescript", "// #endregion\nfunction f() {}\n", 1),
        ("java", "/*\n * Copyright Somebody\n */\n/** Does. */\nclass F {}\n", 3),
        ("rust", "// Copyright Somebody\n// All rights reserved.\nfn f() {}\n", 2),
        ("rust", "// SPDX-License-Identifier: MIT\n/* Does. */\nfn f() {}\n", 1),
        ("python", "# A section.\ndef f(): ...\n", 1),
        ("rust", "/*! The crate. */\nfn f() {}\n", 1),
        ("cpp", "//! Does.\nvoid f();\n", 0),
    ],
)
def test_a_doc_comment_belongs_to_the_definition_below_it(language: str, text: str, first0: int) -> None:
    last0 = text.count("\n") - 1
    span = Range(Position(last0, 0), Position(last0, len(text.splitlines()[last0])))
    assert with_doc_comment(Text(text), span, language) == Range(Position(first0, 0), span.end)
