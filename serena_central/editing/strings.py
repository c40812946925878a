"""Finds the lines of code that lie inside a multi-line string and must not be indented. Pure.

A table of token patterns per language: comments and short strings are in it only so that a quote inside them opens
nothing. What is never closed reaches to the end, so that no text takes long. A language that is not in the table has no
such strings as far as this module knows.
"""

import re

_PYTHON = r"""
    (?P<long> [rRbBuUfFtT]{0,2} (?: \"{3} (?:[^\\]|\\.)*? (?:\"{3}|\\?\Z) | '{3} (?:[^\\]|\\.)*? (?:'{3}|\\?\Z) ) )
  | \#[^\r\n]* | "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'
"""
_C_COMMENTS = r"//[^\r\n]* | /\*.*?(?:\*/|\Z)"
_SHORT = r""""(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'"""
_JAVASCRIPT = rf"(?P<long> `(?:\\.|[^`\\])*(?:`|\\?\Z) ) | {_C_COMMENTS} | {_SHORT}"
_GO = rf"(?P<long> `[^`]*(?:`|\Z) ) | {_C_COMMENTS} | {_SHORT}"
_TEXT_BLOCKS = rf'(?P<long> "{{3}} (?:[^\\]|\\.)*? (?:"{{3}}|\\?\Z) ) | {_C_COMMENTS} | {_SHORT}'
_RUST = rf"""
    (?P<long> \br(?P<fence>\#*)" .*? (?:"(?P=fence)|\Z) | "(?:\\.|[^"\\])*(?:"|\\?\Z) )
  | {_C_COMMENTS} | '(?:\\.|[^'\\\r\n])'
"""
_CPP = rf'(?P<long> R"(?P<fence>[^()\\\s]{{0,16}})\( .*? (?:\)(?P=fence)"|\Z) ) | {_C_COMMENTS} | {_SHORT}'

_TOKENS: dict[str, re.Pattern[str]] = {
    language: re.compile(pattern, re.VERBOSE | re.DOTALL)
    for languages, pattern in (
        (("python",), _PYTHON),
        (("typescript", "javascript", "vue", "svelte"), _JAVASCRIPT),
        (("go",), _GO),
        (("java", "kotlin", "scala", "swift", "csharp", "groovy"), _TEXT_BLOCKS),
        (("rust",), _RUST),
        (("cpp", "c"), _CPP),
    )
    for language in languages
}


def lines_inside_strings(code: str, language: str | None) -> set[int]:
    """0-based lines that begin inside a string."""
    tokens = _TOKENS.get(language or "")
    inside: set[int] = set()
    if tokens is None:
        return inside
    line0 = reached = 0
    for match in tokens.finditer(code):
        if match["long"]:
            line0 += code.count("\n", reached, match.start())
            reached = match.start()
            inside.update(range(line0 + 1, line0 + match[0].count("\n") + 1))
    return inside
