"""Indexes which words occur in which files, and each file's digest: read once, for many questions.

In the calling thread. Words are what identifiers are made of in most languages: letters, digits and `_`, every
character beyond ASCII included. Of words beside such characters as quotation marks, arrows or a byte-order mark, which
no identifier has, those between them count, too: else a name that stands there would pass for unused.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from serena_central.files.text import in_utf8, read_each

PIECE_BYTES = 1 << 16
"""Regular expressions keep the interpreter's lock until they have looked through all that they are given: 0.3 ms for
this, 0.1 s for a header of 20 MB, which would also become a million words at once."""

OVERLAP_BYTES = 1 << 12
"""What matches the marker is shorter."""

FEW_WORDS = 20
"""So few are looked for as they are before, which most texts do not hold: a tenth of the time."""

_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_BETWEEN_WORDS = re.compile(rb"[^0-9A-Za-z_\x80-\xff]")


class FileWords(NamedTuple):
    """`counts`: how often each of the wanted words stands in the file. `digest`: of its bytes."""

    digest: bytes
    counts: Counter[str]
    marked: bool
    """Whether the marker that was asked for occurs."""
    lines: list[bytes]
    """What the pattern of lines that was asked for finds."""


def words_of_each(
    root: Path,
    paths: Iterable[str],
    wanted: Iterable[str],
    *,
    marker: re.Pattern[bytes] | None = None,
    lines: Callable[[str], re.Pattern[bytes] | None] = lambda _: None,
    any_case: Callable[[str], bool] = lambda _: False,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[str, FileWords]]:
    """Paths, each with its words among `wanted`; files that can't be read are missing. Ends early when `stopped`.

    `lines` gives the pattern of what is wanted of a file besides. Words of files for which `any_case` holds are counted
    in any case, under their lower-case form.
    """
    known = {word.encode("utf-8", "surrogateescape"): word for word in wanted}
    lower = {word.lower().encode("utf-8", "surrogateescape"): word.lower() for word in known.values()}
    for path, read in read_each(root, paths):
        if stopped():
            break
        data = in_utf8(read, path)
        if data is None:
            continue
        digest = hashlib.blake2b(read, digest_size=16).digest()
        of, text = (lower, _lower(data)) if any_case(path) else (known, data)
        pattern = lines(path)
        yield (
            path,
            FileWords(
                digest,
                _counted(text, of),
                marker is not None and _holds(data, marker),
                pattern.findall(data) if pattern is not None else [],
            ),
        )


def words_of(
    root: Path, paths: Iterable[str], wanted: Iterable[str], *, marker: re.Pattern[bytes] | None = None
) -> dict[str, FileWords]:
    """Path → its words among `wanted`, of few files, or of few words: see `words_of_each`."""
    return dict(words_of_each(root, paths, wanted, marker=marker))


def _counted(text: bytes, known: Mapping[bytes, str]) -> Counter[str]:
    """How often each of the known words stands in a text."""
    if len(known) <= FEW_WORDS and not any(word in text for word in known):
        return Counter()
    counts, is_ascii = Counter[str](), text.isascii()
    for start, end in pieces(text):
        words = _WORD.findall(text, start, end)
        counts.update(map(known.__getitem__, filter(known.__contains__, words)))
        if not is_ascii:
            parts = (part for word in words if not word.isascii() and word not in known for part in _parts(word))
            counts.update(map(known.__getitem__, filter(known.__contains__, parts)))
    return counts


def pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the pieces of a text begin and end, of which regular expressions are given one at a time; no word, nor any
    character, is divided."""
    start = 0
    while start < len(text):
        between = _BETWEEN_WORDS.search(text, start + PIECE_BYTES)
        end = between.start() if between else len(text)
        yield start, end
        start = end


def _parts(word: bytes) -> list[bytes]:
    """The words between characters of a word that no identifier has; none where it has no such character."""
    text = word.decode("utf-8", "surrogateescape")
    if text.replace("_", "").isalnum():  # nearly all
        return []
    parts = "".join([one if _is_of_word(one) else " " for one in text]).split()
    return [part.encode("utf-8", "surrogateescape") for part in parts]


def _is_of_word(character: str) -> bool:
    return character == "_" or character.isalnum() or unicodedata.category(character).startswith("M")


def _holds(data: bytes, marker: re.Pattern[bytes]) -> bool:
    starts = range(0, len(data), PIECE_BYTES)
    return any(marker.search(data, start, start + PIECE_BYTES + OVERLAP_BYTES) for start in starts)


def _lower(data: bytes) -> bytes:
    if data.isascii():
        return data.lower()
    return data.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")
