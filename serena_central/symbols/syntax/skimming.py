"""Texts without what their outline does not need: the bodies of functions and lists of values, where the layout alone
tells where they are, and lines that define macros.

Two thirds of the time that C takes to parse are spent in bodies, which define nothing that an outline tells; a third of
the Linux kernel's text is `#define`. Without them 4 of a file's 24 KB are left, which are all that is looked at
afterwards. Runs in the worker's process, like `outline`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from serena_central.symbols.syntax.messages import PARSED_BYTES, SKIMMED

_HEAD = re.compile(rb"(?:\)[\w \t]*(?:/\*[^*\n]*\*/[ \t]*)?(?P<break>\n|(?<=[ \t)]))|(?P<value>=)[ \t]*\n?)\Z")
"""In C, what stands before the brace of a body: a parameter list, or the sign before a list of values."""

_OPENS = b"{\n"
_CLOSES = b"\n}"
"""A body's brace ends its line, and the first one that begins a line ends the body. Where somebody writes otherwise
nothing is left out. To look for these is twenty times as fast as one expression for all of it."""

_AT_MARGIN = re.compile(rb"[^\s#/*]")

_LABEL = re.compile(rb"\w+[ \t]*:")

_CONDITION = re.compile(rb"(?m)^[ \t]*#[ \t]*(?:(?P<begins>if)|(?P<ends>endif)|else|elif)")

_DEFINE_LINE = rb"[ \t]*\#[ \t]*define\b(?:[^\n\\/]++|/(?!\*)|/\*(?:[^*\n\\]++|\*(?!/))*+\*/)*+$"
"""A macro on one line: neither it nor a comment in it goes on in the next one."""

_DEFINE = b"define"

_MACROS = re.compile(rb"\n%b(?:\n%b)*+" % (_DEFINE_LINE, _DEFINE_LINE), re.MULTILINE)
"""Each with the line break before it."""

_GAP = b" " * 64
"""Blanks that are worth leaving out: what was blanked, as a rule."""

_BLANKS = re.compile(rb" +")


class Skim(NamedTuple):
    """What is left of a text: stretches of it, one behind the other, each of which begins at one of `starts`, and at
    the same one of `origins` in the text itself."""

    text: bytes
    starts: Sequence[int] = (0,)
    origins: Sequence[int] = (0,)

    def traced(self, offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Offsets in ascending order, each with where in the text itself it is."""
        coming = zip([*self.starts[1:], sys.maxsize], [*self.origins[1:], 0], strict=True)
        moved, (until, origin) = 0, next(coming)
        for offset in offsets:
            while offset >= until:
                moved = origin - until
                until, origin = next(coming)
            yield offset, offset + moved


def is_too_long(skim: bytes) -> bool:
    """Whether what is left of a text is too long to be parsed."""
    return len(skim) > PARSED_BYTES and len(skim) - skim.count(b" ") - skim.count(b"\n") > PARSED_BYTES


def skimmed(identifier: str, source: bytes) -> Skim:
    """What is left of a text (in the language of an LSP identifier)."""
    return _closed_up(blanked(source)) if identifier in SKIMMED else Skim(source)


def _closed_up(source: bytes) -> Skim:
    """A text without long rows of blanks, but for one at either end of each."""
    parts: list[bytes] = []
    starts, origins = [0], [0]
    kept = length = 0
    while (gap := source.find(_GAP, kept)) >= 0 and (blanks := _BLANKS.match(source, gap)):
        parts.append(source[kept : gap + 1])
        length += gap + 1 - kept
        kept = blanks.end() - 1
        starts.append(length)
        origins.append(kept)
    return Skim(b"".join((*parts, source[kept:])), starts, origins) if parts else Skim(source)


def blanked(source: bytes) -> bytes:
    """A text of C with blanks in place of macros, and of bodies of functions; offsets stay as they are."""
    return _without_bodies(_without_macros(source))


def _without_macros(source: bytes) -> bytes:
    parts: list[bytes] = []
    kept = at = 0
    while (word := source.find(_DEFINE, at)) >= 0:
        # To look for a word is ten times as fast as to try each line.
        line = source.rfind(b"\n", kept, word)
        macros = _MACROS.match(source, line) if line >= 0 else None
        if macros is None:
            at = source.find(b"\n", word)
            if at < 0:
                break
            continue
        parts += source[kept:line], blank_line(macros)
        kept = at = macros.end()
    return b"".join((*parts, source[kept:])) if parts else source


def _without_bodies(source: bytes) -> bytes:
    parts: list[bytes] = []
    kept = at = end = 0
    looked_at = 0
    """In no comment; so one that holds what follows begins behind it."""
    while (brace := source.find(_OPENS, at)) >= 0:
        line = source.rfind(b"\n", at, max(brace - 1, at)) + 1
        head = _HEAD.search(source, line or at, brace)
        if head is None:
            at = brace + 1
            continue
        if (comment := _comment_around(source, max(kept, looked_at), head.start())) is not None:
            at = comment
            continue
        looked_at = head.start()
        if end <= brace and (end := source.find(_CLOSES, brace)) < 0:
            break
        at = end + len(_CLOSES)
        if head["break"] == b"" and _is_in_body(source, kept, head.start()):
            continue
        start = brace + 1
        # `};` ends a list of values, or a type; not a function.
        is_ended = source[at : at + 1] in (b";" if head["value"] else b"\n\r")
        if end - start > 1 and is_ended and _is_conditioned_whole(source, start, end):
            parts += source[kept:start], b" " * (end - start)
            kept = end
    return b"".join((*parts, source[kept:])) if parts else source


def _is_in_body(source: bytes, start: int, offset: int) -> bool:
    """Whether a brace behind an offset begins a block in a body that was not left out. Else it is a function's: then
    nothing but its head lies between the last line at the margin behind `start`, and the brace."""
    line = source.rfind(b"\n", start, offset) + 1
    while line > start and not _AT_MARGIN.match(source, line):
        line = source.rfind(b"\n", start, line - 1) + 1
    head = source[line:offset]
    return any(mark in head for mark in (b";", b"{", b"}")) or _LABEL.match(head) is not None


def blank_line(match: re.Match[bytes]) -> bytes:
    """Blanks in place of what follows a line break."""
    return b"\n".ljust(match.end() - match.start())


def _is_conditioned_whole(source: bytes, start: int, end: int) -> bool:
    """Whether each condition of the preprocessor that begins or goes on in a body also does the other in it."""
    if source.find(b"#", start, end) < 0:
        return True
    depth = 0
    for match in _CONDITION.finditer(source, start, end):
        depth += bool(match["begins"])
        if not depth:
            return False
        depth -= bool(match["ends"])
    return depth == 0


def _comment_around(source: bytes, start: int, offset: int) -> int | None:
    """Where the comment ends that began behind `start` and holds an offset."""
    begin = source.rfind(b"/*", start, offset)
    end = source.find(b"*/", begin + 2) if begin >= 0 else -1
    return end + 2 if end >= offset else None
