"""LSP's glob patterns (LSP 3.17, "Pattern"): `*`, `?`, `**`, `{a,b}`, `[a-z]`, `[!a-z]`, over POSIX paths."""

import re
from functools import lru_cache

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\{|\}|,|\[!?[^\]/]+\]|[^*?{},\[]+|\[")
_FIXED = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """What a whole path must match. A pattern that makes no sense matches itself alone."""
    depth = 0
    parts: list[str] = []
    for piece in _TOKEN.findall(pattern):
        if piece in _FIXED:
            parts.append(_FIXED[piece])
        elif piece == "{":
            depth += 1
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
    try:
        return re.compile("".join(parts))
    except re.error:
        return re.compile(re.escape(pattern))


def matches(pattern: str, path: str) -> bool:
    return compiled(pattern).fullmatch(path) is not None
