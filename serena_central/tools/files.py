"""Tools on files and text, for everything that is not a symbol: listings, names, contents, patterns."""

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated

import anyio
from msgspec import Meta

from serena_central.core.errors import InvalidArguments, listed
from serena_central.core.pacing import paced
from serena_central.core.quoting import quoted
from serena_central.core.words import counted
from serena_central.files.boundary import shown
from serena_central.files.glob import expand_braces
from serena_central.files.listing import leads_out, list_folder
from serena_central.files.search import SearchRequest, glob_filter
from serena_central.files.walk import is_utf8
from serena_central.projects.project import Project
from serena_central.symbols.similar_names import FEW, NAMES_COMPARED, nearest
from serena_central.tools.answer import Listing
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_ignored, note_names
from serena_central.tools.symbol_answers import NAME_CHARS, ReadSet, per_file

QUOTES_CHARS = 3
"""What stands around each string of a list, at least: `"",`."""

_HAS_LINE_BREAK = re.compile(r"\n|\\n|\\r|\[\\s\\S\]|\[\\S\\s\]")

FEW_LINES = 100
"""Made in less time than a thread takes to begin with it."""

BRIEF_CHARS = 200
"""Of a line that is too long for an answer."""

Folder = Annotated[str, Meta(description='Folder in the project; "." is its root')]
SkipIgnored = Annotated[bool, Meta(description="Skip ignored files")]


@tool(
    "List a folder",
    answers="{dirs, files}",
    about="files",
    spans=True,
    paged=True,
    if_empty="The folder is empty, or all in it is ignored or closed by a rule.",
)
async def list_dir(
    call: ToolCall,
    target: Project,
    relative_path: Folder,
    recursive: Annotated[bool, Meta(description="Include all subfolders")] = False,
    skip_ignored_files: SkipIgnored = False,
) -> Listing:
    """Folders and files in a folder."""
    await target.fresh()
    folder = target.locate_folder(relative_path)
    ignored = target.tree.is_ignored if skip_ignored_files else None
    if skip_ignored_files:
        note_ignored(call, target)

    def read() -> tuple[list[str], list[str], bool]:
        listed = list_folder(target.root, folder, recursive=recursive, ignored=ignored, hidden=target.access.hides)
        return list(map(shown, listed.folders)), list(map(shown, listed.files)), listed.truncated

    folders, files, truncated = await anyio.to_thread.run_sync(read)
    entries = [*folders, *files]
    if truncated:
        call.note(f"Truncated: only the first {len(entries)} entries are listed.")

    def build(first: int, last: int) -> dict[str, list[str]]:
        return {"dirs": folders[first:last], "files": entries[max(first, len(folders)) : last]}

    return Listing(
        page=call.page,
        total=len(entries),
        window=call.page.window(len(entries), NAME_CHARS),
        noun="entry",
        plural="entries",
        build=build,
        narrow="List a smaller folder, or list without recursion.",
        per_file=Counter(files),
    )


@tool(
    "Find files",
    answers="{files}",
    about="files",
    paged=True,
    if_empty="No file matches. file_mask stands for a whole name, *part* for a part of one. list_dir lists all.",
)
async def find_file(
    call: ToolCall,
    target: Project,
    file_mask: Annotated[
        str, Meta(description="File name or pattern with *, ? and {a,b}; with / a path, ** for folders")
    ],
    relative_path: Folder = ".",
) -> Listing:
    """Files whose name or path matches, in a folder and below. Ignored files are skipped."""
    await target.fresh()
    note_names(call, target)
    folder = target.locate_folder(relative_path)
    prefix = folder + "/" if folder else ""
    fits = _fitting(file_mask, prefix)
    found = [path async for path in paced(target.tree.below(folder)) if fits(path)]
    if not found:
        call.if_empty.append(partial(_near_files, target.tree.below(""), file_mask, fits, relative_path))
    return Listing(
        page=call.page,
        total=len(found),
        window=call.page.window(len(found), NAME_CHARS),
        noun="file",
        build=lambda first, last: {"files": found[first:last]},
        narrow="Pass a stricter mask or a smaller folder.",
        per_file=Counter(found),
    )


async def _near_files(files: Sequence[str], mask: str, fits: Callable[[str], bool], folder: str) -> str:
    """What may be meant: files outside of the folder that fit, or those with a name like the mask."""
    outside = [path async for path in paced(files) if fits(path)]
    if outside:
        return f"No file matches in {quoted(folder)}. Matches elsewhere: {listed(list(map(shown, outside[:FEW])))}."
    name = mask.rpartition("/")[2]
    names = [path.rpartition("/")[2] for path in files]
    close = set(await anyio.to_thread.run_sync(nearest, name, names[:NAMES_COMPARED]))
    if not close:
        return ""
    paths = [shown(path) for path, own in zip(files, names, strict=True) if own in close]
    return f"No file matches. Close matches: {listed(paths[:FEW])}."


def _fitting(mask: str, prefix: str) -> Callable[[str], bool]:
    """Tells whether a path fits: its name; of a mask with a `/`, all of it, from the project or from `prefix` on."""
    if "/" in mask:
        by_path = glob_filter(mask.lstrip("/"))
        return lambda path: by_path is None or by_path(path) or by_path(path.removeprefix(prefix))
    by_name = re.compile("|".join(map(fnmatch.translate, expand_braces(mask)))).match
    return lambda path: by_name(path.rpartition("/")[2]) is not None


@tool("Read a file", about="files", paged=True)
async def read_file(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="File in the project")],
    start_line: Annotated[int, Meta(ge=0, description="First line, 0-based")] = 0,
    end_line: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Last line, 0-based, inclusive; null: to the end")
    ] = None,
) -> Listing:
    """Text of a file or of a range of its lines. Prefer symbol tools for code."""
    await target.fresh()
    path = target.locate_file(relative_path)
    read = await target.read(path)
    text = read.text
    last = text.line_count - 1 if end_line is None else end_line
    if start_line >= text.line_count:
        raise InvalidArguments(
            f"{path} has {text.line_count} lines; start_line {start_line} is past the end of the file."
        )
    if start_line > last:
        raise InvalidArguments(f"start_line {start_line} is after end_line {last}.")
    if read.invalid:
        call.note(
            f"{path} contains bytes that are not valid {read.encoding}; they are shown as replacement characters."
        )
    if not text.content:
        call.note(f"{path} is empty.")
    last = min(last, text.line_count - 1)
    total = last - start_line + 1

    def build(first: int, end: int) -> str:
        whole = first == start_line == 0 and end == text.line_count
        return text.content if whole else text.lines(start_line + first, start_line + end - 1) if end > first else ""

    def saw(first: int, end: int) -> None:
        if is_utf8(path):
            ReadSet(call, target).record_lines(path, read, start_line + first, start_line + end - 1)

    return Listing(
        page=call.page,
        total=total,
        window=call.page.window(total, 1),
        noun="line",
        build=build,
        narrow="Pass start_line and end_line.",
        shown=saw,
    )


@tool(
    "Search for a pattern",
    answers="by file: list of lines",
    about="files",
    paged=True,
    if_empty="No match. (?i) at the start ignores case; skip_ignored_files=false includes ignored files.",
)
async def search_for_pattern(
    call: ToolCall,
    target: Project,
    substring_pattern: Annotated[str, Meta(description="Regular expression (Python); . does not match line breaks")],
    context_lines_before: Annotated[int, Meta(ge=0, le=100, description="Context lines before each match")] = 0,
    context_lines_after: Annotated[int, Meta(ge=0, le=100, description="Context lines after each match")] = 0,
    paths_include_glob: Annotated[str, Meta(description="Only matching files, e.g. src/**/*.{ts,tsx}")] = "",
    paths_exclude_glob: Annotated[str, Meta(description="Files to skip; takes precedence")] = "",
    relative_path: Annotated[str, Meta(description="File or folder; empty: the whole project")] = "",
    restrict_search_to_code_files: Annotated[bool, Meta(description="Only source code, not data or markup")] = False,
    skip_ignored_files: SkipIgnored = True,
    multiline: Annotated[bool, Meta(description="Match across lines; . matches line breaks")] = False,
    literal: Annotated[bool, Meta(description="Treat the pattern as plain text")] = False,
) -> Listing:
    """Lines that match a regular expression, by file. For code, find_symbol and find_referencing_symbols know more."""
    await target.fresh()
    request = SearchRequest(
        substring_pattern,
        before=context_lines_before,
        after=context_lines_after,
        include=paths_include_glob,
        exclude=paths_exclude_glob,
        multiline=multiline or (literal and "\n" in substring_pattern),
        literal=literal,
        encoding=target.settings.encoding,
    )
    paths = await _paths_to_search(call, target, relative_path, ignored=not skip_ignored_files)
    if restrict_search_to_code_files:
        paths = [path async for path in paced(paths) if target.languages.is_searched(path)]
    found = await target.search(paths, request)
    hits = {shown(path): lines for path, lines in found.hits.items()}
    if skip_ignored_files:
        note_names(call, target)
    for note in found.notes:
        call.note(note)
    if not hits and not request.multiline and _HAS_LINE_BREAK.search(substring_pattern):
        call.note("The pattern contains a line break, but lines are matched one by one. Pass multiline: true.")
    if not paths and target.tree.is_ignored(inside := target.locate(relative_path)):
        call.note(f"{quoted(inside)} is ignored and was not searched. Pass skip_ignored_files: false.")
    if not hits and (paths_include_glob or paths_exclude_glob):
        selects = _selecting(paths_include_glob, paths_exclude_glob)
        if not [path async for path in paced(paths) if selects(path)]:
            call.note(f"Nothing was searched: of {counted(len(paths), 'file')} the globs select none.")
    counts = {path: len(some) for path, some in hits.items()}
    total = sum(counts.values())
    window = call.page.window(total, NAME_CHARS)
    fill = partial(_filling, hits, window, call.page.chars)
    lines = fill() if total <= FEW_LINES else await anyio.to_thread.run_sync(fill)
    window = range(window.start, window.start + len(lines))

    def within(first: int, last: int) -> list[tuple[str, str]]:
        return lines[first - window.start : last - window.start]

    return Listing(
        page=call.page,
        total=total,
        window=window,
        noun="line",
        build=lambda first, last: per_file(within(first, last)),
        brief=lambda first, last: per_file((path, line[:BRIEF_CHARS]) for path, line in within(first, last)),
        narrow="Pass relative_path, paths_include_glob or a stricter pattern.",
        per_file=counts,
    )


def _filling(hits: Mapping[str, Sequence[str]], window: range, chars: int) -> list[tuple[str, str]]:
    """Path and text of the lines in the window, as far as an answer of so many characters can show them: the last is
    one too many."""
    lines: list[tuple[str, str]] = []
    for path, line in _between(hits, window.start, window.stop):
        lines.append((path, line))
        chars -= len(line) + QUOTES_CHARS
        if chars < 0:
            break
    return lines


def _between(hits: Mapping[str, Sequence[str]], first: int, last: int) -> Iterator[tuple[str, str]]:
    """Path and text of the lines from one number up to another."""
    for path, lines in hits.items():
        if last <= 0:
            return
        if first < len(lines):
            yield from ((path, line) for line in lines[max(first, 0) : last])
        first, last = first - len(lines), last - len(lines)


async def _paths_to_search(call: ToolCall, target: Project, relative_path: str, *, ignored: bool) -> list[str]:
    inside = target.locate(relative_path) if relative_path else ""
    if (target.root / inside).is_file():
        return [inside]
    if ignored:
        listed = await anyio.to_thread.run_sync(
            lambda: list_folder(target.root, inside, recursive=True, hidden=target.access.hides)
        )
        if listed.truncated:
            call.note(f"Truncated: only the first {len(listed.files)} files were searched.")
        # What a link leads to below the folder is searched in its own place.
        outside = [link for link in sorted(listed.links) if leads_out(target.root / inside, target.root / link)]
        if outside:
            one = f"{counted(len(outside), 'symlink')} that lead outside the folder, such as {outside[0]!r}"
            call.note(f"Not searched: the targets of {one}. Links are not followed out of the folder.")
        return [path for path in listed.files if path not in listed.links]
    return paths_below(target, inside)


def paths_below(target: Project, relative_path: str, include: str = "", exclude: str = "") -> list[str]:
    """Files of the project at or below a path, in order, that fit the globs.

    Raises:
        PathError, InvalidArguments
    """
    inside = target.locate(relative_path) if relative_path else ""
    if inside in target.tree.files:
        below: Sequence[str] = [inside]
    else:
        below = target.tree.below(inside)
    if not include and not exclude:
        return list(below)
    return list(filter(_selecting(include, exclude), below))


def _selecting(include: str, exclude: str) -> Callable[[str], bool]:
    """Whether a path fits one glob and not the other; an empty one selects all, or none.

    Raises:
        InvalidArguments
    """
    wanted, unwanted = glob_filter(include), glob_filter(exclude)
    return lambda path: (wanted is None or wanted(path)) and not (unwanted is not None and unwanted(path))
