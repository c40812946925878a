from pathlib import Path

from serena_central.files.words import words_of


def test_words_are_counted_in_any_case_where_the_language_knows_none(tmp_path: Path) -> None:
    (tmp_path / "a.php").write_text("Deploy(); DEPLOY(); deployed(); ÜBER();")
    (tmp_path / "a.py").write_text("Deploy(); deploy()")
    found = words_of(tmp_path, ["a.php", "a.py"], {"Deploy", "über"}, any_case=lambda path: path.endswith(".php"))
    assert {path: dict(words.counts) for path, words in found.items()} == {
        "a.php": {"deploy": 2, "über": 1},
        "a.py": {"Deploy": 1},
    }
