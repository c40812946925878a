"""Comments and doc strings that are code to somebody: doctests and type comments of Python, directives of Go.

By the text: a language server lists no reference in them.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from serena_central.core.errors import PathError
from serena_central.core.text import Range
from serena_central.projects.project import Project
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import TYPES

_DOCTEST = re.compile(r"\s*(?:>>>|\.\.\.)\s")
_TYPE_COMMENT = re.compile(r"#\s*type:(?!\s*ignore\b)")

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
    reads = _READ_AS_CODE.get(language)
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
                if what := reads(text.line(span.start.line0), span, hit.symbol.kind in TYPES):
                    return f"the {what} in {path}:{span.start.line0} names it"
    return None


def _of_python(line: str, span: Range, is_type: bool) -> str | None:
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


_READ_AS_CODE: Mapping[str, Callable[[str, Range, bool], str | None]] = {"go": _of_go, "python": _of_python}
"""Language → what the code in a line's comment is called, if a place in the line is in such code. Of Go it depends on
whether a type is sought."""
