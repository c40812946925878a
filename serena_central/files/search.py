"""Searches the contents of files: for a pattern, with lines around each match, and for a word, for candidates.

A search reads the disk as it is now, except for what a `Corpus` keeps for the stamp that a file has now. It is bounded
in time and size whatever the pattern is, and its notes say what is missing from the answer. Binary files hold no text
and are passed over. Which files are asked is the caller's choice.
"""

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar

from serena_central.core.errors import InvalidArguments, PathError, PathNotFound
from serena_central.core.progress import waiting_for
from serena_central.files.corpus import WIDE_MARKS, Corpus
from serena_central.files.glob import BadGlob, expand_braces, translate_part, translate_path
from serena_central.files.pattern import Pattern
from serena_central.files.stamp import Stamp
from serena_central.files.text import DEFAULT_ENCODING, decode, encodings_of, read_bytes, read_each, read_quickly

DEADLINE_S = 10.0
"""A search of 100,000 files takes 2 s; what takes longer than this is the pattern's fault."""

MAX_CHARS = 5_000_000
"""The bound of every answer, in characters of its lines."""

MAX_GLOB_CHARS = 50_000
"""Of a glob with its braces expanded; nobody writes a longer one, and compiling is not interrupted by a deadline."""

MAX_LINE_CHARS = 1_000
"""Longer lines (minified code, data) are cut around their match."""

READERS = 4
"""Threads that look for candidates where they wait for the disk, which answers several questions at once: 100,000 files
that were not in memory took 3.8 s (one thread: 10.2; eight: 3.3). Those that are take one thread, beside which others
only compete for the interpreter: 55,000 took 1.6 s, with four threads 2.6."""

READ_AT_ONCE = 500
"""Files that one reader takes."""

WAITING = 2.0
"""A reader that takes so many times its CPU time waits for the disk, or for other programs."""

TELLING_CHARS = 3
"""A text this long stands in few lines that do not match; for a shorter one the whole text is matched."""

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

    hits: dict[str, list[str]] = {}
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


async def find_containing(
    root: Path, paths: Iterable[str], word: str, *, whole: bool = True, encoding: str | None = None
) -> list[str]:
    """`files_containing` in the order of `paths`; reads in a thread, in several where it waits for the disk."""
    asked = list(paths)
    parts = iter([asked[start : start + READ_AT_ONCE] for start in range(0, len(asked), READ_AT_ONCE)])
    readers = 1
    found: set[str] = set()

    def look(some: Sequence[str]) -> bool:
        began, cpu_before = time.perf_counter(), time.thread_time()
        found.update(files_containing(root, some, word, whole=whole, encoding=encoding))
        return time.perf_counter() - began > WAITING * (time.thread_time() - cpu_before)

    async def read() -> None:
        nonlocal readers
        for some in parts:
            if await anyio.to_thread.run_sync(look, some) and readers < READERS:
                readers += 1
                tasks.start_soon(read)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
    return [path for path in asked if path in found]


def files_containing(
    root: Path,
    paths: Iterable[str],
    word: str,
    *,
    whole: bool = True,
    encoding: str | None = None,
    ignore_case: bool = False,
) -> list[str]:
    """Those of `paths` whose bytes contain `word`; `whole`: as a word, which no ASCII letter, digit or `_` continues.

    Candidates, for somebody who looks closer: rather one too many. Files that can't be read are none. In the calling
    thread.
    """
    if not word:
        return []
    needles = encodings_of(word, encoding)
    contains = _word_finder(needles, whole=whole, ignore_case=ignore_case)
    usual, *others = needles
    found: list[str] = []
    for path, data in read_each(root, paths):
        if data.startswith(WIDE_MARKS):
            try:
                data = decode(data, path).content.encode("utf-8", "surrogatepass")  # noqa: PLW2901 - the same text
            except PathError:
                continue
        # Most files hold the word in no form: that is known ten times as quickly as by an expression.
        if (ignore_case or usual in data or (others and any(needle in data for needle in others))) and contains(data):
            found.append(path)
    return found


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
    chosen = [p for p in paths if (wanted is None or wanted(p)) and (unwanted is None or not unwanted(p))]
    result = SearchResult()
    room = MAX_CHARS
    in_utf8 = request.encoding in (None, DEFAULT_ENCODING)
    needed = [[one.encode() for one in texts] for texts in pattern.needed] if in_utf8 else []

    def go_on(number: int) -> bool:
        read[0] = number
        return not stopped() and time.monotonic() < deadline

    texts = _Texts(root, needed, source if in_utf8 else None, result)
    lacking = texts.look(chosen, go_on)
    for number, path in enumerate(chosen):
        if path in lacking:
            continue
        if stopped():
            break
        read[0] = number
        data = texts.read(path)
        if data is None:
            continue
        try:
            room -= _search_data(path, data, pattern, request, result, room)
        except TimeoutError:
            result.notes.append(
                f"incomplete: the search was stopped after {deadline_s:g} s in {path}; {number} of {len(chosen)} "
                "files were searched. Simplify the pattern or name fewer files."
            )
            break
        if room <= 0:
            result.notes.append(
                f"truncated: the matches exceed {MAX_CHARS / 1e6:g} MB; {number + 1} of {len(chosen)} files were "
                "searched. Narrow the search."
            )
            break
    return result


class _Texts:
    """How a search gets at the bytes of files. `needed`: alternatives, the bytes of one of which all stand in each file
    that matches; none if that isn't known."""

    def __init__(
        self, root: Path, needed: Sequence[Sequence[bytes]], source: Source | None, result: SearchResult
    ) -> None:
        self._folder = f"{root}/"
        self._needed = needed
        self._source = source
        self._result = result
        self._kept: Collection[str] = ()

    def look(self, paths: Collection[str], go_on: Callable[[int], bool]) -> Collection[str]:
        """The files that certainly have no match, as far as that can be told of all of them at once."""
        if self._source is None:
            return ()
        corpus = self._source.corpus
        self._kept = kept = corpus.read(paths, self._source.stamps, go_on)
        return kept & corpus.without([rarest for rarest, *_ in self._needed]) if self._needed else ()

    def read(self, path: str) -> bytes | None:
        """None: no match can be in it, which may be for a reason that is noted."""
        if path in self._kept and self._source is not None:
            stamp = self._source.stamps[path]
            data = self._source.corpus.text(path, stamp)
            if data is not None:
                binary = not data and stamp.size
                return data if not binary and self._may_match(data) else None
        if self._needed:
            data = read_quickly(self._folder + path)  # empty for a pipe, too, of which is to be told
            if data and not self._may_match(data) and not data.startswith(WIDE_MARKS):
                return None
        try:
            return read_bytes(self._folder + path)[0]
        except PathNotFound:  # gone since it was listed
            return None
        except PathError as error:
            self._result.notes.append(f"incomplete: {error}")
            return None

    def _may_match(self, data: bytes) -> bool:
        return not self._needed or any(all(one in data for one in texts) for texts in self._needed)


def _search_data(
    path: str, data: bytes, pattern: Pattern, request: SearchRequest, result: SearchResult, room: int
) -> int:
    """Adds what is found in one file; returns how many characters that are, `room` or more when it was cut short."""
    try:
        text = decode(data, path, request.encoding).content
    except PathError:
        return 0
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    used, shown = 0, list[str]()
    for line in _shown(pattern, text, request, result):
        shown.append(line)
        used += len(line)
        if used >= room:
            break
    if shown:
        result.hits[path] = shown
    return used


def _shown(pattern: Pattern, text: str, request: SearchRequest, result: SearchResult) -> Iterator[str]:
    """Lines for an answer; the matches are counted in `result`."""
    if not (request.multiline or request.before or request.after):
        for line0, column, line in _in_lines(pattern, text):
            result.matches += 1
            yield f"  >{line0:>4}:{line if len(line) <= MAX_LINE_CHARS else _cut(line, column)}"
        return
    columns: dict[int, int] = {}
    if request.multiline:
        for first, last, column in _in_text(pattern, text):
            result.matches += 1
            columns.setdefault(first, column)
            for line0 in range(first + 1, last + 1):
                columns.setdefault(line0, 0)
    else:
        columns = {line0: column for line0, column, _ in _in_lines(pattern, text)}
        result.matches += len(columns)
    if columns:
        yield from _with_context(text.split("\n"), columns, request.before, request.after)


def _in_lines(pattern: Pattern, text: str) -> Iterator[tuple[int, int, str]]:
    """Number, column of the first match, and text of each line that matches by itself.

    Lines are asked only where one may match: where what the pattern needs stands, or where it matches the whole text,
    which is quicker than asking each line. What it finds there may reach over the line's end.
    """
    if not text:
        return
    text = text.removesuffix("\n")
    if pattern.needed and min(len(rarest) for rarest, *_ in pattern.needed) >= TELLING_CHARS:
        some, *more = [_lines_holding(text, texts) for texts in pattern.needed]
        lines = sorted({*some, *chain(*more)}) if more else some
    elif pattern.sees_beyond:
        lines = _all_lines(text)
    else:
        lines = _lines_matching(text, pattern)
    counted = line0 = 0
    for begin, end in lines:
        line = text[begin:end]
        column = line.find(pattern.literal) if pattern.literal else _first(pattern.search(line))
        if column >= 0:
            line0 += text.count("\n", counted, begin)
            counted = begin
            yield line0, column, line


def _first(found: tuple[int, int] | None) -> int:
    return -1 if found is None else found[0]


def _lines_holding(text: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Begin and end of the lines in which all of these texts stand."""
    rarest, *others = texts
    found = text.find(rarest)
    while found >= 0:
        begin, end = text.rfind("\n", 0, found) + 1, text.find("\n", found)
        if end < 0:
            end = len(text)
        for other in others:
            if text.find(other, begin, end) < 0:
                break
        else:
            yield begin, end
        found = text.find(rarest, end + 1)


def _all_lines(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield begin, end
        begin = end + 1
    yield begin, len(text)


def _lines_matching(text: str, pattern: Pattern) -> Iterator[tuple[int, int]]:
    start = 0
    while (found := pattern.search(text, start)) is not None:
        end = text.find("\n", found[0])
        yield text.rfind("\n", 0, found[0]) + 1, end if end >= 0 else len(text)
        if end < 0:
            return
        start = end + 1


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


def _word_finder(
    needles: Iterable[bytes], *, whole: bool, ignore_case: bool = False
) -> Callable[[bytes], re.Match[bytes] | None]:
    """Searches bytes for one of the forms of a word.

    What precedes the word is checked behind its match: an expression that starts with a literal is ten times quicker.
    """
    expression = b"|".join(_as_word(needle) if whole else re.escape(needle) for needle in needles)
    return re.compile(expression, re.IGNORECASE if ignore_case else 0).search


def _as_word(needle: bytes) -> bytes:
    literal = re.escape(needle)
    not_before = rb"(?<!\w%s)" % literal if needle[:1].isalnum() or needle[:1] == b"_" else b""
    not_behind = rb"(?!\w)" if needle[-1:].isalnum() or needle[-1:] == b"_" else b""
    return literal + not_before + not_behind
