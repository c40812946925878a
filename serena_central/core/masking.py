"""Masks what looks like a secret in texts that are kept or sent on: arguments of calls, answers, errors.

By names (`password=…`, `"api_key": "…"`), by the known forms of tokens, and by the files that hold secrets. It knows no
call and no page. What has no such name or form is not recognized.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

MASK = "••••••"

_LONG_NAMES = (
    r"password|passwd|passphrase|passcode|secrets?|api[_-]?keys?|access[_-]?keys?|private[_-]?keys?|authorization"
    r"|credentials?|connection[_-]?string"
)
_SHORT_NAMES = r"pass|pwd|tokens?|auth|cookie|dsn"
"""Names that also end other words; a letter before one makes it another."""

_SECRET_NAME = re.compile(
    rf"(?:{_LONG_NAMES}|(?:^|[^a-z])(?:{_SHORT_NAMES})|[a-z](?-i:Token|Pass|Pwd|Auth|Cookie))$", re.IGNORECASE
)

_ASSIGNED = re.compile(
    rf"""(?P<head>(?:{_LONG_NAMES}|(?<![a-z])(?:{_SHORT_NAMES}))\\?["']?\s{{0,4}}(?::=|[:=])\s{{0,4}})
    (?P<quote>\\?["'`])?(?P<value>(?:(?:bearer|basic)\s+)?[^\s"'`,;&\\)\]}}]{{4,}})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A value behind a name that says what it is. Code that names no literal (`token = parse(text)`) stays readable."""

_NAME_HINTS = ("pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "dsn", "connection")
_FORM_HINTS = (
    "PRIVATE KEY", "AKIA", "ASIA", "gh", "glpat", "sk-", "k_live_", "k_test_", "xox", "AIza", "npm", "pypi", "hf",
    "eyJ", "://", "earer ",
)  # fmt: skip
"""A text without any of these needs no pattern; nearly all have none."""

_NO_LITERAL = re.compile(
    r"[A-Za-z_][\w.]*(?:[(\[]|\.\w)|(?:None|null|true|false|nil|str|string|int|bytes|bool|Optional|self)\b|\d{1,6}$"
    r"|(?i:(?:bearer|basic)\s+)?\$\{[A-Za-z_]\w*$"
)
"""Code and counts: a call, a member, the name of a type, a reference to a variable."""

_KNOWN = re.compile(
    r"""
    -----BEGIN[ A-Z0-9]*PRIVATE[ ]KEY-----(?:.{0,8000}?-----END[ A-Z0-9]*PRIVATE[ ]KEY-----|.{0,8000}$)
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_\-]{16,}
    | \bsk-[A-Za-z0-9_\-]{16,}
    | \b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}
    | \bxox[abeoprs]-[A-Za-z0-9\-]{10,}
    | \bAIza[A-Za-z0-9_\-]{30,}
    | \b(?:npm|pypi|hf)[_-][A-Za-z0-9_\-]{24,}
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*
    | (?<=://)[^\s/@:"']{0,200}:[^\s/@"']{1,200}(?=@)
    | (?<=[Bb]earer[ ])[A-Za-z0-9._~+/\-]{12,}=*
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens whose form tells what they are, passwords in URLs, private keys."""

_SECRET_FILE = re.compile(
    r"(?:^|[/\\])(?:\.env(?:\.[\w.\-]+)?|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|credentials(?:\.\w+)?|secrets?\.(?:ya?ml|json|toml|env|ini|txt)|[^/\\]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx))$",
    re.IGNORECASE,
)

LONGEST_DEFAULT = 16
"""Characters of what stands for a variable that is not set (`${TOKEN:-none}`): a word, no token. Passwords in addresses
are masked by their form."""

_REFERENCE = re.compile(r"(?P<head>\$\{\w+)(?::-(?P<default>[^}]*))?\}")

_SCHEME = re.compile(r"\s*(?:(?:bearer|basic|token)\s+)?", re.IGNORECASE)
"""What may stand before a secret in a header."""

_IN_REFERENCE = re.compile(r"\$\{\w*$")

_DEPTH = 6


def masked(text: str) -> str:
    """The text with a mask in place of each secret that is recognized."""
    if not text:
        return text
    if any(hint in text for hint in _FORM_HINTS):
        text = _KNOWN.sub(MASK, text)
    lower = text.lower()
    return _ASSIGNED.sub(_masked_value, text) if any(hint in lower for hint in _NAME_HINTS) else text


def masked_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, masked; so is the one behind an option that is named like a secret."""
    return [
        masked_secret(one) if is_secret_value(before, one) else masked(one) for before, one in pairwise(["", *words])
    ]


def masked_secret(text: str) -> str:
    """A text that is a secret by its place. References to variables are none; their defaults may be."""
    found = list(_REFERENCE.finditer(text))
    around = _REFERENCE.split(text)[:: _REFERENCE.groups + 1]
    if not found or not all(map(_SCHEME.fullmatch, around)):
        return MASK
    return _REFERENCE.sub(_without_default, text)


def _without_default(reference: re.Match[str]) -> str:
    default = reference["default"]
    if default is None or len(default) <= LONGEST_DEFAULT or "://" in default:
        return masked(reference[0])
    return f"{reference['head']}:-{MASK}}}"


def is_secret_value(before: str, word: str) -> bool:
    """Whether a word of a command line is the value of the option before it, which is named like a secret."""
    return is_secret_name(before) and "=" not in before and not word.startswith("-")


def masked_value(value: Any, *, depth: int = 0) -> Any:
    """Plain data with every text in it masked, and what is kept under a secret's name masked as a whole."""
    match value:
        case str():
            return masked(value)
        case Mapping() if depth < _DEPTH:
            members = cast("Mapping[str, Any]", value)
            return {name: _masked_member(name, part, depth + 1) for name, part in members.items()}
        case list() | tuple() if depth < _DEPTH:
            return [masked_value(part, depth=depth + 1) for part in cast("Sequence[Any]", value)]
        case int() | float() | None:
            return value
        case _:
            return masked(str(value))


def _masked_member(name: str, value: Any, depth: int) -> Any:
    if is_secret_name(name) and value not in (None, "", True, False):
        return MASK
    return masked_value(value, depth=depth)


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is a secret as a rule."""
    return _SECRET_NAME.search(name) is not None


def is_secret_file(path: str) -> bool:
    """Whether a file of this name holds secrets as a rule, in whatever form."""
    return _SECRET_FILE.search(path) is not None


def _masked_value(found: re.Match[str]) -> str:
    value, quote = found["value"], found["quote"] or ""
    if not quote and _NO_LITERAL.match(value):
        return found[0]
    before = found.string[max(found.start() - 100, 0) : found.start()]
    is_default = value.startswith("-") and _IN_REFERENCE.search(before) is not None
    if is_default and (len(value) <= LONGEST_DEFAULT or "://" in value):
        return found["head"] + _ASSIGNED.sub(_masked_value, value)
    return found["head"] + quote + MASK
