"""Searches the contents of files for a pattern, and shows lines around each match.

A search reads the disk as it is now, except for what a `Corpus` keeps for the stamp that a file has now. It is bounded
in time and size whatever the pattern is, and its notes say what is missing from the answer, texts that are not valid in
their encoding included. Binary files hold no text and are passed over. Which files are asked is the caller's choice.
"""

import re
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast, overload

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar

from serena_central.core.allocator import read_shortly
from serena_central.core.errors import InvalidArguments, NotInEncoding, PathError, PathNotFound
from serena_central.core.progress import waiting_for
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.files.corpus import Block, Corpus, holds_needed, lines_of
from serena_central.files.glob import BadGlob, expand_braces, translate_part, translate_path
from serena_central.files.matching_lines import first_matches
from serena_central.files.pattern import Pattern
from serena_central.files.stamp import Stamp
from serena_central.files.text import (
    DEFAULT_ENCODING,
    WIDE_MARKS,
    decode,
    read_bytes,
    read_quickly,
)

DEADLINE_S = 10.0
"""A search of 100,000 files takes 2 s; what takes longer than this is the pattern's fault."""

MAX_CHARS = 5_000_000
"""The bound of every answer, in characters of its lines."""

MAX_GLOB_CHARS = 50_000
"""Of a glob with its braces expanded; nobody writes a longer one, and compiling is not interrupted by a deadline."""

MAX_LINE_CHARS = 1_000
"""Longer lines (minified code, data) are cut around their match."""

MARK_CHARS = 8
"""Before each line: whether it is a match, and its number."""

LEAST_CHARS = MARK_CHARS + 1
"""Of an empty line, with its end."""

FILES_NAMED = 3
"""Of those that could not be decoded."""

_LEAD_CHARS = 200
"""How much of a long line is shown before its match."""

MOST_AT_ONCE = 4
"""Searches that run at the same time in this process; the others wait, so that the event loop gets its share."""

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("search_limiter")


class SearchRequest(msgspec.Struct, frozen=True):
    """What to search for; `literal`: this very text. Without `multiline` a match lies within one line; with it the
    pattern is matched against the whole text and `.` matches line breaks. Globs know `**` and `{a,b}`; one that names a
    folder means all below it, one without `/` is matched at any depth."""

    pattern: str
    before: int = 0
    after: int = 0
    include: str = ""
    exclude: str = ""
    multiline: bool = False
    literal: bool = False
    encoding: str | None = None


class SearchResult(msgspec.Struct):
    """`hits`: path → lines as `  >   1:text` (part of a match) or `...   2:text` (context), 0-based line numbers."""

    hits: dict[str, Sequence[str]] = {}
    matches: int = 0
    notes: list[str] = []


class Source(NamedTuple):
    """Where texts come from that need not be read: a root's corpus, and the stamps that its files have now."""

    corpus: Corpus
    stamps: Mapping[str, Stamp]


async def search(
    root: Path,
    paths: Iterable[str],
    request: SearchRequest,
    *,
    deadline_s: float = DEADLINE_S,
    source: Source | None = None,
) -> SearchResult:
    """Searches the files at `paths`, relative to `root`, in the given order, in a thread; ends soon when cancelled.

    Raises:
        InvalidArguments: a pattern or glob that is not well-formed.
    """
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MOST_AT_ONCE)
        _limiter.set(limiter)
    stop = threading.Event()
    asked, read = list(paths), [0]
    work = partial(_search, root, asked, request, deadline_s, stop.is_set, read, source)

    def how_far() -> tuple[str, float | None]:
        return f"{read[0]:,} of {len(asked):,} files searched", read[0] / max(len(asked), 1)

    try:
        with waiting_for(how_far):
            return await anyio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)
    finally:
        stop.set()


def glob_filter(glob: str) -> Callable[[str], bool] | None:
    """Tells whether a path fits a glob as `SearchRequest` describes it; None for an empty one.

    Raises:
        InvalidArguments: the glob can match nothing.
    """
    if not glob:
        return None
    expanded = expand_braces(glob[: MAX_GLOB_CHARS + 1])
    length = sum(map(len, expanded))
    if length > MAX_GLOB_CHARS:
        raise InvalidArguments(
            f"The glob has {length} or more characters with its braces expanded; the limit is {MAX_GLOB_CHARS}."
        )
    try:
        alternatives = "|".join([_path_regex(one) for one in expanded])
    except BadGlob as error:
        raise InvalidArguments(f"{glob!r} is not a valid glob.") from error
    compiled = re.compile(f"(?:{alternatives})(?:/.*)?", re.DOTALL)
    return lambda path: compiled.fullmatch(path) is not None


def _path_regex(glob: str) -> str:
    trimmed = glob.removeprefix("./").removeprefix("/").rstrip("/")
    if "/" in trimmed:
        return translate_path(trimmed)
    return ("" if glob.startswith(("/", "./")) else "(?:.*/)?") + translate_part(trimmed)


def _search(
    root: Path,
    paths: Sequence[str],
    request: SearchRequest,
    deadline_s: float,
    stopped: Callable[[], bool],
    read: list[int],
    source: Source | None,
) -> SearchResult:
    """`read[0]` counts the files."""
    import regex  # late, as in `files/pattern`

    literal = regex.escape(request.pattern) if request.literal else request.pattern
    deadline = time.monotonic() + deadline_s
    pattern = Pattern(literal, dot_matches_newline=request.multiline, deadline=deadline)
    wanted, unwanted = glob_filter(request.include), glob_filter(request.exclude)
    chosen = paths
    if wanted is not None or unwanted is not None:
        chosen = [p for p in paths if (wanted is None or wanted(p)) and (unwanted is None or not unwanted(p))]
    found = _Found(pattern, request)
    result = found.result

    def go_on(number: int) -> bool:
        read[0] = number
        return not stopped() and time.monotonic() < deadline

    try:
        for block in _blocks(root, chosen, found, source, go_on):
            try:
                found.look(block)
            except TimeoutError:
                where = (
                    block.paths[0]
                    if block.text_count == 1
                    else f"one of {block.text_count} files from {block.paths[0]} on"
                )
                result.notes.append(
                    f"incomplete: the search was stopped after {deadline_s:g} s in {where}; {read[0]} of {len(chosen)} "
                    "files were searched. Simplify the pattern or name fewer files."
                )
                break
            if found.room <= 0:
                result.notes.append(
                    f"truncated: the matches exceed {MAX_CHARS / 1e6:g} MB; {read[0] + block.text_count} of "
                    f"{len(chosen)} files were searched. Narrow the search."
                )
                break
    except _TimeIsUp:
        result.notes.append(
            f"incomplete: the search was stopped after {deadline_s:g} s; {read[0]} of {len(chosen)} files were "
            "searched. Name fewer files, or search again: files that were read before are read sooner."
        )
    if found.undecoded:
        result.notes.append(_not_decoded(found.undecoded))
    result.hits = {path: result.hits[path] for path in filter(result.hits.__contains__, chosen)}
    return result


def _not_decoded(files: Mapping[str, str]) -> str:
    """A note on the files (path → encoding) that are not valid in their encodings."""
    are = "is not valid in its encoding and was" if len(files) == 1 else "are not valid in their encoding and were"
    some = ", ".join(f"{quoted(path)} ({encoding})" for path, encoding in islice(files.items(), FILES_NAMED))
    more = f" and {len(files) - FILES_NAMED} more" if len(files) > FILES_NAMED else ""
    return f"incomplete: {counted(len(files), 'file')} {are} not searched: {some}{more}"


class _TimeIsUp(Exception):
    """A search has to end before all its files are read."""


def _blocks(
    root: Path,
    paths: Sequence[str],
    found: "_Found",
    source: Source | None,
    go_on: Callable[[int], bool],
) -> Iterator[Block]:
    """The texts of files: what is kept of them, then the others, one by one; without some that certainly have no match.
    `go_on` is told how many files come before a block, and whether to read it. What can't be read is noted.

    Raises:
        _TimeIsUp
    """
    in_utf8 = found.request.encoding in (None, DEFAULT_ENCODING)
    needed = found.pattern.needed_bytes if in_utf8 else ()
    missing, behind = paths, 0
    if source is not None and in_utf8:
        blocks, missing = source.corpus.blocks(paths, source.stamps, go_on)
        for block in blocks:
            if not go_on(behind):
                raise _TimeIsUp
            behind += block.text_count
            yield from block.singly(_may_match(block, found.pattern)) if found.one_by_one else (block,)
    for number, path in enumerate(missing, behind):
        if not go_on(number):
            raise _TimeIsUp
        text = _text_that_may_match(root, path, found, needed)
        if text is not None:
            yield Block.of(path, text)


def _may_match(block: Block, pattern: Pattern) -> set[int] | None:
    """The numbers of its texts that hold what a pattern needs, on whichever lines; None where that can't be told."""
    if pattern.needles is None:
        return None
    data, starts, ends = block.data, block.starts, block.ends
    holding = {bisect_right(starts, place) - 1 for place in pattern.needles.first_in_lines(data)}
    needed = [pattern.others]
    return {number for number in holding if holds_needed(data, needed, starts[number], ends[number])}


def _text_that_may_match(root: Path, path: str, found: "_Found", needed: Sequence[Sequence[bytes]]) -> bytes | None:
    """What stands in a file; None if that is not text, or certainly has no match. What can't be read is noted."""
    if needed:
        data = read_quickly(f"{root}/{path}")  # empty for a pipe, too, of which is to be told
        read_shortly(len(data or b""))
        if data and not data.startswith(WIDE_MARKS) and not holds_needed(data, needed):
            return None
    try:
        data, _ = read_bytes(f"{root}/{path}")
    except PathNotFound:  # gone since it was listed
        return None
    except PathError as error:
        found.result.notes.append(f"incomplete: {error}")
        return None
    read_shortly(len(data))
    return _text(data, path, found)


def _text(data: bytes, path: str, found: "_Found") -> bytes | None:
    """What stands in a file, as the corpus would keep it; None if that is not text. What should be is noted."""
    try:
        decoded = decode(data, path, found.request.encoding)
    except NotInEncoding as error:
        found.undecoded[path] = error.encoding
        return None
    except PathError:
        return None
    in_utf8 = decoded.encoding == DEFAULT_ENCODING
    return lines_of(data if in_utf8 else decoded.content.encode("utf-8", "surrogateescape"))


class _Found:
    """Collects what matches. `room`: characters that the answer may still have, before lines that were not counted yet;
    `one_by_one`: whether each text has to be looked at by itself."""

    def __init__(self, pattern: Pattern, request: SearchRequest) -> None:
        self.pattern = pattern
        self.request = request
        self.result = SearchResult()
        self.room = MAX_CHARS
        self.undecoded: dict[str, str] = {}
        """Path → the encoding that it is not valid in."""
        self._uncounted: list[MatchingLines] = []
        """Lines are measured only when the answer may become too long …"""
        self._most_uncounted = 0
        """… with so many more characters."""
        self._unestimated: list[MatchingLines] = []
        """These have not even been looked at for that …"""
        self._most_unestimated = 0
        """… and have so many characters if all of them are long."""
        self.one_by_one = bool(request.multiline or request.before or request.after)

    def look(self, block: Block) -> None:
        """Adds what is found in some texts.

        Raises:
            TimeoutError
        """
        if self.one_by_one:
            self._add_with_context(block)
        else:
            self._add(block, first_matches(block.data, self.pattern))

    def _add(self, block: Block, found: Iterator[int]) -> None:
        """The lines of matches; `found` are the places of these, in order."""
        if block.wanted is not None:
            starts, wanted = block.starts, block.wanted
            found = (place for place in found if bisect_right(starts, place) - 1 in wanted)
        places = array("Q")
        try:
            places.extend(islice(found, self.room // LEAST_CHARS + 1))
        finally:  # what was found before a deadline counts
            self._add_places(block, places)

    def _add_places(self, block: Block, places: "array[int]") -> None:
        data, starts, paths, hits = block.data, block.starts, block.paths, self.result.hits
        count, text_count = len(places), len(starts)
        first = 0
        while first < count and self.room > 0:
            number = bisect_right(starts, places[first])
            start, end = starts[number - 1], starts[number] if number < text_count else len(data)
            last = count if places[-1] < end else bisect_left(places, end, first)
            lines = hits[paths[number - 1]] = MatchingLines(data, start, places[first:last])
            self._unestimated.append(lines)
            many = last - first
            self._most_unestimated += many * (MAX_LINE_CHARS + MARK_CHARS)
            if self._most_uncounted + self._most_unestimated >= self.room:
                self._estimate()
                many = len(lines)
            self.result.matches += many
            first = last
        if places and len(block.paths) == 1:
            # Nothing but the answer would keep this text: the lines of a large one lie in 100 MB of them.
            self._estimate()
            self._count()
            hits[paths[0]] = list(hits[paths[0]])

    def _estimate(self) -> None:
        """Takes a closer look at how long lines may be, and counts them if it has to."""
        self._most_uncounted += sum(lines.most_chars() for lines in self._unestimated)
        self._uncounted += self._unestimated
        self._unestimated, self._most_unestimated = [], 0
        if self._most_uncounted >= self.room:
            self._count()

    def _count(self) -> None:
        """Takes the room that lines need which were only estimated, and drops those that there is none for."""
        for lines in self._uncounted:
            self.room = lines.cut_to(self.room)
        self._uncounted, self._most_uncounted = [], 0

    def _add_with_context(self, block: Block) -> None:
        """The lines of matches in one text, and those around them."""
        text = block.data[: block.ends[0]].decode("utf-8", "surrogateescape")
        columns: dict[int, int] = {}
        if self.request.multiline:
            for first, last, column in _in_text(self.pattern, text) if text else ():
                self.result.matches += 1
                columns.setdefault(first, column)
                for line0 in range(first + 1, last + 1):
                    columns.setdefault(line0, 0)
        else:
            places = first_matches(block.data, self.pattern)
            columns = {line0: column for line0, column, _ in _lines_at(block.data, 0, places)}
            self.result.matches += len(columns)
        if not columns:
            return
        shown = self.result.hits[block.paths[0]] = list[str]()
        for line in _with_context(text.split("\n"), columns, self.request.before, self.request.after):
            shown.append(line)
            self.room -= len(line)
            if self.room <= 0:
                break


class MatchingLines(Sequence[str]):  # noqa: PLW1641 - equal to any sequence of the same lines, and in no set
    """Lines of a text in which something matches, as an answer shows them: made when somebody looks at one."""

    __slots__ = ("_data", "_places", "_shown", "_start")

    def __init__(self, data: bytes, start: int, places: "array[int]") -> None:
        """`places`, in order, are where the first match of each begins in the block `data`; the text begins at
        `start`."""
        self._data = data
        self._start = start
        self._places = places
        self._shown: list[str] | None = None

    def most_chars(self) -> int:
        """No more characters than these has an answer with all of them: from the first of these lines to the last."""
        data, places, count = self._data, self._places, len(self._places)
        most, stretch = count * MAX_LINE_CHARS, data.find(b"\n", places[-1]) - data.rfind(b"\n", 0, places[0])
        return (stretch if stretch < most else most) + count * MARK_CHARS

    def cut_to(self, room: int) -> int:
        """Drops the lines behind the one that exceeds `room`; returns what is left of it."""
        find, rfind = self._data.find, self._data.rfind
        for number, place in enumerate(self._places):
            length = find(b"\n", place) - rfind(b"\n", 0, place)
            room -= (length if length < MAX_LINE_CHARS else MAX_LINE_CHARS) + MARK_CHARS
            if room <= 0:
                del self._places[number + 1 :]
                break
        return room

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if self._shown is None:
            found = _lines_at(self._data, self._start, self._places)
            self._shown = [f"  >{line0:>4}:{_cut(line, column)}" for line0, column, line in found]
        return self._shown[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(cast("Sequence[object]", other))


def _lines_at(data: bytes, start: int, places: Iterable[int]) -> Iterator[tuple[int, int, str]]:
    """Number, column of the place, and text of each line in which a place lies, of the text that begins at `start`."""
    counted, line0 = start, 0
    for place in places:
        begin, end = data.rfind(b"\n", start, place) + 1 or start, data.find(b"\n", place)
        line0 += data.count(b"\n", counted, begin)
        counted, column = begin, place - begin
        line = data[begin:end].decode("utf-8", "surrogateescape")
        if len(line) < end - begin:
            column = len(data[begin:place].decode("utf-8", "surrogateescape"))
        yield line0, column, line


def _in_text(pattern: Pattern, text: str) -> Iterator[tuple[int, int, int]]:
    """First line, last line and column of each match; a line break that ends a match begins no further line."""
    counted = line0 = 0
    for start, end in pattern.find_all(text):
        line0 += text.count("\n", counted, start)
        counted = start
        yield line0, line0 + text.count("\n", start, max(start, end - 1)), start - text.rfind("\n", 0, start) - 1


def _with_context(lines: Sequence[str], columns: Mapping[int, int], before: int, after: int) -> Iterator[str]:
    """The lines of matches (line → column where its match starts) and those around, each once, in order."""
    count = len(lines) - (lines[-1] == "" and len(lines) - 1 not in columns)  # what follows the last line break
    shown = 0
    for matched in sorted(columns):
        for line0 in range(max(matched - before, shown), min(matched + after + 1, count)):
            mark = "  >" if line0 in columns else "..."
            yield f"{mark}{line0:>4}:{_cut(lines[line0], columns.get(line0, 0))}"
            shown = line0 + 1


def _cut(line: str, column: int) -> str:
    """A line, or the part of a long one where the match is, with the number of characters left out on either side."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    start = max(0, min(column - _LEAD_CHARS, len(line) - MAX_LINE_CHARS))
    rest = len(line) - start - MAX_LINE_CHARS
    head = f"[…{start} characters] " if start else ""
    tail = f" [{rest} characters…]" if rest else ""
    return f"{head}{line[start : start + MAX_LINE_CHARS]}{tail}"
