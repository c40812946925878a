"""Globs over POSIX paths as git's wildmatch understands them, translated to regular expressions that stay linear.

| written | means |
|---|---|
| `?`, `*`, `[a-z]`, `[!a-z]`, `[[:digit:]]` | within one part of a path; never a `/` |
| `**` as a whole part | any number of parts |
| `\\x` | the character x |

Which file a glob is applied to, and what follows from a match, is decided by `ignore` and `search`.
"""

import re

_NAMED_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}

_MOST_ALTERNATIVES = 1000
"""Bound for `expand_braces`: `{a,b}{a,b}…` doubles with every pair."""

_ANY_PARTS = "(?:[^/]*/)*"
"""What `**` stands for before another part."""


class BadGlob(ValueError):
    """A glob that can match nothing: an unterminated class or a lone backslash at its end."""


def translate_path(glob: str) -> str:
    """The regular expression (to be anchored by the caller) for a glob over a whole relative path.

    What stands between two `**` is matched atomically at its first chance, as between the stars of a part.

    Raises:
        BadGlob: the glob can match nothing.
    """
    groups: list[list[str]] = [[]]
    for part in glob.split("/"):
        if len(part) >= 2 and not part.strip("*"):
            groups.append([])
        else:
            groups[-1].append(translate_part(part))
    first, *others = groups
    if not others:
        return "/".join(first)
    *middle, last = others
    start = "".join(f"{part}/" for part in first)
    between = "".join(f"(?>{_ANY_PARTS}?{''.join(f'{part}/' for part in some)})" for some in middle if some)
    return f"{start}{between}{_ANY_PARTS}{'/'.join(last)}" if last else f"{start}{between}.*"


def translate_part(glob: str) -> str:
    """The same for one part of a path (no `/` in it).

    What stands between two stars is matched atomically at its first chance: a later one could not help the rest, and so
    the number of stars does not multiply the time.
    """
    pieces: list[str] = [""]
    position = 0
    while position < len(glob):
        char = glob[position]
        if char == "*":
            pieces.append("")
            position += 1
            continue
        text, position = _one(glob, position)
        pieces[-1] += text
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def expand_braces(glob: str) -> list[str]:
    """`a.{b,c}` → `a.b`, `a.c`; nested ones too. A brace without its partner stands for itself."""
    expanded: list[str] = []
    pending = [glob]
    while pending and len(expanded) + len(pending) <= _MOST_ALTERNATIVES:
        current = pending.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)  # an innermost pair
        if found is None:
            expanded.append(current)
        else:
            head, tail = current[: found.start()], current[found.end() :]
            pending.extend(head + choice + tail for choice in reversed(found[1].split(",")))
    return expanded + pending


def _one(glob: str, position: int) -> tuple[str, int]:
    """What matches exactly one character, and where it ends in the glob."""
    char = glob[position]
    if char == "?":
        return "[^/]", position + 1
    if char == "[":
        return _character_class(glob, position + 1)
    if char == "\\":
        if position + 1 == len(glob):
            raise BadGlob(glob)
        return re.escape(glob[position + 1]), position + 2
    return re.escape(char), position + 1


def _character_class(glob: str, position: int) -> tuple[str, int]:
    """A class from behind its `[`; `]` as its first member stands for itself."""
    negated = glob[position : position + 1] in ("!", "^")
    position += negated
    members: list[str] = []
    while not (members and glob[position : position + 1] == "]"):
        member, position = _named_class(glob, position) or _range(glob, position)
        members.append(member)
    body = "".join(members)
    return (f"[^/{body}]" if negated else f"(?!/)[{body}]"), position + 1


def _named_class(glob: str, position: int) -> tuple[str, int] | None:
    """`[:digit:]` and its like, None for anything else."""
    end = glob.find("]", position + 2)
    if not glob.startswith("[:", position) or end <= position + 2 or glob[end - 1] != ":":
        return None
    known = _NAMED_CLASSES.get(glob[position + 2 : end - 1])
    if known is None:
        raise BadGlob(glob)
    return known, end + 1


def _range(glob: str, position: int) -> tuple[str, int]:
    """One character of a class, or a range `a-z`; of an inverted range git keeps the first character."""
    low, position = _member(glob, position)
    if glob[position : position + 1] != "-" or glob[position + 1 : position + 2] in ("]", ""):
        return re.escape(low), position
    high, position = _member(glob, position + 1)
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)), position


def _member(glob: str, position: int) -> tuple[str, int]:
    if glob[position : position + 1] == "\\":
        position += 1
    if position >= len(glob):
        raise BadGlob(glob)
    return glob[position], position + 1
