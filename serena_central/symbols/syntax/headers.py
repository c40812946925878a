"""Decides whether a header is C or C++, which share a suffix, by the words of its text.

The grammar of C++ loses functions of C whose names or types are words of C++, knows nothing of C's attributes, and
takes a third longer. A text counts as C++ if anything in it can't be C. Pure.
"""

import re

SUFFIX = ".h"

_WORDS = tuple(b"constexpr decltype dynamic_cast noexcept nullptr reinterpret_cast static_assert( static_cast".split())
"""None of them is a word of C, nor of comments."""

_SIGNS = {
    b"&": re.compile(rb"const[ \t]+[\w:<>]+[ \t]*&[ \t]*\w*[ \t]*[,);={(]"),
    b"::": re.compile(rb"[\w>]::~?\w"),
    b"class": re.compile(rb"\n[ \t]*(?:enum[ \t]+)?class[ \t]+\w"),
    b"const": re.compile(rb"\)[ \t]*const[ \t]*[;{]"),
    b"final": re.compile(rb"\n[ \t]*struct[ \t]+\w+[ \t]+final[ \t\n]*[:{]"),
    b"include": re.compile(rb"#[ \t]*include[ \t]*<\w+>"),
    b"namespace": re.compile(rb"\n[ \t]*(?:inline[ \t]+)?namespace\b[ \t]*[\w{]"),
    b"operator": re.compile(rb"\boperator[ \t]*[^\w\s;,.]{1,2}[ \t]*\("),
    b"override": re.compile(rb"\)[ \t]*(?:const[ \t]+)?override\b"),
    b"private": re.compile(rb"\n[ \t]*private[ \t]*:"),
    b"public": re.compile(rb"\n[ \t]*public[ \t]*:"),
    b"struct": re.compile(
        rb"\n[ \t]*struct[ \t]+(\w+)[ \t\n]*"
        rb"(?::[ \t\n]*[\w:]+[^;{}()]{0,300}\{"  # a base
        rb"|\{(?:[^{}]*[;\n])?[ \t]*(?:explicit[ \t]+)?\1[ \t]*\("  # a constructor
        rb"|\{(?:[^{}]*;)?\s*static[ \t]+\w"  # a static member
        rb"|\{(?:[^{}]*;)?\s*\w[\w \t&*:<>]*\([^(){};]*\)\s*\{)"  # one with a body
    ),
    b"template": re.compile(rb"\n[ \t]*template[ \t]*<"),
    b"using": re.compile(rb"\n[ \t]*using[ \t]+[\w:]+[^\n]*;"),
    b"virtual": re.compile(rb"\n[ \t]*virtual[ \t]+[^\n;]*\("),
    b"~": re.compile(rb"\n[ \t]*~\w+[ \t]*\([ \t]*\)"),
}
"""What most texts lack → what it is in C++. An expression is a hundred times as slow as a look for a word, and slower
still where it does not begin with a letter or a line break."""

_LOOKED_AT_BYTES = 100_000
"""Headers that are longer define registers: hundreds of megabytes in the Linux kernel."""


def identifier_of_header(source: bytes) -> str:
    """LSP's identifier of a header's language, `c` or `cpp`, by its text."""
    beginning = b"\n" + source[:_LOOKED_AT_BYTES]
    if any(word in beginning for word in _WORDS):
        return "cpp"
    return "cpp" if any(word in beginning and sign.search(beginning) for word, sign in _SIGNS.items()) else "c"
