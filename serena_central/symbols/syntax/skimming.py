"""Texts without what their outline does not need: the bodies of functions, where the layout alone tells where they are,
and lines that define macros.

Two thirds of the time that C takes to parse are spent in bodies, which define nothing that an outline tells; a third of
the Linux kernel's text is `#define`. Runs in the worker's process, like `outline`; offsets stay as they are.
"""

import re

_BODY = re.compile(rb"\)[ \t]*(?:[\w \t]*)\n\{(?=\n)(.*?)\n\}", re.DOTALL)
"""In C: a brace alone on its line after a parameter list, up to the first brace that begins a line. Where somebody
writes otherwise nothing is left out."""

_DEFINES = re.compile(rb"\b(?:struct|union|enum)\b[^;,()=*]*\{")
"""A type in a body is told."""

_DEFINE_LINE = rb"[ \t]*\#[ \t]*define\b(?:[^\n\\/]++|/(?!\*)|/\*(?:[^*\n\\]++|\*(?!/))*+\*/)*+$"
"""A macro on one line: neither it nor a comment in it goes on in the next one."""

_MACROS = re.compile(rb"^%b(?:\n%b)*+" % (_DEFINE_LINE, _DEFINE_LINE), re.MULTILINE)

_SKIMMED = {"c": _BODY}


def skimmed(identifier: str, source: bytes) -> bytes:
    """A text (in the language of an LSP identifier) with blanks in place of macros, and of bodies in which nothing is
    defined."""
    body = _SKIMMED.get(identifier)
    if body is None:
        return source
    source = _MACROS.sub(_blank, source)
    parts: list[bytes] = []
    kept = 0
    for match in body.finditer(source):
        start, end = match.span(1)
        # `};` ends a type or a list of values, not a function.
        if end - start > 1 and source[end + 2 : end + 3] in b"\n\r" and not _DEFINES.search(source, start, end):
            parts += source[kept:start], b" " * (end - start)
            kept = end
    return b"".join((*parts, source[kept:])) if parts else source


def _blank(match: re.Match[bytes]) -> bytes:
    return b" " * (match.end() - match.start())
