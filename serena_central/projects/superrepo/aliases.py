"""Other names of a declared symbol: those under which its project exports it, and those that an import binds it to.

Reads text alone and knows no scopes: what is found are candidates, of which a language server says what they mean.
"""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

DEFAULT = "default"
"""What an ECMAScript module calls its default export."""

_IMPORT = re.compile(
    r"\b(?:import|export)\s+(?:type\s+)?(?P<bound>[^;\"'()]*?)\s*\bfrom\s*[\"'](?P<module>[^\"'\n]+)[\"']"
)
_BOUND_TO_DEFAULT = re.compile(r"^(?P<name>[\w$]+)|\bdefault\s+as\s+(?P<other>[\w$]+)")

_BLANKS = 500
"""Characters in which something else stands before a name."""


class Aliases(NamedTuple):
    """`plain` are words that may mean the symbol wherever they stand; `default`: it is a module's default export."""

    plain: frozenset[str]
    default: bool


def exported(name: str, texts: Iterable[str]) -> Aliases:
    """By which names the texts of a project hand on a symbol of it."""
    plain = {name}
    default = name == DEFAULT
    word = re.escape(name)
    # Each begins with a literal: a text is looked through thirty times as quickly (`whole_word`).
    by_default = (
        re.compile(
            rf"export(?<!\wexport)\s+default\s+(?:(?:async|abstract|function\b\s*\*?|class)\s*)*\b{word}(?![\w$])"
        ),
        re.compile(rf"{word}(?<![\w$]{word})\s+as\s+default(?![\w$])"),
    )
    for text in texts:
        default = default or any(one.search(text) for one in by_default)
        plain |= _renamed(text, [name])
    return Aliases(frozenset(plain - {DEFAULT}), default)


def bound(text: str, names: Aliases, modules: Collection[str]) -> frozenset[str]:
    """By which words a file may mean the symbol; `modules` are names of the package that declares it."""
    words = names.plain | _renamed(text, names.plain)
    if names.default:
        mentioned = re.compile("|".join(rf"(?<![\w$]){re.escape(one)}(?![\w$])" for one in modules) or r"(?!)")
        for statement in _IMPORT.finditer(text):
            if mentioned.search(statement["module"]):
                for binding in _BOUND_TO_DEFAULT.finditer(statement["bound"]):
                    words |= {binding["name"] or binding["other"]}
    return frozenset(words - {DEFAULT})


def pattern(words: Collection[str], names: Aliases) -> re.Pattern[str]:
    """Finds the words in a file; `default` only where it stands for a member of a module."""
    alternatives = "|".join(map(re.escape, sorted(words)))
    member = r"|(?<=\.)default(?![\w$])|(?<![\w$])default(?=\s+as\b)" if names.default else ""
    return re.compile(rf"(?<![\w$])(?:{alternatives})(?![\w$]){member}")


def _renamed(text: str, names: Iterable[str]) -> set[str]:
    """Words that `name as word` binds, in any language that says it so, or `name: word` of a destructured module."""
    found: set[str] = set()
    for name in names:
        word = re.escape(name)
        found.update(re.findall(rf"{word}(?<![\w$]{word})\s+as\s+([\w$]+)", text))
        if "require(" in text or "import(" in text:
            bound_to = re.compile(rf"{word}(?<![\w$]{word})\s*:\s*([\w$]+)(?=[^}}]*}}\s*=)")
            in_braces = (one for one in bound_to.finditer(text) if _before(text, one.start()) in ("{", ","))
            found.update(one[1] for one in in_braces)
    return found


def _before(text: str, start: int) -> str:
    """The last character before a place that is no blank."""
    return text[max(start - _BLANKS, 0) : start].rstrip()[-1:]
