"""Answers: what a tool function returns, and how it is fitted into what a call may return.

A tool returns a string, anything that is JSON, a `Listing`, `Shaped`: the same answer in progressively shorter forms,
of which the first that fits is sent, or `Content`: blocks of other kinds. A listing is paged: only the items that the
call's `Page` may show are built, so that the first page of 100,000 items costs no more than one of 1,000.
"""

import heapq
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, cast

import msgspec

from serena_central.core.encoding import encodable, lossy_json
from serena_central.core.errors import InvalidArguments
from serena_central.core.quoting import escaped, quoted, visible_json
from serena_central.core.words import counted

FIRST_TRIED = 64

GUESSES = 5
"""By the length of the items tried before, which are not always about as long as those that follow; then by halves."""

FOLDERS = 12
"""Named with their counts where a list does not fit."""

EXAMPLES = 20
"""Items shown of what fits in no other form."""

_CURSOR = re.compile(r"(?:(.+):)?(\d{1,9})/(\d{1,9})", re.DOTALL)
"""`start/total`, of a grouped answer behind the name of the group and a colon."""


MAX_CHARS = 5_000_000
"""Maximum length of an answer, whatever a caller asks for: clients hold it in memory several times."""

MOST_BYTES = 4
"""Of a character in UTF-8."""

CHARACTERS_PER_TOKEN = 4


class PassedOn(NamedTuple):
    """The result of an upstream's tool, as it came on the wire (MCP's CallToolResult)."""

    result: Mapping[str, Any]
    masked: Callable[[str], str] = str
    """Leaves the upstream's secrets out of what is kept of the answer."""


class Answer(msgspec.Struct, frozen=True):
    """The result of a call: the answer, then, if there are notes, one block with a line per note."""

    blocks: list[str]
    shortened: bool = False
    data: str | None = None
    """The JSON at the end of the first block, behind the sentences that say what it leaves out; None for a text."""
    content: "Content | None" = None
    """What is sent in place of the first block, which describes it."""
    passed: dict[str, Any] | None = None
    """An upstream's result, to be sent as it is; `blocks` are its text, for those who show no other content."""
    failed: bool = False
    """The upstream's tool says that it failed."""

    @property
    def notes(self) -> list[str]:
        """Everything that qualifies the answer, a sentence or two each."""
        if self.passed is not None:
            return self.blocks[len(self.passed.get("content") or ()) or 1 :]
        first = [] if self.data is None else self.blocks[0][: -len(self.data)].splitlines()
        return [*first, *(note for block in self.blocks[1:] for note in block.splitlines())]

    @property
    def token_estimate(self) -> int:
        return sum(map(len, self.blocks)) // CHARACTERS_PER_TOKEN


def recalled(blocks: list[str]) -> Answer:
    """An answer whose blocks the store has kept. Edits answer with an object, or with a sentence."""
    is_object = bool(blocks) and blocks[0].startswith("{")
    return Answer(blocks, data=blocks[0] if is_object else None)


class Content(NamedTuple):
    """An answer in MCP's own blocks (text, images, audio, embedded resources, links), in wire form. It is sent as it
    is: whoever makes it bounds it."""

    blocks: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all blocks, with other kinds named, for callers that show nothing else."""
        return "\n".join(map(_text, self.blocks))


def _text(block: Mapping[str, Any]) -> str:
    resource: Mapping[str, Any] = block.get("resource") or {}
    text = block.get("text", resource.get("text"))
    if text is not None:
        return str(text)
    name = block.get("uri") or resource.get("uri") or block.get("mimeType") or ""
    return f"[{block.get('type')} {name}]"


class Form(NamedTuple):
    """One form of an answer. `says` names what it leaves out, for the sentence before it."""

    says: str
    build: Callable[[], Any]


class Shaped(NamedTuple):
    """An answer in forms, the full one first. `narrow` is a sentence on how to ask for less."""

    forms: Sequence[Form]
    narrow: str


def shaped(full: Callable[[], Any], *shorter: Form, narrow: str) -> Shaped:
    return Shaped((Form("", full), *shorter), narrow)


def holds_nothing(value: Any) -> bool:
    """Whether all lists and objects in an answer's data are empty; counts and names beside them do not matter."""
    if isinstance(value, list):
        return not value
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    inner: list[Any] = [part for part in members.values() if isinstance(part, list | dict)]
    return all(map(holds_nothing, inner)) if inner else not members


class Page(NamedTuple):
    """Which items of a list a call asks for."""

    start: int = 0
    limit: int | None = None
    total_before: int | None = None
    """How many there were when the cursor was handed out."""
    chars: int = 0
    """The longest answer."""
    group: str = ""
    """Of an answer grouped by project, the name of the group."""

    @property
    def cursor_group(self) -> str:
        """What a cursor of this list begins with."""
        return f"{escaped(self.group)}:" if self.group else ""

    @property
    def is_asked(self) -> bool:
        return self.limit is not None or self.is_continued

    @property
    def is_continued(self) -> bool:
        """Whether a page came before it."""
        return self.total_before is not None

    def window(self, total: int, item_chars: int) -> range:
        """The items that can be shown, of so many of which none is shorter than `item_chars`."""
        most = self.chars // item_chars + 1
        return range(min(self.start, total), min(self.start + min(most, self.limit or most), total))


def page(cursor: str, limit: int | None, chars: int) -> Page:
    """The page that a call's arguments mean.

    Raises:
        InvalidArguments
    """
    if not cursor:
        return Page(limit=limit, chars=chars)
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidArguments(
            f"cursor {cursor[:40]!r} was not returned by this tool. Leave it out for the first page."
        )
    return Page(int(parts[2]), limit, int(parts[3]), chars, parts[1] or "")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """An answer that is a list. `build` makes the usual form of the items from one index up to another, both within
    `window`. `shorter` are forms of the whole list, tried in turn before a page of it is sent."""

    page: Page
    total: int
    window: range
    """The items that are there to be built, by `Page.window`."""
    noun: str
    """Singular, of one item."""
    build: Callable[[int, int], Any]
    narrow: str
    """The argument that asks for less."""
    per_file: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many of the items lie in which file."""
    plural: str | None = None
    shorter: Sequence[Form] = ()
    brief: Callable[[int, int], Any] | None = None
    """Builds a shorter form of items, for one that is too long for an answer."""
    shown: Callable[[int, int], None] | None = None
    """Called by `Fitted.record` with the items that the answer shows in their usual form."""

    @property
    def forms(self) -> list[Form]:
        """Those of the whole list that may fit, if that is what the call asks for."""
        if self.page.is_asked:
            return []
        full = Form("", lambda: self.build(0, self.total))
        return [full, *self.shorter] if len(self.window) == self.total else [*self.shorter]

    def fitting(self, room: int, encode: Callable[[Any], str]) -> tuple[str, str, range]:
        """Text of as many items as `room` characters hold, one at least, the sentences that say which, and which."""
        window = self.window
        folders = self._folders if self.page.start == 0 else ""

        def built(count: int) -> str:
            return encode(self.build(window.start, window.start + count))

        def length(count: int) -> int:
            return len(built(count)) + len(self._says(count, folders))

        shown = most_that_fit(len(window), room, length)
        return built(shown), self._says(shown, folders), window[:shown]

    def _says(self, shown: int, folders: str) -> str:
        end = self.page.start + shown
        is_first = self.page.start == 0 and 0 < len(self.per_file) < self.total
        files = f" in {counted(len(self.per_file), 'file')}" if is_first else ""
        says = f"{counted(self.total, self.noun, self.plural)}{files}{folders}."
        if shown < self.total:
            says += f" Shown: {self.page.start + 1} to {end}." if shown else f" No items after {self.page.start}."
        if end < self.total:
            says += f' cursor="{self.page.cursor_group}{end}/{self.total}" continues. {self.narrow}'
        if self.page.total_before not in (None, self.total):
            says += f" There were {self.page.total_before} on the first page: items may be missing or repeated."
        return says

    @cached_property
    def _folders(self) -> str:
        shown, rest = by_folder(self.per_file)
        if len(shown) < 2:
            return ""
        more = f", {rest} in others" if rest else ""
        return f" ({', '.join(f'{folder} {count}' for folder, count in shown)}{more})"


def most_that_fit(total: int, room: int, length: Callable[[int], int]) -> int:
    """How many of so many items are shorter than `room` together, at least one of some; `length` tells how long so many
    are; items are about as long as each other, so that few numbers are tried."""
    fit, too_many, guess, tries = min(1, total), total + 1, FIRST_TRIED, 0
    while too_many - fit > 1:
        tried = min(max(guess, fit + 1), too_many - 1)
        long, tries = length(tried), tries + 1
        fit, too_many = (tried, too_many) if long < room else (fit, tried)
        guess = tried * room // max(long, 1) if tries < GUESSES else (fit + too_many) // 2
    return fit


def in_brief(total: int, per_file: Mapping[str, int], first: Sequence[Any]) -> dict[str, Any]:
    """The shortest form of many items that still tells where to look: how many there are, in which folders, and the
    first of them, which are given in their usual form."""
    folders, others = by_folder(per_file)
    counts = {**dict(folders), **({"others": others} if others else {})}
    return {"total": total, "folders": counts, "first": list(first[:EXAMPLES])}


def by_folder(per_file: Mapping[str, int], most: int = FOLDERS) -> tuple[list[tuple[str, int]], int]:
    """Counts of at most `most` folders, the largest first and told apart furthest, and how much lies in others."""
    folders = _Folders(per_file)
    shown = Counter(folders.parts(""))
    largest = [(-count, folder) for folder, count in shown.items()]
    heapq.heapify(largest)
    while largest:
        _, folder = heapq.heappop(largest)
        if folder == "./":
            continue
        room = most - len(shown) + 1
        parts = folders.parts(folder, room)
        if len(parts) > room:
            continue
        del shown[folder]
        shown.update(parts)
        for part, count in parts.items():
            if part != folder:  # else its own files
                heapq.heappush(largest, (-count, part))
    first = shown.most_common(most)
    return first, sum(shown.values()) - sum(count for _, count in first)


class _Folders:
    """Counts by file, added up for folders ("" or with a slash at their ends): those below one stand side by side in
    sorted paths, so that only folders that are shown are looked through."""

    def __init__(self, per_file: Mapping[str, int]) -> None:
        self._paths = sorted(per_file)
        self._until = [0, *accumulate(map(per_file.__getitem__, self._paths))]
        """Counts of so many first paths together."""

    def parts(self, folder: str, most: int = sys.maxsize) -> dict[str, int]:
        """The folders of one and what lies in each, and its own files under its own name, `./` for the root's; one
        more than `most` if there are more."""
        paths, until, found, own = self._paths, self._until, dict[str, int](), folder or "./"
        place = bisect_left(paths, folder)
        end = self._end(folder) if folder else len(paths)
        while place < end and len(found) <= most:
            slash = paths[place].find("/", len(folder))
            part = paths[place][: slash + 1] if slash >= 0 else own
            behind = self._end(part, place, end) if slash >= 0 else place + 1
            found[part] = found.get(part, 0) + until[behind] - until[place]
            place = behind
        return found

    def _end(self, folder: str, start: int = 0, end: int | None = None) -> int:
        """The place behind the paths that begin with a folder's."""
        behind = folder[:-1] + chr(ord("/") + 1)
        return bisect_left(self._paths, behind, start, end)


class _Json(str):
    """A text that is JSON. What is cut out of it is none, and a plain string."""

    __slots__ = ()


class _Fitted(NamedTuple):
    text: str
    says: str = ""
    """The sentence before it that says what it leaves out; empty for a complete answer."""
    shown: range = range(0)
    """Of a list, the items that stand in it in their usual form."""


class Fitted(NamedTuple):
    text: str
    """The sentences that say what the answer leaves out, one a line, and the answer."""
    shortened: bool
    data: str | None
    """The answer alone, if it is JSON."""
    shown: Sequence[tuple[Listing, range]] = ()
    """Which items of which lists stand in it in their usual form."""

    def record(self) -> None:
        """Has what is shown recorded. Call it on the event loop's thread, and once."""
        for listing, items in self.shown:
            if listing.shown is not None:
                listing.shown(items.start, items.stop)


def fit(results: Mapping[str, Any], limit: int, *, grouped: bool) -> Fitted:
    """An answer of `limit` bytes of UTF-8 at most: what a client pays for a text is nearer to them than to characters.

    `results` maps project name → what the tool returned there; without `grouped` it has one entry, which stands bare.
    Of several, those that are short enough leave their room to the others. Only the sentence that says what was left
    out may pass a limit that is shorter than itself. Safe in any thread: forms and items are built of what the tool has
    collected before.
    """
    limit = min(limit, MAX_CHARS)
    says, text, fitted = _fit(results, limit, limit, grouped=grouped)
    for chars in _shorter("\n".join([*says, text]), limit):
        says, text, fitted = _fit(results, chars, limit, grouped=grouped)
        if size_of("\n".join([*says, text])) <= limit:
            break
    shown = [
        (result, fitted[name].shown)
        for name, result in results.items()
        if isinstance(result, Listing) and fitted[name].shown
    ]
    return Fitted("\n".join([*says, text]), bool(says), str(text) if isinstance(text, _Json) else None, shown)


def _shorter(text: str, limit: int) -> Iterator[int]:
    """Numbers of characters to try for a text that has more bytes than `limit`; the last fits whatever is in it."""
    size = size_of(text)
    if size > limit and not text.isascii():
        yield len(text) * limit // size
        yield len(text) * limit // size * 3 // 4
        yield limit // MOST_BYTES


def size_of(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut_to(text: str, room: int) -> str:
    """As many of its characters as `room` bytes hold."""
    return text[:room] if text.isascii() else text.encode()[:room].decode(errors="ignore")


def _fit(
    results: Mapping[str, Any], room: int, limit: int, *, grouped: bool
) -> tuple[list[str], str, dict[str, _Fitted]]:
    """In `room` characters: what is left out, which names the limit; the answer, and its parts by project."""
    if grouped:
        fitted = _fit_groups(results, room, limit)
        says = [f"{quoted(name)}: {one.says}" for name, one in fitted.items() if one.says]
        return says, _Json("{" + ",".join(f"{_encode(name)}:{one.text}" for name, one in fitted.items()) + "}"), fitted
    fitted = {name: _fitted(result, room, limit, bare=True) for name, result in results.items()}
    (one,) = fitted.values()
    return [one.says] if one.says else [], one.text, fitted


def _fit_groups(results: Mapping[str, Any], room: int, limit: int) -> dict[str, _Fitted]:
    """Each of several in its share; those that are short enough leave their room to the others."""
    room = room - sum(len(_encode(name)) + 2 for name in results) - 2
    whole = {name: one for name, result in results.items() if (one := _whole(result)) is not None}
    if len(whole) == len(results) and sum(len(one.text) for one in whole.values()) <= room:
        return whole
    share = room // len(results)
    short = {name: one for name, one in whole.items() if len(one.text) <= share}
    room = (room - sum(len(one.text) for one in short.values())) // max(len(results) - len(short), 1)
    return {
        name: short[name] if name in short else _fitted(result, room, limit, bare=False)
        for name, result in results.items()
    }


def _whole(result: Any) -> _Fitted | None:
    """The full form; None where that is certainly too long, or the caller asked for a page."""
    match result:
        case Shaped():
            return _Fitted(_encode(result.forms[0].build()))
        case Listing():
            full = next((form for form in result.forms if not form.says), None)
            return None if full is None else _Fitted(_encode(full.build()), shown=range(result.total))
        case _:
            return _Fitted(_encode(result))


def _fitted(result: Any, room: int, limit: int, *, bare: bool) -> _Fitted:
    """In `room` characters. `bare`: a string stands for itself, and need not be JSON."""
    if isinstance(result, Listing):
        fitted = _first_that_fits(result.forms, result.narrow, room, limit, bare=bare)
        if fitted is None:
            return _page(result, room, bare=bare)
        return fitted if fitted.says else fitted._replace(shown=range(result.total))
    forms, narrow = result if isinstance(result, Shaped) else ([Form("", lambda: result)], "Narrow the request.")
    fitted = _first_that_fits(forms, narrow, room, limit, bare=bare)
    if fitted is not None:
        return fitted
    last = _in_form(forms[-1], narrow, limit, bare=bare)
    # The sentence alone keeps no form from fitting.
    return last if last.says and len(last.text) <= room else _cut(last.text, narrow, room, bare=bare)


def _page(listing: Listing, room: int, *, bare: bool) -> _Fitted:
    text, says, shown = listing.fitting(room, lambda value: _render(value, bare=bare))
    if len(text) <= room:
        return _Fitted(text, says, shown)
    # One item that is too long, which is not shown in its usual form.
    item = f"{listing.noun} {shown.start + 1}"
    if listing.brief is not None:
        brief = _render(listing.brief(shown.start, shown.stop), bare=bare)
        note = f"{says} Shortened: {item} has {len(text)} characters."
        if len(brief) + len(note) < room:
            return _Fitted(brief, note)
    note = f"{says} Truncated: {item} has {len(text)} characters."
    kept = text[: max(room - len(note) - 1, 0)]
    return _Fitted(kept if bare else _encode(kept), note)


def _first_that_fits(forms: Sequence[Form], narrow: str, room: int, limit: int, *, bare: bool) -> _Fitted | None:
    for form in forms:
        fitted = _in_form(form, narrow, limit, bare=bare)
        if len(fitted.text) + len(fitted.says) + bool(fitted.says) <= room:
            return fitted
    return None


def _in_form(form: Form, narrow: str, limit: int, *, bare: bool) -> _Fitted:
    says = f"The full answer exceeds {limit} bytes; it is shown {form.says}. {narrow}" if form.says else ""
    return _Fitted(_render(form.build(), bare=bare), says)


def _cut(text: str, narrow: str, room: int, *, bare: bool) -> _Fitted:
    says = f"Even the shortest form of the answer has {len(text)} characters; it is truncated to {room}. {narrow}"
    kept = text[: max(room - len(says) - 1, 0)]
    return _Fitted(kept if bare else _encode(kept), says)


def _render(value: Any, *, bare: bool) -> str:
    return encodable(value) if bare and isinstance(value, str) else _encode(value)


def _encode(value: Any) -> _Json:
    return _Json(visible_json(lossy_json(value).decode()))
