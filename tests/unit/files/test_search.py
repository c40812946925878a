"""Patterns find what they should, in bounded time and size."""

import os
import tracemalloc
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.files import search as search_module
from serena_central.files.corpus import Corpora
from serena_central.files.search import SearchRequest, SearchResult, Source, glob_filter, search
from serena_central.files.stamp import Stamp

pytestmark = pytest.mark.anyio


async def find(root: Path, text: str | bytes, pattern: str, **options: object) -> list[str]:
    """What is shown of one file."""
    (root / "f").write_bytes(text if isinstance(text, bytes) else text.encode())
    return (await found(root, pattern, **options)).hits.get("f", [])


async def found(root: Path, pattern: str, *, deadline_s: float = 20, **options: object) -> SearchResult:
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    request = SearchRequest(pattern, **options)  # type: ignore[arg-type]  # each test names the fields it means
    return await search(root, paths, request, deadline_s=deadline_s)


async def test_matches_and_their_surroundings_are_shown_once_and_in_order(tmp_path: Path) -> None:
    text = "zero\none\ntwo x\nthree\nfour x\nfive\n6\nseven\n"
    assert await find(tmp_path, text, "x$") == ["  >   2:two x", "  >   4:four x"]
    assert await find(tmp_path, text, "x$", before=1, after=2) == [
        "...   1:one",
        "  >   2:two x",
        "...   3:three",
        "  >   4:four x",
        "...   5:five",
        "...   6:6",
    ]
    assert (await find(tmp_path, text, "^seven", before=10**9, after=10**9))[-1] == "  >   7:seven"


async def test_a_pattern_stays_in_its_line_unless_multiline_is_asked(tmp_path: Path) -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    assert await find(tmp_path, text, r"A:.*return") == []
    assert await find(tmp_path, text, r"A:\s+def") == []
    assert await find(tmp_path, text, r"\s+def") == ["  >   1:    def f(self):"]
    assert await find(tmp_path, text, r"A:.*f\(", multiline=True, after=1) == [
        "  >   0:class A:",
        "  >   1:    def f(self):",
        "...   2:        return 1",
    ]
    assert await find(tmp_path, text, r"A:\n", multiline=True) == ["  >   0:class A:"]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"a(?!\s*b)", [0, 2]),
        (r"[^x]++$", [0, 1, 2]),
        (r"\Ab|a\Z", [0, 1, 2]),
        (r"(?i)A", [0, 2]),
        (r"^", [0, 1, 2]),
        (r"(?<!b)a", [0, 2]),
        (r"(?-m:^)a|b(?-m:$)", [0, 1, 2]),
    ],
)
async def test_each_line_is_matched_as_if_it_stood_alone(tmp_path: Path, pattern: str, lines: list[int]) -> None:
    shown = await find(tmp_path, "a\nb\na\n", pattern)
    assert [int(line[3:7]) for line in shown] == lines


async def test_a_search_whose_files_can_not_be_read_in_time_says_how_many_were(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nothing here")
    found = await search(tmp_path, ["a"] * 3, SearchRequest("wanted"), deadline_s=0)
    assert [note.partition(". ")[0] for note in found.notes] == [
        "incomplete: the search was stopped after 0 s; 0 of 3 files were searched"
    ]


async def test_empty_lines_are_lines_and_the_end_of_the_text_is_none(tmp_path: Path) -> None:
    for pattern in ("^$", "^(?!x)$"):
        assert await find(tmp_path, "a\n\nb\n\n", pattern) == ["  >   1:", "  >   3:"]
        assert await find(tmp_path, "a\n", pattern) == []
        assert await find(tmp_path, "", pattern) == []
    assert len(await find(tmp_path, "a\n\n", "^")) == 2


async def test_braces_that_are_no_quantifier_stand_for_themselves(tmp_path: Path) -> None:
    text = 'f"{e}"\nf"{i:>3}"\naaa\nf"x"\n{}\n'
    assert await find(tmp_path, text, 'f"{e}"') == ['  >   0:f"{e}"']
    assert await find(tmp_path, text, "{i") == ['  >   1:f"{i:>3}"']
    assert await find(tmp_path, text, "a{3}") == ["  >   2:aaa"]
    assert await find(tmp_path, text, "[{]}") == ["  >   4:{}"]
    assert await find(tmp_path, text, r"\{\}") == ["  >   4:{}"]
    assert await find(tmp_path, text, "{}") == ["  >   4:{}"]


async def test_line_ends_and_encodings_do_not_matter(tmp_path: Path) -> None:
    assert await find(tmp_path, "a\r\nbé\r\nc", "é$") == ["  >   1:bé"]
    assert await find(tmp_path, "a\rbé\rc", "^bé$") == ["  >   1:bé"]
    assert await find(tmp_path, "\ufeffbé\n".encode("utf-16-le"), "^bé$") == ["  >   0:bé"]
    assert await find(tmp_path, "bé\n".encode("latin-1"), "bé", encoding="latin-1") == ["  >   0:bé"]
    assert await find(tmp_path, b"bad \xff byte\n", "byte") == ["  >   0:bad \udcff byte"]
    assert await find(tmp_path, b"bi\0nary\n", "nary") == []


async def test_long_lines_are_cut_around_their_match(tmp_path: Path) -> None:
    (line,) = await find(tmp_path, "a" * 5000 + "needle" + "b" * 5000, "needle")
    assert "needle" in line
    assert len(line) < 1100
    assert line.startswith("  >   0:[…4800 characters] a")
    assert line.endswith("b [4206 characters…]")


async def test_globs_choose_the_files(tmp_path: Path) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.ts", "src/deep/d.tsx", "test/e.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    for include, exclude, expected in (
        ("*.py", "", ["a.py", "src/b.py", "test/e.py"]),
        ("**/*.py", "test/**", ["a.py", "src/b.py"]),
        ("src/**/*.{ts,tsx}", "", ["src/deep/c.ts", "src/deep/d.tsx"]),
        ("src", "deep", ["src/b.py"]),
        ("./*.py", "", ["a.py"]),
        ("src/*", "*.ts", ["src/b.py", "src/deep/d.tsx"]),
        ("{src/{b,x}.py,test/}", "", ["src/b.py", "test/e.py"]),
    ):
        assert list((await found(tmp_path, "x", include=include, exclude=exclude)).hits) == expected


@pytest.mark.parametrize("pattern", ["", "(", "a" * 20_000, "(" * 5000, "[z-a]", "*", "(?P<a>x)(?P=b)"])
async def test_a_pattern_that_is_none_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InvalidArguments):
        await find(tmp_path, "x", pattern)


async def test_a_glob_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        glob_filter("[a")
    assert glob_filter("{a,b}" * 30) is not None


async def test_a_catastrophic_pattern_ends_at_the_deadline_and_others_go_on_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("needle")
    (tmp_path / "b").write_text("a" * 5000 + "b")
    results: list[SearchResult] = []

    async def catastrophe() -> None:
        results.append(await found(tmp_path, r"needle|(a|aa)+$", deadline_s=1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(catastrophe)
        quick = 0
        while not results:
            assert (await search(tmp_path, ["a"], SearchRequest("needle"))).matches == 1
            quick += 1
    assert quick > 1
    assert list(results[0].hits) == ["a"]
    assert "stopped after 1 s in b" in results[0].notes[0]


async def test_a_cancelled_search_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("a" * 5000 + "b")
    with anyio.fail_after(60), anyio.move_on_after(0.05) as scope:
        await found(tmp_path, r"(a|aa)+$", deadline_s=1)
    assert scope.cancelled_caught


async def test_the_answer_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MAX_CHARS", 1000)
    for name in "abc":
        (tmp_path / name).write_text("line\n" * 70)
    result = await found(tmp_path, "line")
    assert sum(len(line) for lines in result.hits.values() for line in lines) < 1100
    assert "2 of 3 files were searched" in result.notes[0]


LONGEST_LINE = 90


@given(
    texts=st.lists(st.lists(st.integers(0, 60), max_size=8), min_size=1, max_size=6),
    room=st.integers(1, 800),
    kept=st.booleans(),
    chunk=st.integers(1, 300),
)
def test_the_answer_ends_with_the_line_that_exceeds_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[int]], room: int, kept: bool, chunk: int
) -> None:
    root = tmp_path_factory.mktemp("root")
    for number, lengths in enumerate(texts):
        (root / str(number)).write_text("".join(f"{'é' * length}x\nother\n" for length in lengths))
    expected: dict[str, int] = {}
    left = room
    for number, lengths in enumerate(texts):
        for length in lengths:
            if left > 0:
                expected[str(number)] = expected.get(str(number), 0) + 1
                left -= min(2 * length + 2, LONGEST_LINE) + search_module.MARK_CHARS
    stamps = {path.name: Stamp.of(path.stat()) for path in sorted(root.iterdir())}
    source = Source(Corpora().of(root), stamps) if kept else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))
        patch.setattr("serena_central.files.corpus.CHUNK_BYTES", chunk)
        patch.setattr(search_module, "MAX_LINE_CHARS", LONGEST_LINE)
        patch.setattr(search_module, "MAX_CHARS", room)
        result = anyio.run(partial(search, root, stamps, SearchRequest("x"), source=source))
    assert {path: len(lines) for path, lines in result.hits.items()} == expected
    assert result.matches == sum(expected.values())
    assert [note.partition(":")[0] for note in result.notes] == (["truncated"] if left <= 0 else [])


async def test_what_is_found_keeps_no_text_that_was_read_for_it_alone(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.c").write_text("other\n" * 10_000 + "needle\n")
    tracemalloc.start()
    try:
        result = await found(tmp_path, "needle")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.matches == 40
    assert kept < 40 * 60_000 / 4


async def test_files_that_can_not_be_read_are_told_and_pipes_never_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(50_000_000)
    (tmp_path / "a").write_text("x")
    result = await search(tmp_path, ["pipe", "huge", "missing", "a"], SearchRequest("x"))
    assert list(result.hits) == ["a"]
    assert [note.split(":")[0] for note in result.notes] == ["incomplete", "incomplete"]


async def test_a_wide_encoding_hides_no_file_in_utf_8_and_those_in_none_of_both_are_told(tmp_path: Path) -> None:
    files = {
        "even": b"x = 1;",
        "odd": b"x = 12;",
        "wide": "x = é".encode("utf-16-le"),
        "latin": "x = é!".encode("latin-1") + b"!",
        "picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR x",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    result = await found(tmp_path, "x", encoding="utf-16")
    assert sorted(result.hits) == ["even", "odd", "wide"]
    assert result.notes == ["incomplete: 1 file is not valid in its encoding and was not searched: 'latin' (utf-16-le)"]


async def test_a_file_that_belies_its_byte_order_mark_is_told(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes("\ufeffx".encode("utf-16-be") + b"!")
    result = await found(tmp_path, "x")
    assert (result.hits, len(result.notes)) == ({}, 1)
    assert result.notes[0].startswith("incomplete: 4 files are not valid in their encoding and were not searched: ")


@pytest.mark.parametrize("glob", ["x" * 50_001, "{aaaaaaaaaa,b}" * 12], ids=["long", "long with its braces expanded"])
def test_a_glob_that_would_take_long_to_compile_is_refused(glob: str) -> None:
    with pytest.raises(InvalidArguments, match="the limit is 50000"):
        glob_filter(glob)


@pytest.mark.parametrize("text", ["f(x", "a.b*", "[]", "{e}", r"\d", "$1 ^", "a b\tc", "é|ü", "#define X(y) y"])
async def test_a_literal_finds_its_very_text_and_so_does_what_the_error_offers(tmp_path: Path, text: str) -> None:
    content = f"before {text} after\nfx a-b e 5 1 ab\n"
    assert await find(tmp_path, content, text, literal=True) == [f"  >   0:before {text} after"]
    assert await find(tmp_path, "fx a-b e 5 1 ab\n", text, literal=True) == []
    assert await find(tmp_path, f"x\n{text}\ny", f"x\n{text}\n", literal=True, multiline=True) != []


async def test_a_text_that_is_no_regular_expression_is_offered_escaped(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArguments, match="To search for this exact text, pass literal: true, or escape it: "
    ) as refused:
        await find(tmp_path, "f(x, [1]", "f(x, [")
    offered = str(refused.value).rpartition("escape it: ")[2]
    assert await find(tmp_path, "f(x, [1]", offered) == ["  >   0:f(x, [1]"]
