import re
import tracemalloc
from pathlib import Path

import pytest

from serena_central.files.words import OVERLAP_BYTES, PIECE_BYTES, words_of, words_of_each


def test_words_are_counted_in_any_case_where_the_language_knows_none(tmp_path: Path) -> None:
    (tmp_path / "a.php").write_text("Deploy(); DEPLOY(); deployed(); ÜBER();")
    (tmp_path / "a.py").write_text("Deploy(); deploy()")
    each = words_of_each(tmp_path, ["a.php", "a.py"], {"Deploy", "über"}, any_case=lambda path: path.endswith(".php"))
    found = dict(each)
    assert {path: dict(words.counts) for path, words in found.items()} == {
        "a.php": {"deploy": 2, "über": 1},
        "a.py": {"Deploy": 1},
    }


def test_names_beside_characters_that_no_identifier_has_are_counted(tmp_path: Path) -> None:
    text = "\ufeffhelper()\xa0helper(größe)\u2028“helper”→größe; हिन्दी “हिन्दी” naïvehelper helperß \u200b_x"
    (tmp_path / "a.js").write_text(text)
    (tmp_path / "b.js").write_bytes(b"\xff\x80helper(\xc3)")
    found = words_of(tmp_path, ["a.js", "b.js"], {"helper", "größe", "हिन्दी", "_x"})
    assert found["a.js"].counts == {"helper": 3, "größe": 2, "हिन्दी": 2, "_x": 1}
    assert found["b.js"].counts == {"helper": 1}


@pytest.mark.parametrize("before", range(PIECE_BYTES - 8, PIECE_BYTES + 2))
def test_a_word_counts_once_wherever_a_large_text_is_divided(tmp_path: Path, before: int) -> None:
    (tmp_path / "a.c").write_text(
        "9" * 20 + " " * (before - 20) + "deploy deploy" + " " * 2 * PIECE_BYTES + "deploys deploy"
    )
    assert words_of(tmp_path, ["a.c"], {"deploy", "dep"})["a.c"].counts == {"deploy": 3}


@pytest.mark.parametrize("before", [0, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + OVERLAP_BYTES - 1, 3 * PIECE_BYTES])
def test_a_marker_is_found_wherever_it_stands(tmp_path: Path, before: int) -> None:
    (tmp_path / "a.py").write_text(" " * before + "import \n *" + " " * PIECE_BYTES)
    (tmp_path / "b.py").write_text(" " * before + "import x")
    found = words_of(tmp_path, ["a.py", "b.py"], (), marker=re.compile(rb"import\s*\*"))
    assert [found[path].marked for path in ("a.py", "b.py")] == [True, False]


def test_a_large_text_is_looked_through_in_pieces(tmp_path: Path) -> None:
    size = 40 * PIECE_BYTES
    (tmp_path / "a.h").write_text("ab " * (size // 3))
    tracemalloc.start()
    try:
        counts = words_of(tmp_path, ["a.h"], {"ab"})["a.h"].counts
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts == {"ab": size // 3}
    assert peak < 3 * size, "all its words stood in memory at once"
