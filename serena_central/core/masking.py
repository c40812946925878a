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
    r"password|passwd|passphrase|passcode|secrets?|authorization|credentials?|connection[_-]?string"
    r"|api[ _-]?keys?|(?:access|private|secret|signing|encryption|account|subscription|master|license)[_-]?keys?"
)
_SHORT_NAMES = r"pass|pwd|tokens?|auth|cookie|dsn|jwt|otp|bearer"
"""Names that also end other words; a letter before one makes it another."""

_IN_CAMEL_CASE = r"(?-i:(?<=[a-z])(?:Token|Pass|Pwd|Auth|Cookie))"

_OF_VARIABLES = r"(?-i:(?:KEY|PAT|PIN|HEADERS))"
"""What ends the names of environment variables that hold secrets; in small letters these words name other things."""

_SECRET_NAME = re.compile(
    rf"(?:{_LONG_NAMES}|(?:^|[^a-z])(?:{_SHORT_NAMES})|{_IN_CAMEL_CASE}"
    rf"|(?:^|_){_OF_VARIABLES}|[a-z]-key)$",
    re.IGNORECASE,
)

_MOST_DEFAULT = 500
"""Characters of a default that are looked at for its end: where none comes, every `${` begins such a search."""

_VALUE = rf"""(?:(?P<quote>\\?["'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\\\n])){{4,500}})(?=(?P=quote))
    |(?P<open>\\?["'`])?(?P<value>(?:(?:bearer|basic|token|apikey|bot)[ ]+)?
        (?=\$\{{|[^\s"'`,;&\\)\]}}]{{4}})(?:\$\{{\w+(?::-[^}}\s]{{0,{_MOST_DEFAULT}}})?\}}|[^\s"'`,;&\\)\]}}])+))"""
"""All that stands between two quotes, else a word; with the scheme before it in a header."""

_ASSIGNED = re.compile(
    rf"""(?P<head>(?:{_LONG_NAMES}|(?<![a-z])(?:{_SHORT_NAMES})|{_IN_CAMEL_CASE})\\?["']?\s{{0,4}}(?::=|[:=])\s{{0,4}}
    |(?<![A-Za-z0-9]){_OF_VARIABLES}=)
    {_VALUE}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A value behind a name that says what it is. Code that names no literal (`token = parse(text)`) stays readable."""

_OPTION = re.compile(
    rf"""(?P<head>(?<![\w-])--?[\w.-]{{0,40}}?
    (?:{_LONG_NAMES}|(?<![a-z])(?:{_SHORT_NAMES})|{_IN_CAMEL_CASE})(?:\s{{1,4}}|\\?["'],\s?))
    (?![-<\[]){_VALUE}""",
    re.IGNORECASE | re.VERBOSE,
)
"""The word behind an option of a command line that is named like a secret."""

_LOGIN = re.compile(
    r"""(?P<head>(?<![\w-])(?:-[uU]|--user|--proxy-user)(?:=|\s{1,4})["']?[^\s:"'/]{1,100}:)
    (?![/\d]*(?:[\s"']|$))(?!/)(?P<value>[^\s"']{1,200})""",
    re.VERBOSE,
)
"""`curl -u me:password`; a user and a group by numbers are none."""

_QUERY = re.compile(
    r"(?P<head>[?&#](?:[\w.-]{0,40}[_.-])?(?:key|sig|signature|code|jwt|sid|session)=)(?P<value>[^\s\"'`&#\\)\]}]{4,})",
    re.IGNORECASE,
)
"""What gives access in a URL, beside the names above."""

_NAME_HINTS = (
    "pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "dsn", "connection", "jwt", "otp",
    "bearer",
)  # fmt: skip
_VARIABLE_HINTS = ("PAT=", "PIN=", "HEADERS=")
_FORM_HINTS = (
    "PRIVATE KEY", "AKIA", "ASIA", "gh", "glpat", "sk-", "k_live_", "k_test_", "xox", "AIza", "npm", "pypi", "hf",
    "eyJ", "://", "earer ",
)  # fmt: skip
_LOGIN_HINTS = ("-u", "-U", "-user")
_LOGIN_OPTIONS = ("-u", "-U", "--user", "--proxy-user")
_QUERY_HINTS = ("?", "&", "#")
"""A text without any of these needs no pattern; nearly all have none."""

_REFERENCE_ONLY = (
    r"(?i:(?:bearer|basic|token)\s+)?"
    rf"(?:\$(?:[A-Z_][A-Z0-9_]*$|\(|\{{[^}}]{{0,{_MOST_DEFAULT}}}$)|%[A-Z_][A-Z0-9_]*%$|<\w+>$)"
)
"""A shell's reference to a variable, or to what a command prints; `<token>` stands for one."""

_NO_LITERAL = re.compile(
    r"[A-Za-z_][\w.]*(?:[(\[]|\.\w)|(?:None|null|true|false|nil|str|string|int|bytes|bool|Optional|self)\b|\d{1,6}$"
)
"""Code and counts: a call, a member, the name of a type."""

_NO_SECRET = re.compile(rf"(?:None|null|true|false)$|{_REFERENCE_ONLY}")

_IN_COMMAND = re.compile(r"(?:(?<![\w-])--?|[?&])[\w.-]*$")
"""What stands before a name in a command line or a URL, where nothing is code: `--token=a.b`, `?token=a.b`."""

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
    | (?<=/api/webhooks/)\d+/[\w\-]{8,}
    | (?<=://)[^\s/:"']{0,200}:[^\s/"']{1,200}(?=@)
    | (?<=://)(?=[^\s/@:"']*\d)[^\s/@:"']{16,200}(?=@)
    | (?<=[Bb]earer[ ])(?:(?=[A-Za-z._~+/\-]*\d)[A-Za-z0-9._~+/\-]{8,}|[A-Za-z0-9._~+/\-]{12,})=*
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens whose form tells what they are, passwords in URLs, private keys."""

_URL = re.compile(r"(?<=://)[^\s\"'<>`]{1,2000}")

_IN_PATH = re.compile(r"(?<=/)(?=[\w-]*\d)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{20,}(?=[/?#]|$)")
"""A part of a URL's path that is no word, as webhooks and hosted MCP servers have it in place of a token."""

_SECRET_FILE = re.compile(
    r"(?:^|[/\\])(?:\.env(?:\.[\w.\-]+)?|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|credentials(?:\.\w+)?|secrets?\.(?:ya?ml|json|toml|env|ini|txt)|[^/\\]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx))$",
    re.IGNORECASE,
)

_PLAIN_HEADERS = frozenset(
    ("accept", "accept-encoding", "accept-language", "cache-control", "content-type", "host", "origin", "user-agent")
)

LONGEST_DEFAULT = 16
"""Characters of what stands for a variable that is not set (`${TOKEN:-none}`): a word, no token. Passwords in addresses
are masked by their form."""

_REFERENCE = re.compile(rf"(?P<head>\$\{{\w+)(?::-(?P<default>[^}}]{{0,{_MOST_DEFAULT}}}))?\}}")

_SCHEME = re.compile(r"\s*(?:(?:bearer|basic|token)\s+)?", re.IGNORECASE)
"""What may stand before a secret in a header."""

_IN_REFERENCE = re.compile(r"\$\{\w*$")

_PRINTED = re.compile(r"(?P<head>\b(?:echo|printf)\s{1,4})(?P<value>[^|;&\n]*[^|;&\s])")

_DEPTH = 6


def masked(text: str) -> str:
    """The text with a mask in place of each secret that is recognized."""
    if not text:
        return text
    if _holds_one(text, _FORM_HINTS):
        text = _KNOWN.sub(MASK, text)
    if "://" in text:
        text = _URL.sub(_masked_path, text)
    lower = text.lower()
    if _holds_one(lower, _NAME_HINTS) or _holds_one(text, _VARIABLE_HINTS):
        text = _ASSIGNED.sub(_masked_value, text)
        text = _OPTION.sub(_masked_option, text)
    if _holds_one(text, _LOGIN_HINTS):
        text = _LOGIN.sub(_masked_option, text)
    return _QUERY.sub(_masked_option, text) if _holds_one(text, _QUERY_HINTS) else text


def _holds_one(text: str, hints: tuple[str, ...]) -> bool:
    # Of each call's arguments and answer; `any` over a generator takes twice as long.
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def masked_output(command: str) -> str:
    """A command whose output is a secret: so is what it has literally to print."""
    return masked(_PRINTED.sub(_masked_option, command))


def masked_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, masked; so is the one behind an option that is named like a secret."""
    return [_masked_word(before, one) for before, one in pairwise(["", *words])]


def _masked_word(before: str, word: str) -> str:
    if is_secret_value(before, word):
        return masked_secret(word)
    together = masked(f"{before} {word}") if before in _LOGIN_OPTIONS else ""
    return together.removeprefix(f"{before} ") if together.startswith(f"{before} ") else masked(word)


def secrets_in(words: Iterable[str]) -> list[str]:
    """What `masked_words` leaves out of a command line or a URL, as it stands there: to find it elsewhere."""
    found: list[str] = []
    for word, shown in zip(words := list(words), masked_words(words), strict=True):
        parts = shown.split(MASK)
        pattern = "(.+?)".join(map(re.escape, parts))
        if len(parts) > 1 and (match := re.fullmatch(pattern, word, re.DOTALL)):
            found += match.groups()
    return found


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


def is_secret_header(name: str) -> bool:
    """Whether a header that somebody configured holds a secret: all do but those that say what is asked for."""
    return name.lower() not in _PLAIN_HEADERS


def is_secret_file(path: str) -> bool:
    """Whether a file of this name holds secrets as a rule, in whatever form."""
    return _SECRET_FILE.search(path) is not None


def _masked_path(found: re.Match[str]) -> str:
    return _IN_PATH.sub(MASK, found[0])


def _masked_option(found: re.Match[str]) -> str:
    parts = found.groupdict("")
    value = parts.get("quoted") or parts["value"]
    before = found["head"] + (parts.get("quote") or parts.get("open") or "")
    return found[0] if _NO_SECRET.match(value) else before + masked_secret(value)


def _masked_value(found: re.Match[str]) -> str:
    value, head, quote = found["quoted"] or found["value"], found["head"], found["quote"] or found["open"] or ""
    before = found.string[max(found.start() - 100, 0) : found.start()]
    is_default = value.startswith("-") and _IN_REFERENCE.search(before) is not None
    if is_default and (len(value) <= LONGEST_DEFAULT or "://" in value):
        return head + _ASSIGNED.sub(_masked_value, value)
    in_command = head.endswith("=") and (head[:-1].isupper() or _IN_COMMAND.search(before))
    if _NO_SECRET.match(value) or (not quote and not in_command and _NO_LITERAL.match(value)):
        return found[0]
    return head + quote + masked_secret(value)
