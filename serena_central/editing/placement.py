"""Decides where a symbol's text goes and with what blank lines around it: the rules of replacing and inserting by
symbol. Pure.

Line ends become those of the file. What stands around is never touched, but that a new definition is set apart by one
blank line at least where its neighbour is a definition; blank lines that the caller gives are kept.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from serena_central.core.errors import EditRefused, InvalidArguments
from serena_central.core.quoting import quoted
from serena_central.core.text import Position, Range, Text
from serena_central.editing.directives import is_about_file
from serena_central.editing.plan import TextEdit, with_newlines
from serena_central.editing.strings import lines_inside_strings

_CLOSING = re.compile(r"\s*(?:[)\]}]|end\b)")
"""What ends a container: no blank line is wanted before it."""

_TOKEN = re.compile(r"\w+|[^\w\s]")

_OPENING = re.compile(r":\s*(#.*)?$")
"""How a line ends that opens a block in Python."""

# fmt: off
_DOCUMENTED_ABOVE = frozenset(
    {"angular", "astro", "c", "cpp", "csharp", "d", "dart", "deno", "fsharp", "gleam", "go", "groovy", "haxe",
     "java", "javascript", "kotlin", "odin", "php", "proto", "rust", "scala", "solidity", "svelte", "swift",
     "typescript", "vlang", "vue", "zig"}
)
# fmt: on
"""Languages with `//` and `/* */`, where a comment that touches a definition belongs to it."""

_INSTRUCTION = re.compile(
    r"//[a-z]+:\S|//export\b|[/*]\s*(?:@ts-|biome-ignore|eslint-|lint:|nolint|NOLINT|prettier-ignore)"
)
"""What a comment holds that tools act on: of Go, TypeScript, C++ and their linters."""

_COMMENT_STARTS = ("//", "/*")

_LICENCE = re.compile(
    r"\b(?:copyright|SPDX-License-Identifier|licen[sc]ed? under)\b|@licen[sc]e\b|\(c\)", re.IGNORECASE
)
"""What a comment at the top of a file holds that is about the file."""

_HEAD = re.compile(r"\s*(?:$|//|/\*|\*|#!|<\?php\s*$)")
"""Lines that may stand above such a comment."""


class Style(NamedTuple):
    """What the file and the neighbour ask for. `set_apart`: a blank line belongs around a definition like this."""

    newline: str
    language: str | None
    set_apart: bool


def replaced(text: Text, span: Range, body: str, style: Style) -> TextEdit:
    """The whole definition, from its first to its last character, becomes `body`; space around it stays, also what
    its server counts to it.

    Raises:
        InvalidArguments: the body is empty.
    """
    end = text.position(text.offset(span.start) + len(text.slice(span).rstrip()))
    return TextEdit(Range(span.start, end), with_newlines(_stripped(body).strip(" \t"), style.newline))


def widened(text: Text, span: Range, statement: Range, name: str, body: str) -> Range:
    """The range that a body replaces: with as much of what the statement has before and behind it as the body brings
    itself (`export const` and `;` of `export const a = 1;`, where `a = 1` is the definition), the comment behind it
    included."""
    first, start, end = (text.offset(at) for at in (statement.start, span.start, span.end))
    before = list(_TOKEN.finditer(text.content, first, start)) if first < start else []
    head = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", body, maxsplit=1)[0]
    given = _TOKEN.findall(head)
    for count, token in enumerate(before):
        kept = [one[0] for one in before[count:]]
        is_all = not count and given[:1] == kept[:1]
        if is_all or any(given[at : at + len(kept)] == kept for at in range(len(given))):
            start = token.start()
            break
    behind = text.line(span.end.line0)[span.end.column :].strip()
    if behind[:1] in (";", ",") and body.rstrip().endswith(behind[0]):
        end = text.content.index(behind[0], end) + 1
    elif re.match(r"[;,]?\s*(?://|#|/\*)", behind) and body.rstrip().endswith(behind):
        end = text.content.index(behind, end) + len(behind)
    return Range(text.position(start), text.position(end))


def with_comment_for(text: Text, span: Range, body: str, language: str | None) -> Range:
    """A definition with the comment right above it, where `body` brings one in its place.

    Raises:
        EditRefused: the comment holds an instruction to a tool, which the body lacks.
    """
    starts = body.lstrip().startswith(_COMMENT_STARTS)
    if not starts or text.slice(span).startswith(_COMMENT_STARTS) or not _may_have_comment(text, span, language):
        return span
    first0 = _comment_above(text, span.start.line0, language)
    if first0 is None:
        return span
    given = {line.strip() for line in body.splitlines()}
    for line0 in range(first0, span.start.line0):
        line = text.line(line0).strip()
        if _INSTRUCTION.search(line) and line not in given:
            raise EditRefused(
                f"Nothing was changed: the comment above the definition holds {quoted(line)}, which the comment of the "
                "body lacks. Add it to the body, or pass the body without a comment to keep the one that is there."
            )
    return Range(Position(first0, _depth(text.line(first0))), span.end)


def inserted_after(text: Text, span: Range, body: str, style: Style) -> TextEdit:
    """`body` as whole lines behind the last line of a definition.

    Raises:
        InvalidArguments: for an empty body.
    """
    last0 = span.end.line0
    if span.end.column == 0 and last0 > span.start.line0:
        last0 -= 1  # some servers let a definition end where the next line begins
    lines = _Lines(body, _indentation(text, span), style)
    at_end = last0 + 1 >= text.line_count
    place = Position(last0, len(text.line(last0))) if at_end else Position(last0 + 1, 0)
    following = _first_filled(text, last0 + 1)
    gap = following - last0 - 1 if following is not None else None
    behind = lines.behind
    if following is not None and not _CLOSING.match(text.line(following)):
        behind = max(behind, style.set_apart - (gap or 0))
    new_lines = [*[""] * max(lines.before, style.set_apart), *lines.filled, *[""] * behind]
    joined = style.newline.join(new_lines)
    # A file whose last line has no end keeps it that way.
    return TextEdit(Range(place, place), style.newline + joined if at_end else joined + style.newline)


def inserted_before(text: Text, span: Range, body: str, style: Style) -> TextEdit:
    """`body` as whole lines before the first line of a definition and its doc comment.

    Raises:
        InvalidArguments: for an empty body.
    """
    first0 = with_doc_comment(text, span, style.language).start.line0
    own = _indentation(text, span)
    lines = _Lines(body, own, style)
    place = Position(first0, 0)
    above = text.line(first0 - 1) if first0 else ""
    # Behind a neighbour, and not behind the head of what contains both.
    crowded = bool(above.strip()) and _width(above) >= _width(own) and not above.rstrip().endswith(("{", "(", "["))
    before = max(lines.before, style.set_apart and crowded)
    new_lines = [*[""] * before, *lines.filled, *[""] * max(lines.behind, style.set_apart)]
    return TextEdit(Range(place, place), style.newline.join(new_lines) + style.newline)


def removed(text: Text, span: Range) -> TextEdit:
    """A definition goes, with its lines where it has them for itself, and with the blank lines that set it apart."""
    first0, last0 = span.start.line0, span.end.line0
    if span.end.column == 0 and last0 > first0:
        last0 -= 1
    before = text.line(first0)[: span.start.column]
    behind = text.line(last0)[span.end.column :] if last0 == span.end.line0 else ""
    if before.strip() or behind.strip():
        return TextEdit(span, "")
    above, below = _blank_above(text, first0), _first_filled(text, last0 + 1)
    if below is None or _CLOSING.match(text.line(below)):
        first0 -= above
    else:
        last0 += min(above, below - last0 - 1) if above < first0 else below - last0 - 1
    if last0 + 1 < text.line_count:
        return TextEdit(Range(Position(first0, 0), Position(last0 + 1, 0)), "")
    start = Position(first0 - 1, len(text.line(first0 - 1))) if first0 else Position(0, 0)
    return TextEdit(Range(start, Position(last0, len(text.line(last0)))), "")


def removed_in_python(text: Text, span: Range) -> TextEdit:
    """The same, with `pass` in its place where it is the only statement of its block: a block may not be empty."""
    first0, last0 = span.start.line0, span.end.line0
    if span.end.column == 0 and last0 > first0:
        last0 -= 1
    column = _depth(text.line(first0))
    above = _statement_line(text, range(first0 - 1, -1, -1))
    below = _statement_line(text, range(last0 + 1, text.line_count))
    opens = above is not None and (_depth(above) < column or _OPENING.search(above) is not None)
    goes_on = below is not None and _depth(below) >= column
    behind = text.line(last0)[span.end.column :] if last0 == span.end.line0 else ""
    if not opens or goes_on or span.start.column > column or behind.strip():
        return removed(text, span)
    return TextEdit(Range(Position(first0, column), Position(last0, len(text.line(last0)))), "pass")


def _statement_line(text: Text, lines: Iterable[int]) -> str | None:
    """The first line that is neither blank nor a comment."""
    told = (text.line(line0) for line0 in lines)
    return next((line for line in told if line.strip() and not line.lstrip().startswith("#")), None)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def with_doc_comment(text: Text, span: Range, language: str | None) -> Range:
    """A definition with the comment lines right above it, in languages whose doc comments stand there."""
    first0 = span.start.line0
    if not _may_have_comment(text, span, language):
        return span
    while (above := _comment_above(text, first0, language)) is not None:
        first0 = above
    if first0 == span.start.line0:
        return span
    return Range(Position(first0, _depth(text.line(first0))), span.end)


def _may_have_comment(text: Text, span: Range, language: str | None) -> bool:
    return language in _DOCUMENTED_ABOVE and not text.line(span.start.line0)[: span.start.column].strip()


def _comment_above(text: Text, line0: int, language: str | None) -> int | None:
    """The line where a comment begins that ends right above a line and is not about the file."""
    first0 = line0 - 1
    above = text.line(first0).strip() if line0 else ""
    if above.startswith("//"):
        while first0 >= 0 and _is_about_what_follows(text.line(first0), language):
            first0 -= 1
        first0 += 1
    elif not above.endswith("*/"):
        return None
    else:
        while first0 and "/*" not in text.line(first0):
            first0 -= 1
        comment = "\n".join(text.line(one) for one in range(first0, line0)).strip()
        if comment[:2] != "/*" or comment.index("*/") != len(comment) - 2 or is_about_file(comment, language):
            return None
    held = any(_LICENCE.search(text.line(one)) for one in range(first0, line0))
    is_licence = held and all(_HEAD.match(text.line(one)) for one in range(first0))
    return None if first0 == line0 or is_licence else first0


def _is_about_what_follows(line: str, language: str | None) -> bool:
    return line.lstrip().startswith("//") and not is_about_file(line.lstrip(), language)


def _blank_above(text: Text, line0: int) -> int:
    count = 0
    while count < line0 and not text.line(line0 - 1 - count).strip():
        count += 1
    return count


class _Lines:
    """A body as lines: blank ones before and behind, and what stands between, indented like the neighbour."""

    def __init__(self, body: str, indentation: str, style: Style) -> None:
        lines = with_newlines(body, "\n").split("\n")
        core = _stripped(body)
        self.before = next(number for number, line in enumerate(lines) if line.strip())
        blank_behind = next(number for number, line in enumerate(reversed(lines)) if line.strip())
        self.behind = max(blank_behind - 1, 0)  # one newline at the end ends the last line
        self.filled = core.split("\n")
        if indentation and self.filled[0][:1] not in (" ", "\t"):
            inside = lines_inside_strings(core, style.language)
            self.filled = [
                indentation + line if line.strip() and number not in inside else line
                for number, line in enumerate(self.filled)
            ]


def _stripped(body: str) -> str:
    """A body without blank lines around it, with plain line ends.

    Raises:
        InvalidArguments: nothing is left.
    """
    lines = with_newlines(body, "\n").split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    if not lines:
        raise InvalidArguments("The body is empty. Pass the source of the complete definition.")
    return "\n".join(lines)


def _indentation(text: Text, span: Range) -> str:
    line = text.line(span.start.line0)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _first_filled(text: Text, line0: int) -> int | None:
    return next((number for number in range(line0, text.line_count) if text.line(number).strip()), None)


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
