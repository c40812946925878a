"""Types that JSDoc comments declare are symbols, where TypeScript's server says so."""

import pytest

from serena_central.symbols.symbol import flatten
from serena_central.symbols.syntax.outline import outline

SOURCE = """\
/**
 * @typedef {import("./box.js").Box<{
 *   a: number }>} Box
 * @callback Done
 * @param {string} error
 */
class Shelf {
  /** @typedef {string} Label */
  put() {
    /** @typedef {string} Inside */
    return { /** @typedef {string} Nothing */ a: 1 };
    /** @typedef {string} Nothing */
  }
  /** @typedef {string} Nothing */
}
/* @typedef {string} Nothing */
// @typedef {string} Nothing
/** @typedef name.Last */
"""


def test_a_comment_before_a_statement_or_member_declares_types() -> None:
    file = flatten(outline("javascript", SOURCE.encode())[0])
    found = [(file.name_path(place), symbol.name_line) for place, symbol in enumerate(file.symbols)]
    assert found == [
        ("Box", 2),
        ("Done", 3),
        ("Shelf", 6),
        ("Shelf/Label", 7),
        ("Shelf/put", 8),
        ("Shelf/put/Inside", 9),
        ("name.Last", 17),
    ]


def test_typescript_has_no_types_in_comments() -> None:
    assert outline("typescript", b"/** @typedef {string} Label */\n") == ([], False)


@pytest.mark.parametrize(
    "text", ["@typedef " * 100_000, "@typedef {" * 100_000, "{" * 1_000_000, "@typedef {a} " + " *" * 500_000]
)
def test_comments_without_end_are_read_in_time(text: str) -> None:
    outline("javascript", f"/** {text} */".encode())
