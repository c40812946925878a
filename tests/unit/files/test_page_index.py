"""A search that looks only at the pages that an index names finds what a plain scan of every line finds."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from serena_central.core.errors import InvalidArguments
from serena_central.files.corpus import Corpora, Corpus, lines_of
from serena_central.files.page_index import PageIndex, Words, words_in
from serena_central.files.pattern import Pattern
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


def index_all(corpus: Corpus) -> None:
    while corpus.index_more(lambda _: True):
        pass


@pytest.fixture(scope="module")
def small_pages() -> Iterator[None]:
    """Whatever is read was written long ago; pages are a few lines, and chunks a few files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.corpus.RACY_NS", -(10**18))
        patch.setattr("serena_central.files.corpus.CHUNK_BYTES", 300)
        patch.setattr("serena_central.files.corpus.LEAST_INDEXED", 1)
        patch.setattr("serena_central.files.page_index.PAGE_BYTES", 16)
        yield


@pytest.mark.usefixtures("small_pages")
@given(
    files=st.lists(CONTENTS, min_size=1, max_size=8),
    later=st.lists(st.tuples(st.integers(0, 9), CONTENTS), max_size=3),
    sources=st.lists(SOURCES, min_size=1, max_size=5),
    densest=st.sampled_from((0.3, 1, 100)),
    before=st.sampled_from((0, 0, 1)),
    literal=st.booleans(),
)
def test_an_indexed_search_finds_what_a_plain_scan_finds(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[bytes],
    later: list[tuple[int, bytes]],
    sources: list[str],
    densest: float,
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

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.page_index.DENSEST", densest)
        stamps = stamps_of(root)
        corpus.read(stamps, stamps, lambda _: True)
        index_all(corpus)
        anyio.run(compare)
        for number, (name, data) in enumerate(later):
            (root / str(name)).write_bytes(data)
            os.utime(root / str(name), ns=(OLD_NS + number, OLD_NS + number))
            anyio.run(compare)
        index_all(corpus)
        anyio.run(compare)


def check(
    root: Path, paths: Sequence[str] | dict[str, Stamp], source: str, found: SearchResult, *, multiline: bool
) -> None:
    expected = {path: plain_scan((root / path).read_bytes(), source, multiline=multiline) for path in paths}
    assert {path: list(lines) for path, lines in found.hits.items()} == {
        p: lines for p, lines in expected.items() if lines
    }


@given(TEXTS, SOURCES)
def test_each_line_that_matches_is_on_a_page_with_the_words_of_the_pattern(text: str, source: str) -> None:
    try:
        pattern = Pattern(source, dot_matches_newline=False, deadline=time.monotonic() + 60)
    except InvalidArguments:
        return
    data = lines_of(text.encode("utf-8", "surrogateescape"))
    data += b"" if not data or data.endswith(b"\n") else b"\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("serena_central.files.page_index.PAGE_BYTES", 1)
        patch.setattr("serena_central.files.page_index.DENSEST", 100)
        index = PageIndex(data)
    if not pattern.words.alternatives:
        return
    spans = index.spans(pattern.words)
    begin = 0
    for line in data.splitlines(keepends=True) if b"\n" in data else ():
        if pattern.search(line[:-1].decode("utf-8", "surrogateescape")) is not None:
            assert any(first <= begin and begin + len(line) <= end for first, end in spans)
        begin += len(line)


@pytest.mark.parametrize(
    ("characters", "any_case", "found"),
    [
        ("slugify", False, {"slugify", "myslugify2"}),
        (".slugify", False, {"slugify"}),
        ("slugify(", False, {"slugify"}),
        ("-\0\0-", False, {"00"}),
        ("\0\0\0\0-", False, {"0000"}),
        ("sluGIFY", True, {"slugify", "myslugify2", "lug"}),
    ],
)
def test_words_are_looked_up_as_far_as_their_ends_are_known(characters: str, any_case: bool, found: set[str]) -> None:
    words = ["slugify", "myslugify2", "lug", "00", "0000", "a0"]
    entries = b"".join(word.replace("2", "0").encode() + bytes((128 + number,)) for number, word in enumerate(words))
    (looked_up,) = words_in([characters], any_case=any_case)
    assert {words[page - 128] for pages in looked_up.findall(entries) for page in pages} == found


def test_what_has_few_equal_words_is_not_indexed_and_always_searched() -> None:
    plain = b"the same few words on every line\n" * 1000
    hashes = b"".join(b"%032x\n" % (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128) for number in range(1000))
    index = PageIndex(plain + hashes)
    assert index.size_bytes < len(plain + hashes) / 3
    found = index.spans(Words([words_in(["nowhere"])]))
    assert sum(end - begin for begin, end in found) >= len(hashes)
    assert not any(begin < len(plain) - 10_000 for begin, _ in found)


def test_one_huge_line_and_many_short_ones_are_pages() -> None:
    for data in (
        b"word " * 1_000_000 + b"\n",
        bytes(range(128)) * 40_000 + b"\n",
        b"\n" * 1_000_000,
        b"",
        b"a\n" * 5_000_000,
    ):
        index = PageIndex(data)
        assert index.end == len(data)
        assert index.size_bytes <= max(2_000, len(data) / 3)
