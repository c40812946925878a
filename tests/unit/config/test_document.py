"""YAML from repositories nobody trusts: plain values with lines, and nothing that hangs or runs."""

import os
from pathlib import Path

import pytest

from serena_central.config.document import DocumentError, parse_document, read_document


def test_every_key_has_its_line() -> None:
    document = parse_document("a: 1\n\npool:\n  idle: 2\n  deep: {x: 1}\nb: [1,\n 2]\n")
    assert document.values == {"a": 1, "pool": {"idle": 2, "deep": {"x": 1}}, "b": [1, 2]}
    assert document.lines == {"a": 1, "pool": 3, "pool.idle": 4, "pool.deep": 5, "pool.deep.x": 5, "b": 6}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert parse_document(text).values == {}


def test_repeated_keys_are_listed() -> None:
    assert parse_document("a: 1\nb: 2\na: 3\n").repeated == ["a"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1,\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("- a\n- b\n", 1),
        ("a: *nothing\n", 1),
        ("a: !!python/object/apply:os.system [echo]\n", 1),
        ("? [a, b]\n: 1\n", 1),
        ("a: &x [*x]\n", 1),
    ],
)
def test_what_is_not_a_plain_mapping_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(text)
    assert caught.value.line == line


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(DocumentError):
        parse_document("a: 2001-99-99\n")


def test_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentError, match="expand"):
        parse_document("\n".join(lines))


def test_merge_keys_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    with pytest.raises(DocumentError, match="expand"):
        parse_document("\n".join(lines))


@pytest.mark.parametrize("text", ["a: " + "[" * 100_000, "a: " + "{a: " * 5_000, "- " * 100_000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        parse_document(text)


def test_too_many_values_are_refused() -> None:
    with pytest.raises(DocumentError, match="too many values"):
        parse_document("a: [" + "1, " * 60_000 + "]")


def test_no_file_is_no_document(tmp_path: Path) -> None:
    assert read_document(tmp_path / "none.yml") is None
    (tmp_path / "file").write_text("")
    assert read_document(tmp_path / "file" / "below.yml") is None


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_bytes(b"\xef\xbb\xbfa: \xc3\xa9\r\n")
    document = read_document(tmp_path / "x.yml")
    assert document is not None
    assert document.values == {"a": "é"}


def test_what_is_no_readable_text_file_is_refused(tmp_path: Path) -> None:
    fifo, folder, latin, big = (tmp_path / name for name in ("fifo", "folder", "latin", "big"))
    os.mkfifo(fifo)
    folder.mkdir()
    latin.write_bytes(b"a: 1\nb: \xe9\n")
    big.write_bytes(b"#" * 1_000_001)
    for path in (fifo, folder, latin, big):
        with pytest.raises(DocumentError):
            read_document(path)
