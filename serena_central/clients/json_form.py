"""JSON, and JSON with comments and trailing commas, edited in place: only the text of one entry changes.

The text is scanned for where members stand; what they hold is read by `json`, from the same text without comments.
"""

import json
import re
from typing import NamedTuple, NoReturn

from serena_central.clients.forms import Malformed, Value

STEP = "  "
"""One level of indentation in a file that shows none of its own."""

DEEPEST = 200

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NOISE = re.compile(
    rf"{_STRING.pattern}|{_COMMENT.pattern}|,(?=(?>\s+|{_COMMENT.pattern})*+[}}\]])",
    re.S,
)
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")

Path = tuple[str | int, ...]
"""The way to a value, from the outermost: keys of objects, 0-based indexes of lists."""


class Member(NamedTuple):
    """Where a member stands: from its key's quote, in a list from its value, to the end of its value, and the comma
    after it, if there is one."""

    key: str | int
    start: int
    value: "Span"
    comma: int | None


class Span(NamedTuple):
    """Where a value stands; with members, if it is an object or a list. `tail` is where the last thing in it ends, a
    comment or a comma included: what is put after it comes last."""

    start: int
    end: int
    members: tuple[Member, ...] | None = None
    tail: int = 0
    is_list: bool = False

    def member(self, key: str | int) -> Member | None:
        """Of several with one key the last counts, as for every reader of JSON."""
        return next((one for one in reversed(self.members or ()) if one.key == key), None)


class JsonForm:
    """JSON; with `relaxed`, comments and trailing commas are allowed."""

    def __init__(self, *, relaxed: bool) -> None:
        self._relaxed = relaxed

    def read(self, text: str) -> dict[str, Value]:
        self._scan(text)
        return json.loads(_plain(text)) if self._says_something(text) else {}

    def put(self, text: str, keys: Path, entry: Value) -> str:
        root = self._scan(text)
        line_end = "\r\n" if "\r\n" in text else "\n"
        if not self._says_something(text):
            gap = line_end if text.strip() and not text.endswith("\n") else ""
            return text + gap + _rendered(_nested(keys, entry), STEP, "").replace("\n", line_end) + line_end
        container, depth = root, 0
        while (held := container.member(keys[depth])) is not None:
            if depth + 1 == len(keys):
                own = _indent_at(text, held.start)
                on_lines = "\n" in text[container.start : container.end]
                new = _rendered(entry, _step(text, root), own) if on_lines else _compact(entry)
                return text[: held.value.start] + new.replace("\n", line_end) + text[held.value.end :]
            if held.value.members is None or held.value.is_list != isinstance(keys[depth + 1], int):
                kind = "a list" if isinstance(keys[depth + 1], int) else "an object"
                raise Malformed(
                    _line(text, held.start), f"{json.dumps(held.key)} is not {kind}, so nothing can be added to it"
                )
            container, depth = held.value, depth + 1
        return _added(text, root, container, keys[depth], _nested(keys[depth + 1 :], entry), line_end)

    def append(self, text: str, keys: Path, value: Value) -> str:
        """The text with one more element at the end of the list at `keys`, which is made where there is none."""
        held = _at(self._scan(text), keys)
        if held is None:
            return self.put(text, keys, [value])
        return self.put(text, (*keys, len(held.members or ())), value)

    def take(self, text: str, keys: Path) -> str:
        container = _at(self._scan(text), keys[:-1])
        held = container and container.member(keys[-1])
        if container is None or held is None:
            return text
        left = _without(text, container, held)
        # Once more: what stood there twice must be gone altogether.
        return left if container.is_list else self.take(left, keys)

    def hidden(self, text: str, keys: Path) -> int | None:
        """The line of what stands at `keys` and another one of the same key, after it, hides from readers."""
        container = _at(self._scan(text), keys[:-1])
        alike = [one for one in (container and container.members) or () if one.key == keys[-1]]
        return _line(text, alike[0].start) if len(alike) > 1 else None

    def _says_something(self, text: str) -> bool:
        """Whether there is more than white space, and comments where they are allowed."""
        return bool((_plain(text) if self._relaxed else text).strip())

    def _scan(self, text: str) -> Span:
        if not self._says_something(text):
            return Span(0, 0, ())
        try:
            root = _Scanner(text, relaxed=self._relaxed).document()
            json.loads(_plain(text))
        except json.JSONDecodeError as error:
            raise Malformed(error.lineno, error.msg) from error
        if root.members is None or root.is_list:
            raise Malformed(_line(text, root.start), "it is not an object")
        return root


class _Scanner:
    """One pass over a text."""

    def __init__(self, text: str, *, relaxed: bool) -> None:
        self._text = text
        self._relaxed = relaxed

    def document(self) -> Span:
        at, _ = self._gap(0)
        root = self._value(at, 0)
        at, _ = self._gap(root.end)
        if at != len(self._text):
            self._fail(at, "unexpected text after the end")
        return root

    def _gap(self, at: int) -> tuple[int, int]:
        """Behind white space and comments; and where the last comment ends (or `at`)."""
        content = at
        while True:
            space = _SPACE.match(self._text, at)
            at = space.end() if space else at
            if not self._text.startswith(("//", "/*"), at):
                return at, content
            if not self._relaxed:
                self._fail(at, "comments are not allowed in this file")
            comment = _COMMENT.match(self._text, at)
            if comment is None:
                self._fail(at, "the comment is not closed")
            at = content = comment.end()

    def _value(self, at: int, depth: int) -> Span:
        if depth > DEEPEST:
            self._fail(at, "it is nested too deeply")
        opening = self._text[at : at + 1]
        if opening == "{":
            return self._object(at, depth)
        if opening == "[":
            return self._list(at, depth)
        scalar = (_STRING if opening == '"' else _SCALAR).match(self._text, at)
        if scalar is None:
            self._fail(at, "a value was expected")
        return Span(at, scalar.end())

    def _object(self, start: int, depth: int) -> Span:
        members: list[Member] = []
        at, tail = self._gap(start + 1)
        while self._text[at : at + 1] != "}":
            if members and members[-1].comma is None:
                self._fail(at, "',' or '}' was expected")
            key = _STRING.match(self._text, at)
            if key is None:
                self._fail(at, "a key in double quotes was expected")
            colon, _ = self._gap(key.end())
            if self._text[colon : colon + 1] != ":":
                self._fail(colon, "':' was expected")
            value = self._value(self._gap(colon + 1)[0], depth + 1)
            comma, at, tail = self._comma(value.end, "}")
            members.append(Member(json.loads(key[0]), key.start(), value, comma))
        return Span(start, at + 1, tuple(members), tail)

    def _list(self, start: int, depth: int) -> Span:
        members: list[Member] = []
        at, tail = self._gap(start + 1)
        while self._text[at : at + 1] != "]":
            if members and members[-1].comma is None:
                self._fail(at, "',' or ']' was expected")
            value = self._value(at, depth + 1)
            comma, at, tail = self._comma(value.end, "]")
            members.append(Member(len(members), value.start, value, comma))
        return Span(start, at + 1, tuple(members), tail, is_list=True)

    def _comma(self, at: int, closing: str) -> tuple[int | None, int, int]:
        """Behind a value: where its comma is, where the next thing begins, and where the last content ends."""
        at, content = self._gap(at)
        if self._text[at : at + 1] != ",":
            return None, at, content
        comma = at
        at, content = self._gap(comma + 1)
        if self._text[at : at + 1] == closing and not self._relaxed:
            self._fail(comma, "trailing commas are not allowed in this file")
        return comma, at, content

    def _fail(self, at: int, problem: str) -> NoReturn:
        raise Malformed(_line(self._text, at), problem)


def _at(span: Span, keys: Path) -> Span | None:
    """The value at `keys`; None where nothing stands."""
    for key in keys:
        held = span.member(key)
        if held is None:
            return None
        span = held.value
    return span


def _added(text: str, root: Span, container: Span, key: str | int, value: Value, line_end: str) -> str:
    """The text with a new last member of `container`."""
    named = "" if container.is_list else f"{json.dumps(key)}: "
    last = container.members[-1] if container.members else None
    inside = text[container.start + 1 : container.end - 1]
    opened = not inside.strip(" \t") and (container is root or "\n" in text)  # `{}` becomes one of several lines
    if opened or "\n" in inside:
        step = _step(text, root)
        own = _indent_at(text, last.start) if last else _indent_at(text, container.start) + step
        new = f"\n{own}{named}{_rendered(value, step, own)}"
    else:
        new = f"{' ' if inside.strip() else ''}{named}{_compact(value)}"
    head, rest = text[: container.tail], text[container.tail :]
    if last is not None and last.comma is None:
        head = text[: last.value.end] + "," + text[last.value.end : container.tail]
    elif last is not None:
        new += ","
    if opened:
        new += "\n" + _indent_at(text, container.start)
        rest = text[container.end - 1 :]
    return head + new.replace("\n", line_end) + rest


def _without(text: str, container: Span, held: Member) -> str:
    """The text without a member, the white space before it, and the one comma that is too much then."""
    members = container.members or ()
    before = text[: held.start].rstrip(" \t\r\n")
    rest = text[held.value.end if held.comma is None else held.comma + 1 :]
    if _ends_in_comment(before) and not rest.lstrip(" \t").startswith(("\n", "\r\n")):
        rest = "\n" + rest  # what follows must not become part of a comment
    place = members.index(held)
    if held.comma is None and place > 0:
        comma = members[place - 1].comma
        assert comma is not None
        before = before[:comma] + before[comma + 1 :]
    alone = len(members) == 1 and before.endswith(("{", "[")) and rest.lstrip().startswith(("}", "]"))
    return before + (rest.lstrip() if alone else rest)


def _ends_in_comment(text: str) -> bool:
    """Whether what follows on the line would be a comment, too."""
    return any(found.end() == len(text) and found[0].startswith("//") for found in _NOISE.finditer(text))


def _nested(keys: Path, value: Value) -> Value:
    for key in reversed(keys):
        value = {key: value}
    return value


def _rendered(value: Value, step: str, own: str) -> str:
    """Over several lines, all but the first behind the indentation `own`."""
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", "\n" + own)


def _compact(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent_at(text: str, at: int) -> str:
    """The indentation of the line that `at` is in."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(text: str, root: Span) -> str:
    """One level of indentation, as the file has it."""
    first = root.members[0] if root.members else None
    return (first and _indent_at(text, first.start).removeprefix(_indent_at(text, root.start))) or STEP


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _plain(text: str) -> str:
    """The text without comments and trailing commas; lines stay where they are."""
    return _NOISE.sub(lambda found: found[0] if found[0][0] == '"' else "\n" * found[0].count("\n"), text)
