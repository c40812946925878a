"""Classes that hand themselves to somebody where they are declared: in a static block, or in the value of a static
field (`static { customElements.define("x-page", this) }`). No other code names them, and they are in use. Pure.
"""

import re

from serena_central.core.text import Text
from serena_central.lsp.answers import SymbolKind
from serena_central.symbols.index import Hit

_BEGINNING = {
    "java": re.compile(r"\bstatic\s*\{"),
    "cpp": re.compile(r"\bstatic\b[^;{}()=]{0,200}="),
    **dict.fromkeys(
        ("javascript", "typescript"), re.compile(r"\bstatic\s*(?:\{|[#\w$]++\s*(?::[^=;\n]{0,200})?=(?![=>]))")
    ),
}
"""Language → how the parts of a class begin that run with it."""

_BRACKET_OR_END = re.compile(r"[()\[\]{};\n]")

LONGEST = 100_000
"""Characters of a class that are looked at."""


def hands_itself_on(hit: Hit, text: Text, language: str) -> bool:
    """Whether a class, or an object of it, is an argument of a call that runs where the class is declared."""
    begins = _BEGINNING.get(language)
    if begins is None or hit.symbol.kind not in (SymbolKind.CLASS, SymbolKind.STRUCT):
        return False
    start = text.offset(hit.symbol.range.start)
    end = min(text.offset(hit.symbol.range.end), start + LONGEST)
    name = re.escape(hit.symbol.name)
    itself = re.compile(rf"[(,<]\s*(?:this(?!\s*[.\[\w$])|{name}(?:\s*[,)>]|\.class\b)|new\s+{name}\b)")
    at = start
    while part := begins.search(text.content, at, end):
        at = _end_of(text.content, part.end(), end, is_block=part[0].endswith("{"))
        if itself.search(text.content, part.end(), at):
            return True
    return False


def _end_of(content: str, start: int, end: int, *, is_block: bool) -> int:
    """Where a block ends, or the value of a field: at the end of its line or statement."""
    depth = int(is_block)
    for mark in _BRACKET_OR_END.finditer(content, start, end):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        is_over = not is_block and depth == 0 and mark[0] in ";\n" and content[start : mark.start()].strip()
        if depth < int(is_block) or is_over:
            return mark.end()
    return end
