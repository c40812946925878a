"""Texts of C without the words that stand in declarations as attributes (`__init`, `__user`, `__aligned(8)`), and
without macros in place of declarations (`static DEFINE_PER_CPU(long, count);`).

No grammar knows them, and what follows one is misread: 40 % of the Linux kernel's files were parsed with errors, and
then a second time without what looks like a macro (macros.py). Reserved words are told from types (`__u32 x`) and names
(`struct foo __bar;`) by their place among the words in a row, before a text is parsed. Runs in the worker's process,
like `outline`; offsets stay.
"""

import re

from serena_central.symbols.syntax.skimming import blank_line

LANGUAGES = frozenset({"c"})

_RESERVED = re.compile(rb"__[a-z]")

_WORD = re.compile(rb"\w+")

_ARGUMENTS = re.compile(rb"\((?:[^()\n]|\([^()\n]*\))*\)")

_FURTHER = re.compile(rb"(?:\s*+__[a-z]\w*+(?:\((?:[^()\n]|\([^()\n]*\))*\))?+)*+")
"""Reserved words, with their arguments."""

_CALL = re.compile(
    rb"\n(?:(?:const|extern|static)\s+)*+[A-Z][A-Z0-9_]{2,}[ \t]*"
    rb"\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)(?:[ \t]*;|(?=[ \t]*+\n[\n\w/#]))"
)
"""At the margin, where a call can't stand. With a body behind it, it stands for the head of a function."""

_KNOWN = (b"asmlinkage", b"noinline", b"noinstr", b"notrace")
"""Attributes of the kernel that are not reserved words."""

_WORDS_AND_BLANKS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ \t"
_BLANKS = b" \t\r\n"

_ROW_BYTES = 200
"""Maximum of words in a row, because each reserved word of a long line is examined."""

_KEYWORDS = frozenset(
    b"auto case const else enum extern goto inline register restrict return static struct typedef union "
    b"volatile".split()
)
_TAGS = frozenset({b"enum", b"struct", b"union"})
_PRIMITIVES = frozenset(b"bool char double float int long short signed unsigned void".split())

_OF_GRAMMAR = frozenset(b"__alignof __asm __attribute __declspec __inline __restrict __thread".split())
"""Words that the grammar knows, beside those that end in `__`."""

_LEADING = b"const"
"""Stands for an attribute before a declaration, so that the declaration begins where it did."""


def without_attributes(identifier: str, source: bytes) -> bytes:
    """A text (in the language of an LSP identifier) with blanks in place of attributes."""
    if identifier not in LANGUAGES:
        return source
    source = _CALL.sub(blank_line, source)
    text: bytearray | None = None
    done = 0
    for place in _places(source):
        if place < done:
            continue
        first, row = _row_around(source, place)
        done = first + len(row)
        for start, end, leads in _attributes(source, first, row):
            text = bytearray(source) if text is None else text
            text[start:end] = (_LEADING if leads and end - start >= len(_LEADING) else b"").ljust(end - start)
            done = max(done, end)
    return source if text is None else bytes(text)


def _places(source: bytes) -> list[int]:
    """Where words may be attributes, in order."""
    found = [match.start() for match in _RESERVED.finditer(source)]
    known = [match.start() for word in _KNOWN if word in source for match in re.finditer(word, source)]
    return sorted(found + known) if known else found


def _row_around(source: bytes, place: int) -> tuple[int, bytes]:
    """The words in a row that hold an offset, and where they begin."""
    before = source[max(source.rfind(b"\n", 0, place) + 1, place - _ROW_BYTES) : place]
    behind = source[place : place + _ROW_BYTES]
    first = place - len(before) + len(before.rstrip(_WORDS_AND_BLANKS))
    return first, source[first : place + len(behind) - len(behind.lstrip(_WORDS_AND_BLANKS))]


def _attributes(source: bytes, first: int, row: bytes) -> "list[tuple[int, int, bool]]":
    """Where the attributes of a row begin and end, and whether a declaration begins with them."""
    spans = [match.span() for match in _WORD.finditer(row)]
    words = [row[start:end] for start, end in spans]
    attributes = {at for at, word in enumerate(words) if _may_be_attribute(word)}
    before = _before(source, first + spans[0][0])
    if not attributes or before == b"#":
        return []
    end = first + len(row)
    behind = source[end : end + 1]
    last = len(words) - 1
    arguments = _ARGUMENTS.match(source, end) if behind == b"(" and last in attributes else None
    if arguments is not None:
        following = source[arguments.end() : arguments.end() + _ROW_BYTES]
        further = _FURTHER.match(following)
        behind = following[further.end() if further else 0 :].lstrip(_BLANKS)[:1]
    if len(attributes) == len(words) and (before in (b")", b"]") or (before == b"}" and arguments)):
        ends = behind in (b"", b";", b"=", b"{", b",") or _goes_on_below(source[end : end + 2])
        kept = set[int]() if ends else {last}
    else:
        kept = _kept(
            words, attributes, source[end : end + 2], before in (b"*", b"}"), behind, with_arguments=bool(arguments)
        )
    found: list[tuple[int, int, bool]] = []
    for at in sorted(attributes - kept):
        start, stop = first + spans[at][0], first + spans[at][1]
        stop = arguments.end() if arguments is not None and at == last else stop
        found.append((start, stop, at == 0 and before not in (b"*", b"}", b")", b"]")))
    return found


def _before(source: bytes, offset: int) -> bytes:
    """The character before a row. In a line above only a bracket counts: a declaration goes on behind it."""
    stretch = source[max(offset - _ROW_BYTES, 0) : offset].rstrip(b" \t")
    if not stretch.endswith(b"\n"):
        return stretch[-1:]
    above = stretch.rstrip(_BLANKS)[-1:]
    return above if above in (b")", b"]") else b""


def _kept(
    words: list[bytes], attributes: set[int], following: bytes, is_typed: bool, behind: bytes, *, with_arguments: bool
) -> set[int]:
    """Which words of a row are the type or the name of what is declared, of those that look like attributes."""
    tagged = {at + 1 for at, word in enumerate(words) if word in _TAGS}
    others = [
        at
        for at, word in enumerate(words)
        if at not in attributes and at not in tagged and word not in _KEYWORDS and not _is_of_grammar(word)
    ]
    has_type = is_typed or bool(tagged)
    last, name = len(words) - 1, len(words) - 1
    if last in attributes:
        is_named = len(others) >= (1 if has_type else 2) and words[others[-1]] not in _PRIMITIVES  # by a word before it
        if with_arguments:
            is_more = behind.isalnum() or behind in (b"_", b"*")
            name = -1 if is_more or (is_named and behind in (b";", b"=", b",", b"{")) else last
        elif following[:1] == b"*" or _goes_on_below(following):
            name = -1
        elif is_named and following[:1] in (b";", b"=", b"{", b"", b"\n"):
            name = others[-1]
    elif following[:1] == b"*":
        name = -1
    kept = tagged | {name}
    if not has_type and all(at == name for at in others):
        types = attributes - {name, last} if with_arguments else attributes - {name}
        kept |= set(sorted(types)[:1])  # a type, such as `__u32`
    return kept


def _goes_on_below(following: bytes) -> bool:
    """Whether a line ends here, and a word stands at the margin of the next."""
    return following[:1] == b"\n" and (following[1:].isalpha() or following[1:] == b"_")


def _may_be_attribute(word: bytes) -> bool:
    return word in _KNOWN or (word[:2] == b"__" and word.lstrip(b"_")[:1].islower() and not _is_of_grammar(word))


def _is_of_grammar(word: bytes) -> bool:
    return word in _OF_GRAMMAR or (word[:2] == b"__" and word[-2:] == b"__")
