"""Finds texts in bytes, all of some at once, and many times as quickly as `bytes.find` does.

It is made of the Aho–Corasick automaton of ripgrep's author, which compares up to 32 bytes with one instruction. It
knows no patterns: which texts are looked for is the caller's choice.
"""

from collections.abc import Iterable, Iterator

MOST_AT_ONCE = 16
"""Texts for which the automaton compares many bytes at once, if they begin with at least three different ones …"""

_OTHERS = [b"\xfd\xfd", b"\xfe\xfe", b"\xff\xff"]
"""… as they do with these, which stand in no UTF-8."""

PIECE_BYTES = 262_144
"""Searched at once: all that is found in them takes some megabytes at most."""


class Needles:
    """Some texts to be found, none empty, none with a line feed."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, MatchKind  # late: only searches load it

        texts = list(texts)
        if 1 < len(texts) <= MOST_AT_ONCE - len(_OTHERS):
            texts += _OTHERS
        self._find = BytesAhoCorasick(texts, MatchKind.LeftmostFirst).find_matches_as_indexes
        self._overlap = max(map(len, texts)) - 1

    def first_in_lines(self, data: bytes) -> Iterator[int]:
        """Where the first of them begins in each line that has one, in order. Each line of `data` ends with a line
        feed."""
        view, find_end, behind = memoryview(data), data.find, 0
        for start in range(0, len(data), PIECE_BYTES):
            for _, place, _ in self._find(view[start : start + PIECE_BYTES + self._overlap]):
                place += start  # noqa: PLW2901 - of the piece, and of all
                if place >= behind:
                    yield place
                    behind = find_end(b"\n", place)
