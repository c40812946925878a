"""Searches the contents of files: for a pattern, with lines around each match, and for a word, for candidates.

A search reads the disk as it is now and keeps nothing. It is bounded in time and size whatever the pattern is, and its
notes say what is missing from the answer. Binary files hold no text and are passed over. Which files are asked is
the caller's choice.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import regex
from anyio.lowlevel import RunVar

from serena_central.core.errors import InvalidArguments, PathError, PathNotFound
from serena_central.core.progress import waiting_for
from serena_central.files.glob import BadGlob, expand_braces, translate_part, translate_path
from serena_central.files.pattern import Pattern
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
"""Threads that look for candidates: a disk answers several questions at once. 100,000 files that were not in memory
took 3.8 s (one thread: 10.2; eight: 3.3), and a fifth longer than one thread when they were."""

FILES_PER_READER = 1000
"""Fewer are not worth another thread."""

_LEAD_CHARS = 200
"""How much of a long line is shown before its match."""

MOST_AT_ONCE = 4
"""Searches that run at the same time in this process; the others wait, so that the event loop gets its share."""

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")

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


async def search(
    root: Path, paths: Iterable[str], request: SearchRequest, *, deadline_s: float = DEADLINE_S
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
    work = partial(_search, root, asked, request, deadline_s, stop.is_set, read)

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
    """`files_containing` in the order of `paths`; reads in a thread, in several where there are many files."""
    asked = list(paths)
    readers = min(READERS, len(asked) // FILES_PER_READER + 1)
    found: set[str] = set()

    async def read(some: Sequence[str]) -> None:
        work = partial(files_containing, root, some, word, whole=whole, encoding=encoding)
        found.update(await anyio.to_thread.run_sync(work))

    async with anyio.create_task_group() as tasks:
        for nth in range(readers):
            tasks.start_soon(read, asked[nth::readers])
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
        if data.startswith(_WIDE_MARKS):
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
) -> SearchResult:
    """`read[0]` counts the files."""
    source = regex.escape(request.pattern) if request.literal else request.pattern
    pattern = Pattern(source, dot_matches_newline=request.multiline, deadline=time.monotonic() + deadline_s)
    wanted, unwanted = glob_filter(request.include), glob_filter(request.exclude)
    chosen = [p for p in paths if (wanted is None or wanted(p)) and (unwanted is None or not unwanted(p))]
    result = SearchResult()
    room = MAX_CHARS
    needed = pattern.needed.encode() if request.encoding in (None, DEFAULT_ENCODING) else b""
    for number, path in enumerate(chosen):
        if stopped():
            break
        read[0] = number
        data = _read(f"{root}/{path}", needed, result)
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


def _read(file: str, needed: bytes, result: SearchResult) -> bytes | None:
    """A file that may have matches: None after a first look, if what every match needs is certainly not in it."""
    if needed:
        data = read_quickly(file)  # empty for a pipe, too, of which is to be told
        if data and needed not in data and not data.startswith(_WIDE_MARKS):
            return None
    try:
        return read_bytes(file)[0]
    except PathNotFound:  # gone since it was listed
        return None
    except PathError as error:
        result.notes.append(f"incomplete: {error}")
        return None


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
    columns: dict[int, int] = {}
    for first, last, column in _in_text(pattern, text) if request.multiline else _in_lines(pattern, text):
        result.matches += 1
        columns.setdefault(first, column)
        for line0 in range(first + 1, last + 1):
            columns.setdefault(line0, 0)
    if not columns:
        return 0
    used = 0
    shown = result.hits.setdefault(path, [])
    for line in _with_context(text.split("\n"), columns, request.before, request.after):
        shown.append(line)
        used += len(line)
        if used >= room:
            break
    return used


def _in_lines(pattern: Pattern, text: str) -> Iterator[tuple[int, int, int]]:
    """First line, last line (the same) and column of each line's first match.

    The whole text is asked first, which is quicker than asking each line; what it finds may reach over a line's end,
    so the line has to confirm.
    """
    if not text:
        return
    text = text.removesuffix("\n")
    if pattern.sees_beyond:
        for line0, line in enumerate(text.split("\n")):
            if (own := pattern.search(line)) is not None:
                yield line0, line0, own[0]
        return
    start = line0 = 0
    while (found := pattern.search(text, start)) is not None:
        line0 += text.count("\n", start, found[0])
        begin = text.rfind("\n", 0, found[0]) + 1
        end = text.find("\n", found[0])
        own = pattern.search(text[begin:end] if end >= 0 else text[begin:])
        if own is not None:
            yield line0, line0, own[0]
        if end < 0:
            return
        start = end + 1
        line0 += 1


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
