"""Texts without what their outline does not need: the bodies of functions and lists of values, where the layout alone
tells where they are, and lines that define macros.

Two thirds of the time that C takes to parse are spent in bodies, which define nothing that an outline tells; a third of
the Linux kernel's text is `#define`. Runs in the worker's process, like `outline`; offsets stay as they are.
"""

import re

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

_MACROS = re.compile(rb"\n%b(?:\n%b)*+" % (_DEFINE_LINE, _DEFINE_LINE), re.MULTILINE)
"""Each with the line break before it: a search for a byte is ten times as fast as one for the beginning of a line."""


def is_too_long(skim: bytes) -> bool:
    """Whether what is left of a text is too long to be parsed."""
    return len(skim) > PARSED_BYTES and len(skim) - skim.count(b" ") - skim.count(b"\n") > PARSED_BYTES


def skimmed(identifier: str, source: bytes) -> bytes:
    """A text (in the language of an LSP identifier) with blanks in place of macros, and of bodies of functions."""
    if identifier not in SKIMMED:
        return source
    source = _MACROS.sub(blank_line, source)
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
