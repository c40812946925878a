"""Comments and doc strings that are code to somebody: doctests of Python and Rust, type comments, directives of Go.

By the text: a language server lists no reference in them.
"""

import re
from collections.abc import Callable
from contextlib import suppress

from serena_central.core.errors import PathError
from serena_central.core.text import Range, Text
from serena_central.lsp.answers import SymbolKind
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_DOCTEST = re.compile(r"\s*(?:>>>|\.\.\.)\s")
_TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore\b)")

_DOC_OF_RUST = re.compile(r"\s*//[/!]\s?(.*)")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})\s*([^`]*)\Z")
_RUN = re.compile(r"(?:rust|no_run|should_panic|test_harness|standalone_crate|edition\d+)?")
"""Each word behind the fence of code that `cargo test` compiles."""
_PUBLIC = re.compile(r"\bpub\b(?!\s*\()")

_LINKNAME = re.compile(r"//go:linkname\s")
_GENERATE = re.compile(r"//go:generate\s")
_IN_ARGUMENTS = re.compile(r"//go:generate\s+(?:go\s+\w+\s+(?:-\S+\s+)*|(?!go\s))[^\s-]\S*\s(?:.*[\s\"',])?\Z")
_BEHIND_FLAG = re.compile(r"\s--?\w[\w-]*\s+[\"']?\Z")
_ENDS_ARGUMENT = re.compile(r"[\s,\"']|\Z")
"""Around a whole argument of a command that is no flag: `//go:generate go run gen.go day`."""

_ENDS_NAME = re.compile(r"\)|\s|\Z")
"""Behind the name of a symbol in `//go:linkname now runtime.nanotime`: what else is in it is the package's path."""


async def named_in_comments(project: Project, hit: Hit, language: str) -> str | None:
    """Where such a comment outside of a symbol names it, as a clause."""
    reads = await _reader(project, hit, language)
    if reads is None:
        return None
    for path, places in (await project.navigation.possible.candidates(hit)).items():
        if project.languages.language_of(path) != language:
            continue
        with suppress(PathError):
            text = (await project.read(path)).text
            for span in places:
                if path == hit.path and hit.symbol.range.encloses(span):
                    continue
                if what := reads(text, span):
                    return f"the {what} in {path}:{span.start.line0} names it"
    return None


def _of_python(line: str, span: Range) -> str | None:
    if _DOCTEST.match(line):
        return "doctest"
    comment = _TYPE_COMMENT.search(line)
    return "type comment" if comment and comment.end() <= span.start.column else None


def _of_go(line: str, span: Range, is_type: bool) -> str | None:
    if _LINKNAME.match(line):
        return "directive" if _ENDS_NAME.match(line, span.end.column) else None
    # Most words of a command are lower-case: `//go:generate stringer -type=day,Month`, or `-type day`.
    before, behind = line[: span.start.column], line[span.start.column :]
    is_meant = behind[:1].isupper() or before.endswith(("=", ","))
    is_meant = is_meant or (_IN_ARGUMENTS.match(before) is not None and (is_type or _BEHIND_FLAG.search(before)))
    is_whole = _ENDS_ARGUMENT.match(line, span.end.column) is not None
    return "directive" if is_meant and (is_whole or behind[:1].isupper()) and _GENERATE.match(line) else None


def _of_rust(text: Text, span: Range) -> str | None:
    line0 = first = span.start.line0
    if not _DOC_OF_RUST.match(text.line(line0)):
        return None
    while first and _DOC_OF_RUST.match(text.line(first - 1)):
        first -= 1
    fence, is_run = "", False
    for at in range(first, line0):
        doc = _DOC_OF_RUST.match(text.line(at))
        found = doc and _FENCE.match(doc[1])
        if not found:
            continue
        if not fence:
            fence, is_run = found[1], all(_RUN.fullmatch(word) for word in re.split(r"[\s,]+", found[2].strip()))
        elif found[1].startswith(fence) and not found[2]:
            fence = ""
    return "doctest" if fence and is_run else None


async def _reader(project: Project, hit: Hit, language: str) -> Callable[[Text, Range], str | None] | None:
    """What the code in a comment is called, if a place in a text is in such code."""
    match language:
        case "python":
            return lambda text, span: _of_python(text.line(span.start.line0), span)
        case "go":
            is_type = hit.symbol.kind in TYPES  # of which more may be meant
            return lambda text, span: _of_go(text.line(span.start.line0), span, is_type)
        case "rust" if await _is_public(project, hit):
            return _of_rust
        case _:
            return None


async def _is_public(project: Project, hit: Hit) -> bool:
    """Whether a doctest can name a symbol of Rust: it is compiled as a crate of its own."""
    if hit.symbol.kind == SymbolKind.ENUM_MEMBER:
        return True
    line = (await project.read(hit.path)).text.line(hit.symbol.name_line)
    return _PUBLIC.search(line[: hit.symbol.name_position.column]) is not None
