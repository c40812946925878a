"""A search that looks only at lines with what its pattern needs finds what a plain scan of every line finds."""

import os
import string
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.files.corpus import Corpora, lines_of
from serena_central.files.needles import Needles
from serena_central.files.pattern import _CHANGING, _OTHER_DIGITS, Pattern
from serena_central.files.search import SearchRequest, SearchResult, Source, search
from serena_central.files.stamp import RACY_NS, Stamp

OLD_NS = time.time_ns() - 10 * RACY_NS

WORDS = (
    *(
        "import os",
        "slugify",
        "Slugify(",
        "SLUGIFY",
        "ſlugify",
        "get_absolute_url",
        "raise ValueError(",
        "KIT",
        "\u212ait",
    ),
    *(
        "kiſs",
        "İs",
        "ıs",
        "größe",
        "GRÖSSE",
        "x",
        "",
        " ",
        "\t",
        "-",
        "2015-10-09",
        "٢٠١٥-١٠-٠٩",
        "1٢34-5٦-78",
        "12345",
        "a1b22",
    ),
    *("\udcff", "slug\udcffify", "é2015-10-09", "v1.25", "v١.٢٥", "𝟙𝟚", "aaa", "Ab_9"),
)
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).flatmap(
    lambda words: st.lists(st.sampled_from("\n  \n,(\r"), min_size=len(words), max_size=len(words)).map(
        lambda ends: "".join(word + end for word, end in zip(words, ends, strict=True))
    )
)
CONTENTS = st.one_of(
    TEXTS.map(lambda text: text.encode("utf-8", "surrogateescape")),
    TEXTS.map(lambda text: b"\xef\xbb\xbf" + text.encode("utf-8", "surrogateescape")),
    TEXTS.map(lambda text: text.encode("utf-16", "ignore")),
    st.sampled_from((b"slugify\0", b"", b"\n", b"\r\n\n", b"slugify" * 50)),
)
PIECES = r"""
slugify lug import raise\s \w+Error\( Error\( get_ _url \w+ KIT kit is größe ö é aaa a a? ab* a{3} a{2,} a{0} x+
a+b a+? \d+\.\d+ -+ e+
(?:a|b) (slug|get) \d \d{4} \d{4}- \d\d- \d\d \d+\. v\d+ \. - \d{2,3} [0-9] [0-9]{4} [0-9]- [A-Z]{3} \b \B ^ $ |
. .* \s \S \W [^a] _ (?=l) (?!l) (?<=s) (?<!s) \A \Z \n
"""
SOURCES = st.builds(
    lambda flag, pieces: flag + "".join(pieces),
    st.sampled_from(("", "", "(?i)", "(?s)", "(?i)(?m)")),
    st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=5),
)


def stamps_of(root: Path) -> dict[str, Stamp]:
    return {path.name: Stamp.of(path.stat()) for path in sorted(root.iterdir())}


def plain_scan(data: bytes, source: str, *, multiline: bool) -> list[str]:
    """What is shown of one file."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16").encode()
    elif b"\0" in data:
        return []
    text = lines_of(data).decode("utf-8", "surrogateescape")
    flags = regex.MULTILINE | (regex.DOTALL if multiline else 0)
    lines = (text[:-1] if text.endswith("\n") else text).split("\n") if text else []
    if not multiline:
        return [f"  >{number:>4}:{line}" for number, line in enumerate(lines) if regex.search(source, line, flags)]
    matched = set[int]()
    for found in regex.finditer(source, text, flags) if text else ():
        first = text.count("\n", 0, found.start())
        matched |= {
            first,
            *range(first, first + text.count("\n", found.start(), max(found.start(), found.end() - 1)) + 1),
        }
    return [f"  >{number:>4}:{line}" for number, line in enumerate(text.split("\n")) if number in matched]


@pytest.fixture(scope="module")
def small_chunks() -> Iterator[None]:
    """Whatever is read was written long ago; chunks are a few files, which are searched some bytes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))
        patch.setattr("serena_central.files.corpus.CHUNK_BYTES", 300)
        patch.setattr("serena_central.files.needles.PIECE_BYTES", 16)
        yield


@pytest.mark.usefixtures("small_chunks")
@given(
    files=st.lists(CONTENTS, min_size=1, max_size=8),
    later=st.lists(st.tuples(st.integers(0, 9), CONTENTS), max_size=3),
    sources=st.lists(SOURCES, min_size=1, max_size=5),
    before=st.sampled_from((0, 0, 1)),
    literal=st.booleans(),
)
def test_a_search_finds_what_a_plain_scan_finds(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[bytes],
    later: list[tuple[int, bytes]],
    sources: list[str],
    before: int,
    literal: bool,
) -> None:
    root = tmp_path_factory.mktemp("root")
    for number, data in enumerate(files):
        (root / str(number)).write_bytes(data)
    corpus = Corpora().of(root)

    async def compare() -> None:
        stamps = stamps_of(root)
        for source in sources:
            for multiline in (False, True):
                request = SearchRequest(source, before=before, multiline=multiline, literal=literal)
                try:
                    found = await search(root, stamps, request, source=Source(corpus, stamps))
                except InvalidArguments:
                    continue
                assert found == await search(root, stamps, request)
                if not before:
                    check(root, stamps, regex.escape(source) if literal else source, found, multiline=multiline)

    anyio.run(compare)
    for number, (name, data) in enumerate(later):
        (root / str(name)).write_bytes(data)
        os.utime(root / str(name), ns=(OLD_NS + number, OLD_NS + number))
        anyio.run(compare)


def check(
    root: Path, paths: Sequence[str] | dict[str, Stamp], source: str, found: SearchResult, *, multiline: bool
) -> None:
    expected = {path: plain_scan((root / path).read_bytes(), source, multiline=multiline) for path in paths}
    assert {path: list(lines) for path, lines in found.hits.items()} == {
        p: lines for p, lines in expected.items() if lines
    }


@example("a = get_absolute_url\n", r"get_\w+_url", 5)  # chance hardly finds a match of more than one part
@example("v1.2-rc\nslugify  größe\n", r"slug\w+\s.*größe", 3)
@given(TEXTS, SOURCES, st.integers(1, 40))
def test_each_line_that_matches_has_what_the_pattern_needs(text: str, source: str, piece: int) -> None:
    try:
        pattern = Pattern(source, dot_matches_newline=False, deadline=time.monotonic() + 60)
    except InvalidArguments:
        return
    if pattern.needles is None:
        return
    data = lines_of(text.encode("utf-8", "surrogateescape"))
    data += b"" if not data or data.endswith(b"\n") else b"\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.needles.PIECE_BYTES", piece)
        places = list(pattern.needles.first_in_lines(data))
    assert places == sorted(set(places))
    begin = 0
    for line in data[:-1].split(b"\n") if data else ():
        if pattern.search(line.decode("utf-8", "surrogateescape")) is not None:
            assert any(begin <= place <= begin + len(line) for place in places)
            assert all(other in line for other in pattern.others)
        begin += len(line) + 1


@given(
    st.lists(st.binary(min_size=1, max_size=4).filter(lambda text: b"\n" not in text), min_size=1, max_size=20),
    st.text(alphabet="ab\n\xff", max_size=60).map(lambda text: text.encode("latin-1") + b"\n"),
    st.integers(1, 30),
)
def test_the_first_in_each_line_is_found_whatever_the_pieces(texts: list[bytes], data: bytes, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.needles.PIECE_BYTES", piece)
        for some in (texts[:1], texts, [b"a", b"bb", b"ab"], [b"aa"]):
            found = list(Needles(some).first_in_lines(data))
            lines = [data.count(b"\n", 0, place) for place in found]
            assert {number for number, line in enumerate(data.split(b"\n")) if any(one in line for one in some)} <= {
                *lines
            }
            assert lines == sorted(set(lines))
            if len(some) == 1:
                begins = [data.rfind(b"\n", 0, place) + 1 for place in found]
                assert found == [data.find(some[0], begin) for begin in begins]


def test_digits_of_every_script_begin_with_a_byte_that_is_looked_for() -> None:
    digits = regex.findall(r"\d", "".join(map(chr, range(0x80, 0x110000))), concurrent=True)
    assert len(digits) > 600
    assert {digit.encode()[:1] for digit in digits} == set(_OTHER_DIGITS)


def test_letters_in_any_case_are_looked_for_in_each_that_they_may_have() -> None:
    others = "".join(char for char in map(chr, range(0x80, 0x110000)) if not 0xD800 <= ord(char) <= 0xDFFF)
    for letter in string.ascii_lowercase:
        found = regex.findall(letter, others, regex.IGNORECASE, concurrent=True)
        assert not found or _CHANGING.fullmatch(letter)


def test_what_is_found_in_large_texts_takes_little_memory() -> None:
    data = b"aaa" * 1_000_000 + b"\n" + b"aaa\n" * 100_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in Needles([b"aaa"]).first_in_lines(data)) == 100_001
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 40_000_000
