"""One JSON file as plain values with the place of every key and item.

The reader goes on where others give up: comments and trailing commas are read and noted, a key that stands twice is
merged, and what stands before a syntax error is kept, so that one mistake does not lift a policy. Size and depth are
bounded. Nothing here knows what the values mean.
"""

import json
import re
from bisect import bisect_right
from typing import Any, NoReturn, cast

from serena_central.claude_config.problems import KeyPath, Place, Problem, Severity, brief, dotted

MAX_DEPTH = 60

_GAP = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\w.+-]*|[A-Za-z_]\w*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


def as_object(value: Any) -> dict[str, Any] | None:
    """The value, if it is an object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any] | None:
    """The value, if it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


class Document:
    """A file that was read. `value` holds plain values; `complete` is false where a syntax error ended the reading."""

    def __init__(self, file: str, text: str, *, first_line: int = 1) -> None:
        """`first_line` is the line of `file` that the text begins in."""
        self.file = file
        self.value: Any = None
        self.complete = True
        self.problems: list[Problem] = []
        self._first_line = first_line
        self._text = text
        self._lines: list[int] | None = None
        self._places: dict[KeyPath, int] = {}
        _Reader(self, text, self._places).read()

    def place(self, path: KeyPath = ()) -> Place:
        """Where a key or an item begins; the nearest that is known around it."""
        while path and path not in self._places:
            path = path[:-1]
        return self.place_at(self._places.get(path, 0)) if path else Place(self.file)

    def place_at(self, offset: int) -> Place:
        if self._lines is None:
            self._lines = [0, *(found.end() for found in _LINE_END.finditer(self._text))]
        line = bisect_right(self._lines, offset) - 1
        return Place(self.file, line + self._first_line, offset - self._lines[line] + 1)

    def report(self, severity: Severity, path: KeyPath, text: str, remedy: str = "") -> None:
        """Adds a problem about a key or an item."""
        self.problems.append(Problem(severity, self.place(path), dotted(path), text, remedy))

    def report_at(self, severity: Severity, offset: int, text: str, remedy: str = "") -> None:
        """Adds a problem about a place of the text."""
        self.problems.append(Problem(severity, self.place_at(offset), "", text, remedy))


class _Unreadable(Exception):
    """The text is not JSON from `offset` on."""

    def __init__(self, offset: int, text: str, remedy: str) -> None:
        super().__init__(text)
        self.offset = offset
        self.text = text
        self.remedy = remedy


class _Reader:
    """One pass over a text. Containers stand in their parents before they are filled."""

    def __init__(self, document: Document, text: str, places: dict[KeyPath, int]) -> None:
        self._document = document
        self._text = text
        self._places = places
        self._noted: set[str] = set()

    def read(self) -> None:
        document = self._document
        try:
            at = self._gap(0)
            if at == len(self._text):
                document.value = {}
                return
            self._at_end(self._value(at, (), None))
        except _Unreadable as error:
            document.complete = False
            document.report_at(Severity.ERROR, error.offset, error.text, error.remedy)

    def _at_end(self, at: int) -> None:
        if self._gap(at) != len(self._text):
            self._fail(self._gap(at), "something follows after the end of the JSON value", "remove it")

    def _gap(self, at: int) -> int:
        while True:
            gap = _GAP.match(self._text, at)
            at = gap.end() if gap else at
            if not self._text.startswith(("//", "/*"), at):
                return at
            comment = _COMMENT.match(self._text, at)
            if comment is None:
                self._fail(at, "the comment has no end", "close it with */")
            self._note(at, "a comment is not JSON", "other programs may refuse the whole file for it")
            at = comment.end()

    def _note(self, at: int, text: str, remedy: str) -> None:
        """Once for each kind: a file full of comments is one note."""
        if text not in self._noted:
            self._noted.add(text)
            self._document.report_at(Severity.WARNING, at, text, remedy)

    def _value(self, at: int, path: KeyPath, container: Any) -> int:
        """Reads the value at an offset into its container, under the last part of `path`; returns where it ends."""
        if len(path) > MAX_DEPTH:
            self._fail(at, f"it is nested deeper than {MAX_DEPTH} levels", "nest less")
        opening = self._text[at : at + 1]
        if opening == "{":
            return self._object(at, path, self._put(container, path, {}))
        if opening == "[":
            return self._list(at, path, self._put(container, path, []))
        if opening == '"':
            text, end = self._string(at)
            self._put(container, path, text)
            return end
        found = _SCALAR.match(self._text, at)
        if found is None:
            what = "the file ends here" if at >= len(self._text) else f"{brief(opening)} stands where a value is needed"
            self._fail(at, what, "a string, number, true, false, null, list or object")
        self._put(container, path, self._scalar(at, found[0]))
        return found.end()

    def _put(self, container: Any, path: KeyPath, value: Any) -> Any:
        """Puts a value in its place. A second object or list under one key goes on in the first."""
        if container is None:
            self._document.value = value
        elif isinstance(container, list):
            cast("list[Any]", container).append(value)
        else:
            held: dict[str, Any] = container
            key = str(path[-1])
            before = held.get(key)
            if type(before) is type(value) and isinstance(value, dict | list):
                return before
            held[key] = value
        return value

    def _object(self, start: int, path: KeyPath, value: dict[str, Any]) -> int:
        at = self._gap(start + 1)
        while self._text[at : at + 1] != "}":
            if self._text[at : at + 1] != '"':
                self._fail(at, "a key is needed here", "a name in double quotes, or } after the last value")
            key, end = self._string(at)
            inside = (*path, key)
            if key in value:
                self._places.setdefault(inside, at)
                self._document.problems.append(
                    Problem(
                        Severity.ERROR,
                        self._document.place_at(at),
                        dotted(inside),
                        f"the key stands twice in one object, first in line {self._document.place(inside).line}",
                        "keep one; until then objects and lists are joined, and of other values the last counts",
                    )
                )
            else:
                self._places[inside] = at
            colon = self._gap(end)
            if self._text[colon : colon + 1] != ":":
                self._fail(colon, f"a colon is needed after the key {brief(key)}", "")
            at = self._comma(self._value(self._gap(colon + 1), inside, value), "}")
        return at + 1

    def _list(self, start: int, path: KeyPath, value: list[Any]) -> int:
        at = self._gap(start + 1)
        while self._text[at : at + 1] != "]":
            inside = (*path, len(value))
            self._places[inside] = at
            at = self._comma(self._value(at, inside, value), "]")
        return at + 1

    def _comma(self, end: int, closing: str) -> int:
        """Where the next thing in a container begins, or its closing bracket."""
        at = self._gap(end)
        here = self._text[at : at + 1]
        if here == ",":
            following = self._gap(at + 1)
            if self._text[following : following + 1] == closing:
                self._note(at, "a comma before the end is not JSON", "remove it; others may refuse the whole file")
            return following
        if here != closing:
            self._fail(end, f"a comma or {closing} is needed here", "")
        return at

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._text, at)
        if found is None:
            self._fail(at, "the string has no end on its line", 'close it with ", and write a line break as \\n')
        inside = found[0][1:-1]
        if "\\" not in inside:
            return inside, found.end()
        try:
            text: str = json.loads(found[0])
        except ValueError:
            self._fail(at, "the string has an unknown escape", r"\" \\ \/ \b \f \n \r \t or \uXXXX; \\ for a backslash")
        # Half of a surrogate pair is no character, and could not be written anywhere.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), found.end()

    def _scalar(self, at: int, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text) is None:
            self._fail(at, f"{brief(text)} is not a JSON value", "quote it, if it is text")
        try:
            number: int | float = json.loads(text)
        except ValueError:
            self._fail(at, "the number is too long", "a number of at most 4,000 digits")
        return number

    def _fail(self, at: int, text: str, remedy: str) -> NoReturn:
        raise _Unreadable(at, text, remedy)
