"""Texts of C and C++ without the macros that stand in declarations as if they were words of the language.

`ZEXTERN int ZEXPORT inflate(…)`, `class EXPORT Slice {`, `Status Run() LOCKS_EXCLUDED(mu_);`: no grammar knows that
these are macros, and what follows them is misread or lost. They are left out by their looks, only where a text can't be
parsed without errors, and only if it has fewer then. Runs in the worker's process, like `outline`; offsets stay.
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from serena_central.symbols.syntax.trees import errors_in, parsed

LANGUAGES = frozenset({"c", "cpp", "cuda-cpp"})

_MACRO = re.compile(rb"[A-Z_][A-Z0-9_]{2,}")

_LINES = re.compile(rb"(?m)^(?![ \t]*#).*?\b[A-Z_][A-Z0-9_]{2,}\b.*$")
"""With something that looks like a macro, but for directives."""

_WORDS = re.compile(rb"(?P<words>\b[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*)+)[ \t]*(?P<behind>[*&]|::|<|)")
"""Words in a row; a star behind them says that none is the name, and `::` or `<` that the last may be of a type."""

_TAGGED = re.compile(
    rb"\b(?:class|struct|union|enum(?:[ \t]+class)?)[ \t]+(?P<macro>[A-Z_][A-Z0-9_]{2,}(?:\([^()\n]*\))?)"
    rb"\s+\w+\s*(?:final\s*)?[:{](?!:)"
)
"""`class EXPORT Slice {`"""

_ANNOTATION = re.compile(
    rb"(?<=[\w)\]])(?P<blank>\s+)(?P<macro>[A-Z_][A-Z0-9_]{2,}[ \t]*\((?:[^()\n]|\([^()\n]*\))*\))"
    rb"(?=\s*(?:[;{=]|:(?!:)|[A-Z_][A-Z0-9_]{2,}\())"
)
"""`… LOCKED(mu_);`, after a parameter list or a name"""

_ANNOTATED = re.compile(
    rb"[)\]](?:\s*(?:const|final|noexcept|override))*\Z"
    rb"|[A-Za-z_][\w:<>, ]*[\w>*&][ \t]+[*&]*[ \t]*\w*[a-z]\w*\Z"
)
"""Parameters, or a type and a name, which end where an annotation begins."""

_ANNOTATED_BYTES = 200
"""Maximum length, because each macro of a long line is examined."""

_NEAR_BYTES = 100
"""What causes an error stands in it, or in a line so near."""

_BLANKS = 20
"""So many of them may stand between a star and a word."""

_KEYWORDS = frozenset(
    b"const constexpr enum extern explicit friend inline mutable register restrict static struct typedef typename "
    b"union virtual volatile class".split()
)
_TAGS = frozenset({b"class", b"enum", b"struct", b"union"})

_LEADING = b"const"
"""Stands for a macro before a declaration, so that the declaration begins where it did."""


def without_macros(identifier: str, source: bytes, root: Node) -> Node:
    """The tree of a text without its macros if that has fewer errors than `root`, the text's own."""
    if identifier not in LANGUAGES or not root.has_error:
        return root
    text = bytearray(source)
    for stretch in _around(errors_in(root), source):
        for start, end, leads in _macros(source, *stretch):
            word = _LEADING if leads and end - start >= len(_LEADING) else b""
            text[start:end] = word.ljust(end - start)
    if bytes(text) == source:
        return root
    other = parsed(identifier, bytes(text)).root_node
    return other if len(errors_in(other)) < len(errors_in(root)) else root


def _around(errors: list[Node], source: bytes) -> Iterator[tuple[int, int]]:
    """Stretches of whole lines that hold what may have caused these errors, in order."""
    begin = end = -1
    for start, stop in sorted(node.byte_range for node in errors):
        line = source.rfind(b"\n", 0, max(start - _NEAR_BYTES, 0)) + 1
        if line > end:
            if end > begin:
                yield begin, end
            begin = line
        behind = source.find(b"\n", stop + _NEAR_BYTES)
        end = max(end, len(source) if behind < 0 else behind)
    if end > begin:
        yield begin, end


def _macros(source: bytes, first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """Where macros in a stretch begin and end, and whether a declaration begins with them."""
    for match in _TAGGED.finditer(source, first, last):
        yield *match.span("macro"), False
    for match in _ANNOTATION.finditer(source, first, last):
        start = match.start("blank")
        if _ANNOTATED.search(source[max(source.rfind(b"\n", 0, start), start - _ANNOTATED_BYTES) + 1 : start]):
            yield *match.span("macro"), False
    for line in _LINES.finditer(source, first, last):
        for match in _WORDS.finditer(source, *line.span()):
            yield from _in_words(match)


def _in_words(match: re.Match[bytes]) -> Iterator[tuple[int, int, bool]]:
    """Of words in a row the last one is the name, unless a star follows. Of the others one is the type: the last one
    that is no keyword and does not look like a macro."""
    start = match.start()
    words = [(word[0], start + word.start(), start + word.end()) for word in re.finditer(rb"\w+", match["words"])]
    if match["behind"] not in (b"*", b"&"):
        words.pop()
    tagged = {at + 1 for at, (word, _, _) in enumerate(words) if word in _TAGS}
    free = [at for at, (word, _, _) in enumerate(words) if word not in _KEYWORDS and at not in tagged]
    macros = {at for at in free if _MACRO.fullmatch(words[at][0])}
    if not macros:
        return
    is_behind_type = match.string[max(start - _BLANKS, 0) : start].rstrip(b" \t")[-1:] in (b"*", b"&", b"}")
    has_type = is_behind_type or bool(tagged) or match["behind"] in (b"::", b"<")
    kept = next((at for at in reversed(free) if at not in macros), None if has_type else free[0])
    for at in free:
        if at != kept:
            _, first, last = words[at]
            yield first, last, at == 0 and not is_behind_type
