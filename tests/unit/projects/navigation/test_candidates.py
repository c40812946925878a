"""What places of a name stand in is told from tokens that are remembered by the text's content."""

from pathlib import Path

from serena_central.core.text import whole_word
from serena_central.files.text import FileText, read_text
from serena_central.projects.navigation.candidates import RecentPlaces, RecentTokens
from serena_central.symbols.syntax.lexical import kinds


def written(path: Path, content: str) -> FileText:
    path.write_text(content, encoding="utf-8")
    return read_text(path)


def test_tokens_belong_to_the_content_and_the_language(tmp_path: Path) -> None:
    known, path = RecentTokens(), tmp_path / "a.py"
    for content, kind in (('"name"', "string"), ("# name", "comment"), ("x.name", "code"), ('"name"', "string")):
        read = written(path, content)
        assert kinds(content, known.of("python", read), [2]) == [kind]
        assert known.of("rust", read) is None
    assert known.of("python", read) is known.of("python", read_text(path))


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    known = RecentTokens(most=6)  # each text counts as one, and each token
    one, two, three = (written(tmp_path / f"{name}.py", f"'{name}' + 'x'") for name in ("one", "two", "three"))
    first, second = known.of("python", one), known.of("python", two)
    assert known.of("python", one) is first
    known.of("python", three)
    assert known.of("python", one) is first
    assert known.of("python", two) == second
    assert known.of("python", two) is not second


def test_a_text_with_more_tokens_than_are_kept_is_told_all_the_same(tmp_path: Path) -> None:
    known = RecentTokens(most=2)
    read = written(tmp_path / "a.py", "'a' + 'b' + 'name'")
    for _ in range(2):
        assert kinds(read.text.content, known.of("python", read), [13]) == ["string"]


def test_places_belong_to_the_content_and_the_word(tmp_path: Path) -> None:
    known, path = RecentPlaces(), tmp_path / "a.py"
    word, other = whole_word("name"), whole_word("NAME", ignore_case=True)
    read = written(path, "name = 'name'")
    first = known.of(read, word)
    assert [span.start.column for span in first] == [0, 8]
    assert known.of(read_text(path), word) is first
    assert known.of(written(path, "names = 1"), word) == []
    assert [span.start.column for span in known.of(written(path, "x.Name"), other)] == [2]
    assert known.of(read, word) is first


def test_of_a_name_with_more_places_than_are_kept_all_are_found_again(tmp_path: Path) -> None:
    known, word = RecentPlaces(most=2), whole_word("name")
    read = written(tmp_path / "a.py", "name + name + name")
    first = known.of(read, word)
    assert known.of(read, word) == first
    assert known.of(read, word) is not first
