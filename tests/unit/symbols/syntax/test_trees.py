"""A tree that is made of the one before an edit is the tree that the edited text has by itself, in every grammar."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_sitter import Tree

from serena_central.symbols.syntax import trees
from serena_central.symbols.syntax.grammars import GRAMMARS
from serena_central.symbols.syntax.trees import KEPT, KEPT_BYTES, tools, tree_after, tree_of

SAMPLES = {sample.stem: sample for sample in sorted((Path(__file__).parent / "samples").glob("*.txt"))}

EDITS = 100

NASTY = (
    *(
        b'"',
        b"'",
        b'"""',
        b"`",
        b"{",
        b"}",
        b"(",
        b")",
        b"/*",
        b"*/",
        b"//",
        b"#",
        b"<<EOF\n",
        b"EOF\n",
        b"\n",
        b"\n\n",
    ),
    *(b"    ", b"\t", b";", b"\\", b"<", b">", b"${", b"=", b":", b",", b"@", b"#if 0\n", b"#endif\n", b"```\n", b"- "),
    *(b"end\n", b"x", b"0", b"async ", b"type ", b"match ", b"?>", b"<?php ", "é😀".encode(), b" "),
)
"""What opens, closes, indents or hides, here and there in some language."""


def nodes(tree: Tree) -> Iterator[tuple[object, ...]]:
    """All that a tree holds, in its order."""
    cursor, level = tree.walk(), 0
    while True:
        node = cursor.node
        assert node is not None
        kind = node.kind_id, cursor.field_id, node.is_missing, node.is_error, node.is_extra
        yield level, *kind, node.start_byte, node.end_byte, node.start_point, node.end_point
        if cursor.goto_first_child():
            level += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            level -= 1


def edit(chance: random.Random, source: bytes) -> tuple[int, int, bytes]:
    """Bytes from and to, and what comes in their place: a word, line or stretch goes, comes, or becomes another."""
    words = [match.span() for match in re.finditer(rb"\w+|[^\w\s]", source)]
    lines = [match.span() for match in re.finditer(rb"[^\n]*\n", source)]
    (start, end), (first, last) = chance.choice(words), sorted(chance.choices(lines, k=2))
    match chance.randrange(7):
        case 0:
            return start, end, b""
        case 1:
            return start, end, source[slice(*chance.choice(words))]
        case 2:
            return start, start, chance.choice(NASTY)
        case 3:
            return *first, b""
        case 4:
            return last[0], last[0], source[slice(*first)]
        case 5:
            return first[0], last[0], b""
        case _:
            return *first, source[slice(*last)]


@pytest.mark.parametrize("identifier", [name for name in GRAMMARS if name in SAMPLES])
def test_trees_of_edited_texts_are_what_parsing_gives(identifier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parser, _ = tools(identifier)
    parsed = 0

    def counting(identifier: str, source: bytes) -> Tree:
        nonlocal parsed
        parsed += 1
        return tools(identifier)[0].parse(source)

    monkeypatch.setattr(trees, "parsed", counting)
    chance, original = random.Random(identifier), SAMPLES[identifier].read_bytes() * 2
    source, made = original, 0
    for _ in range(EDITS):
        start, end, new = edit(chance, source)
        after = source[:start] + new + source[end:]
        tree_of(identifier, source)
        before = parsed
        tree = tree_after(identifier, source, start, end, new)
        assert list(nodes(tree)) == list(nodes(parser.parse(after))), (source, start, end, new)
        root = tree.root_node
        assert root.text == after[root.start_byte : root.end_byte]
        made += parsed == before
        if not root.has_error:
            source = after if len(original) < 2 * len(after) < 4 * len(original) else original
    assert made >= EDITS / 20  # the others have errors, before or after


def test_a_text_that_an_edit_leaves_is_known_and_few_are_kept() -> None:
    source, end = b"def f():\n    return 1\n", len(b"def f():\n    return 1")
    for number in range(2 * KEPT):
        new = b"def f():\n    return %d" % number
        tree = tree_after("python", source, 0, end, new)
        source, end = new + source[end:], len(new)
        assert tree_of("python", source) is tree
    assert tree_of("python", source) is tree
    assert len(trees._kept) <= KEPT


def test_trees_of_few_bytes_are_kept_whatever_their_number() -> None:
    texts = [b"def f():\n    return %d\n" % number + b"# " + b"x" * (KEPT_BYTES // 4) for number in range(8)]
    for text in texts:
        assert tree_of("python", text) is tree_of("python", text)
    assert sum(len(text) for _, text in trees._kept) <= KEPT_BYTES


def test_a_tree_is_parsed_where_the_text_has_errors_before_or_after_the_edit() -> None:
    broken, whole = b"def f(:\n    pass\n", b"def f():\n    pass\n"
    for source, edit in ((broken, (6, 6, b")")), (whole, (6, 7, b""))):
        after = source[: edit[0]] + edit[2] + source[edit[1] :]
        assert list(nodes(tree_after("python", source, *edit))) == list(nodes(tools("python")[0].parse(after)))
