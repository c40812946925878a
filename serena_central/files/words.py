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

_BETWEEN_WORDS = re.compile(rb"[^0-9A-Za-z_\x80-\xff]")

_DIGITS = b"0123456789"

_OF_WORDS = re.compile(rb"[0-9A-Za-z_]+").findall(bytes(range(128)))
_ASCII_ALONE = bytes(one if any(one in some for some in _OF_WORDS) else ord(" ") for one in range(256))
_ALL = bytes(one if one >= 128 else _ASCII_ALONE[one] for one in range(256))
"""Tables of `bytes.translate` that leave words and spaces: a fifth of the time that a regular expression takes."""


class FileWords(NamedTuple):
    """`counts`: how often each of the wanted words stands in the file. `digest`: of its bytes."""

    digest: bytes
    counts: Counter[str]
    marked: bool
    """Whether the marker that was asked for occurs."""
    lines: list[bytes]
    """The lines that were asked for."""


def words_of_each(
    root: Path,
    paths: Iterable[str],
    wanted: Iterable[str],
    *,
    marker: re.Pattern[bytes] | None = None,
    lines: Callable[[str], Callable[[bytes], list[bytes]] | None] = lambda _: None,
    any_case: Callable[[str], bool] = lambda _: False,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[str, FileWords]]:
    """Paths, each with its words among `wanted`; files that can't be read are missing. Ends early when `stopped`.

    `lines` gives what finds the lines that are wanted of a file besides. Words of files for which `any_case` holds are
    counted in any case, under their lower-case form.
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
        find = lines(path)
        yield (
            path,
            FileWords(
                digest,
                _counted(text, of),
                marker is not None and _holds(data, marker),
                find(data) if find is not None else [],
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
        words = split(text[start:end])
        words += behind_digits(words)
        counts.update(map(known.__getitem__, filter(known.__contains__, words)))
        if not is_ascii:
            parts = (part for word in words if not word.isascii() and word not in known for part in _parts(word))
            counts.update(map(known.__getitem__, filter(known.__contains__, parts)))
    return counts


def split(text: bytes, *, beyond_ascii: bool = True) -> list[bytes]:
    """The words of a text, of which some begin with digits (see `behind_digits`); characters beyond ASCII are part of
    them, or stand between them."""
    return text.translate(_ALL if beyond_ascii else _ASCII_ALONE).split()


def behind_digits(words: Iterable[bytes]) -> list[bytes]:
    """What stands behind the digits that some words begin with."""
    return [word.lstrip(_DIGITS) for word in words if word < b":"]


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
