"""LSP's glob patterns (LSP 3.17, "Pattern"): `*`, `?`, `**`, `{a,b}`, `[a-z]`, `[!a-z]`, over POSIX paths.

They come from the catalogue, from settings and from language servers, which make them of what a project says. A regular
expression tries every way to share a path among several stars: such a glob has a deadline.
"""

import re
from functools import lru_cache

from serena_central.core.errors import ConfigError
from serena_central.core.patterns import BoundedMatcher, Matcher, OwnMatcher

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\{|\}|,|\[!?[^\]/]+\]|[^*?{},\[]+|\[")
_FIXED = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

_STARS, _BRACES = 2, 1
"""So many can be shared out in few ways; nearly all globs have no more (`**/*.{ts,tsx}`)."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Matcher:
    """What a whole path must match. A pattern that makes no sense matches itself alone."""
    depth = stars = braces = 0
    parts: list[str] = []
    for piece in _TOKEN.findall(pattern):
        stars += piece in ("**/", "**", "*")
        if piece in _FIXED:
            parts.append(_FIXED[piece])
        elif piece == "{":
            depth, braces = depth + 1, braces + 1
            parts.append("(?:")
        elif piece == "}" and depth:
            depth -= 1
            parts.append(")")
        elif piece == "," and depth:
            parts.append("|")
        elif piece.startswith("[") and piece.endswith("]"):
            inside = piece[1:-1]
            parts.append(f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]")
        else:
            parts.append(re.escape(piece))
    source = "".join(parts)
    try:
        few = stars <= _STARS and braces <= _BRACES
        return OwnMatcher(source) if few else BoundedMatcher(f"the glob {pattern!r}", source)
    except (re.error, RecursionError, OverflowError, ConfigError):
        return OwnMatcher(re.escape(pattern))


def matches(pattern: str, path: str) -> bool:
    return compiled(pattern).fullmatch(path) is not None
