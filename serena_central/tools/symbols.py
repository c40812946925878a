"""Tools that read symbols: overviews, definitions, implementations, and a summary of one symbol."""

import re
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any

import anyio
from msgspec import Meta

from serena_central.core.errors import (
    DeadlineExceeded,
    Inapplicable,
    InvalidArguments,
    LanguageServerError,
    SymbolNotFound,
    TooManyMatches,
    Unsupported,
)
from serena_central.core.pacing import paced
from serena_central.core.quoting import quoted
from serena_central.files.pattern import Pattern
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_hierarchies import implementations_in
from serena_central.projects.superrepo.sibling_references import Declarations, declarations
from serena_central.symbols.index import Hit, Hits
from serena_central.symbols.symbol import FileSymbols, kind_name, kind_numbers
from serena_central.tools.answer import Form, Listing, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.notes import note_answer, note_data, note_gaps, note_references, note_tree, read_by_syntax
from serena_central.tools.symbol_answers import NAME_CHARS, ReadSet, as_json, listed_symbols, per_file
from serena_central.tools.unasked_modules import note_alone, note_unasked

NESTED_LANGUAGES = frozenset({"java", "kotlin"})
"""Languages where a file's top level is uninformative: one class, named like the file."""


_WORD = re.compile(r"\w+")

REGEX_S = 5.0
"""Deadline in seconds of a regex over one file; only a pathological regex exceeds it."""


FEW = 10
"""Callers and callees shown by get_symbol_context."""


FILES_LISTED = 500


FILE_CHARS = 14
"""Nor a file's part of an overview, without its path: `"":{"Enum":[""]}`."""


NamePath = Annotated[str, Meta(description="name, Class/method or ns::Class.method, /Class (top level), name[1]")]


InFile = Annotated[str, Meta(description="File that defines it; optional if the name path is unique")]


Kinds = Annotated[list[int | str], Meta(description="Only these LSP kinds: name or number")]


NotKinds = Annotated[list[int | str], Meta(description="Not these kinds; takes precedence")]


Body = Annotated[bool, Meta(description="Include the source of each symbol")]


Info = Annotated[bool, Meta(description="Include signature and documentation; not with include_body")]


InfoAlone = Annotated[bool, Meta(description="Include signature and documentation")]


@tool(
    "Symbols overview",
    answers="by kind: names, nested; of a folder, by file",
    paged=True,
    if_empty="No symbols were found. list_dir lists the files of a folder, read_file reads one.",
)
async def get_symbols_overview(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="File, or folder for one overview per file")],
    depth: Annotated[int, Meta(ge=-1, le=20, description="Levels of nested symbols; -1: the language's default")] = -1,
) -> Any:
    """Names of the symbols that a file defines, grouped by kind. Start here with an unknown file."""
    files, gaps = await target.overview(relative_path)
    if not files:
        target.check_searched(target.locate(relative_path))
    note_gaps(call, gaps)
    note_tree(call, target)

    def overview(path: str, file: FileSymbols) -> dict[str, Any]:
        nested = target.languages.language_of(path) in NESTED_LANGUAGES
        return _overview(file, -1, depth if depth >= 0 else int(nested))

    path = next(iter(files), "") if len(files) == 1 else ""
    if path and (path == relative_path or path == target.locate(relative_path)):
        file = files[path]
        await ReadSet(call, target).record_names(path, file)
        return shaped(
            lambda: overview(path, file),
            Form("without nested symbols", lambda: _overview(file, -1, 0)),
            Form("as counts per kind", lambda: Counter(kind_name(file.symbols[p].kind) for p in file.children(-1))),
            narrow="Use find_symbol with depth=1 for one symbol.",
        )
    filled = await files.filled()
    if not filled:
        await note_data(call, target, relative_path)
    return _per_file(
        call,
        filled,
        lambda path: overview(path, files[path]),
        Form("without nested symbols", lambda: {path: _overview(files[path], -1, 0) for path in filled}),
    )


def _per_file(
    call: ToolCall,
    paths: Sequence[str],
    build: Callable[[str], Any],
    *shorter: Form,
) -> Listing:
    shortest = min(map(len, paths), default=0) + FILE_CHARS
    at_least = sum(map(len, paths)) + FILE_CHARS * len(paths)
    return Listing(
        page=call.page,
        total=len(paths),
        window=call.page.window(len(paths), shortest),
        noun="file",
        build=lambda first, last: {path: build(path) for path in paths[first:last]},
        narrow="Pass a smaller folder or one file.",
        per_file=dict.fromkeys(paths, 1),
        shorter=shorter if at_least <= call.page.chars else (),
    )


def _overview(file: FileSymbols, container: int, depth: int) -> dict[str, list[Any]]:
    by_kind: dict[str, list[Any]] = defaultdict(list)
    for place in file.children(container):
        below = _overview(file, place, depth - 1) if depth > 0 else {}
        symbol = file.symbols[place]
        name = "/".join(map(str, symbol.parts))
        by_kind[kind_name(file.symbols[place].kind)].append({name: below} if below else name)
    return by_kind


@tool(
    "Find symbols",
    answers="list of {name_path, kind, relative_path, body_location, body?, info?, children?}",
    paged=True,
    if_empty="No symbol matches. search_for_pattern finds text.",
    aliases={"name_path": "name_path_pattern", "symbol": "name_path_pattern", "name": "name_path_pattern"},
)
async def find_symbol(
    call: ToolCall,
    target: Project,
    name_path_pattern: Annotated[
        str,
        Meta(description="name, Class/method or ns::Class.method, /Class (top level only), name[1] (an overload)"),
    ],
    depth: Annotated[int, Meta(ge=0, le=20, description="Levels of children to list")] = 0,
    relative_path: Annotated[str, Meta(description="File or folder; empty: the whole project")] = "",
    include_body: Body = False,
    include_info: Info = False,
    include_kinds: Kinds = [],  # noqa: B006
    exclude_kinds: NotKinds = [],  # noqa: B006
    substring_matching: Annotated[bool, Meta(description="Match substrings in the last name of the pattern")] = False,
    max_matches: Annotated[int, Meta(ge=-1, description="More matches are an error; -1: no limit")] = -1,
) -> Listing:
    """Finds definitions by name path in the whole project, a folder or a file."""
    include, exclude = kind_numbers(include_kinds), kind_numbers(exclude_kinds)
    found = await target.find(name_path_pattern, relative_path, substring=substring_matching)
    hits = found.hits
    if include or exclude:
        hits = await hits.of_kinds(lambda kind: is_wanted(kind, include, exclude))
    if 0 <= max_matches < len(hits):
        raise TooManyMatches(len(hits), max_matches, dict(hits.per_file.most_common(FILES_LISTED)))
    note_gaps(call, found.gaps)
    note_tree(call, target)
    if not hits:
        await _note_nothing(call, target, name_path_pattern, relative_path, found.hits, substring=substring_matching)
    return await listed_symbols(call, target, hits, body=include_body, info=include_info, depth=depth)


async def _note_nothing(
    call: ToolCall,
    target: Project,
    pattern: str,
    relative_path: str,
    of_other_kinds: Hits,
    *,
    substring: bool,
) -> None:
    """Says of an empty answer why it is empty, or what may be meant."""
    if of_other_kinds:
        kinds = (await of_other_kinds.kinds()).most_common()
        call.note(f"Matches of other kinds: {', '.join(f'{number} {kind_name(kind)}' for kind, number in kinds)}.")
        return
    if relative_path and target.tree.is_ignored(target.locate(relative_path)):
        call.note(f"{quoted(relative_path)} is ignored and was not searched for symbols. read_file can read it.")
    if not target.named_file(relative_path):
        await note_data(call, target, relative_path)
    if target.tree.mostly_ignored:
        call.note(target.tree.mostly_ignored)
    for note in read_by_syntax(target).values():
        call.note(note)

    async def near() -> str:
        close = await target.near(pattern, relative_path)
        if not close and (call.notes or substring):  # what they say explains it better
            return ""
        within = f" in {quoted(relative_path)}" if relative_path else ""
        says = f"No symbol matches {quoted(pattern)}{within}."
        if close:
            says += f" Close matches: {', '.join(close)}."
        if not substring:
            says += " substring_matching=true also finds names that contain it."
        return f"{says} search_for_pattern finds text."

    call.if_empty.append(near)


async def find_declarations(_call: ToolCall, projects: Sequence[Project], arguments: Mapping[str, Any]) -> Declarations:
    """Over several projects: which of them declares the symbol, so that all can be asked for its users."""
    return await declarations(projects, arguments["name_path"], arguments["relative_path"])


def is_wanted(kind: int, include: frozenset[int], exclude: frozenset[int]) -> bool:
    return kind not in exclude and (not include or kind in include)


@tool(
    "Find implementations",
    answers="list of symbols as find_symbol's",
    aliases={"name_path_pattern": "name_path"},
    together=find_declarations,
    paged=True,
    if_empty="No implementations were found. find_referencing_symbols lists what refers to it.",
)
async def find_implementations(
    call: ToolCall, target: Project, name_path: NamePath, relative_path: InFile = "", include_info: InfoAlone = False
) -> Listing:
    """Symbols that implement an interface, abstract class or method; searches all named projects."""
    if isinstance(call.together, Declarations):
        hits, outside, note = await implementations_in(target, call.together)
    else:
        hit = await target.find_one(name_path, relative_path)
        found, outside, note = await target.navigation.implementations(hit)
        hits = [other for other in found if (other.path, other.place) != (hit.path, hit.place)]
        note_alone(call, target)
    note_answer(call, note, outside)
    return await listed_symbols(call, target, hits, info=include_info)


@tool("Find declaration", answers="a symbol as find_symbol's, or several")
async def find_declaration(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="File that contains the name")],
    regex: Annotated[str, Meta(description="Must match one place in the file; its only group is the name")],
    containing_symbol_name_path: Annotated[str, Meta(description="Search only inside this symbol")] = "",
    include_body: Body = False,
    include_info: Info = False,
) -> Any:
    """Definition of the name at a given place."""
    await target.fresh()
    path = target.locate_code(relative_path)
    text = (await target.read(path)).text
    first, last = 0, len(text.content)
    if containing_symbol_name_path:
        holder = await target.find_one(containing_symbol_name_path, path, one_definition=True)
        first, last = text.offset(holder.symbol.range.start), text.offset(holder.symbol.range.end)
    offset = first + await _one_group(regex, text.content[first:last], path)
    position = text.position(offset)
    hits, outside, note = await target.navigation.definition(path, position)
    note_answer(call, note)
    if not hits:
        places = [f"{place.path}:{place.range.start.line0}" for place in outside]
        if places:
            return {"outside_project": places}
        name = _WORD.match(text.content, offset)
        raise SymbolNotFound(name[0] if name else regex, f"the definitions that {path}:{position.line0} leads to")
    views = [await target.view(hit, body=include_body, info=include_info) for hit in hits]
    ReadSet(call, target).record_bodies(views)
    return as_json(views[0]) if len(views) == 1 else [as_json(view) for view in views]


async def _one_group(regex: str, content: str, path: str) -> int:
    """Offset of the one group of the one match."""
    pattern = Pattern(regex, dot_matches_newline=True, deadline=time.monotonic() + REGEX_S)
    try:
        matches = await anyio.to_thread.run_sync(pattern.group_starts, content)
    except TimeoutError as error:
        raise DeadlineExceeded("The regex", REGEX_S) from error
    if len(matches) != 1:
        raise InvalidArguments(
            f"The regex matches {len(matches)} places in {path}; it must match exactly one."
            + (" search_for_pattern finds text." if not matches else " Include more of the text around the place.")
        )
    (groups,) = matches
    if len(groups) != 1:
        raise InvalidArguments(f"The regex has {len(groups)} groups; it must have exactly one, around the name.")
    return groups[0]


@tool(
    "Symbol context",
    answers="a symbol as find_symbol's, with container, callers, callees",
    aliases={"name_path_pattern": "name_path"},
)
async def get_symbol_context(
    call: ToolCall, target: Project, name_path: NamePath, relative_path: InFile = ""
) -> Shaped:
    """Summary of one symbol: signature, documentation, container, definition, first callers and callees."""
    hit = await target.find_one(name_path, relative_path)
    view = await target.view(hit, body=True)
    ReadSet(call, target).record_bodies([view])
    info = await target.navigation.hover(hit)
    used = await target.navigation.references.of(hit)
    note_references(call, used)
    await note_unasked(call, target, hit)
    callers = list(dict.fromkeys(f"{use.path}: {use.holder.name_path}" for use in used.references if use.holder))
    context = {
        **as_json(view),
        "info": info,
        "container": hit.name_path.rpartition("/")[0] or None,
        "callers": callers[:FEW],
        "callers_total": len(callers),
        "callees": await _callees(call, target, hit),
    }
    bare = {name: part for name, part in context.items() if name != "body"}
    return shaped(
        lambda: context,
        Form("without its source", lambda: bare),
        Form("without source and documentation", lambda: {**bare, "info": None}),
        narrow="read_file shows some of its lines; find_symbol with depth=1 lists its members.",
    )


async def _callees(call: ToolCall, target: Project, hit: Hit) -> list[str]:
    spec = target.languages.spec_for(hit.path)
    try:
        nodes, note = await target.navigation.hierarchies.of(hit, "outgoing", 1)
    except Inapplicable:
        return []
    except Unsupported:
        call.note(f"{spec.name if spec else 'The language server'} does not report callees.")
        return []
    except LanguageServerError as error:
        call.note(f"Without callees: {error}")
        return []
    note_answer(call, note)
    return list(dict.fromkeys(node.in_short for node in sorted(nodes, key=lambda node: node.outside)))[:FEW]


@tool(
    "All symbols of a folder",
    answers="by file: name paths",
    shown="optional",
    paged=True,
    if_empty="No symbols were found. list_dir lists the files.",
)
async def find_all_symbols(
    call: ToolCall,
    target: Project,
    relative_path: Annotated[str, Meta(description="File or folder; empty: the whole project")] = "",
    include_kinds: Kinds = [],  # noqa: B006
) -> Listing:
    """Name paths of all symbols per file."""
    include = kind_numbers(include_kinds)
    files, gaps = await target.overview(relative_path)
    note_gaps(call, gaps)
    note_tree(call, target)

    def wanted(kind: int) -> bool:
        return is_wanted(kind, include, frozenset())

    counts = await files.counts(wanted)
    paths, ends = list(counts), list(accumulate(counts.values()))
    if not counts and not target.named_file(relative_path):
        await note_data(call, target, relative_path)

    total = ends[-1] if ends else 0
    window = call.page.window(total, NAME_CHARS)
    at = bisect_right(ends, window.start)  # the file of the first one
    start = ends[at - 1] if at else 0
    named: list[tuple[str, str]] = []
    skipped, chars = window.start - start, 0
    async for path in paced(paths[at:]):  # each is decoded; more than an answer can hold are not
        file = files[path]
        names = [file.name_path(place) for place, symbol in enumerate(file.symbols) if wanted(symbol.kind)]
        named += ((path, name) for name in names)
        chars += sum(map(len, names[skipped:]))
        skipped = 0
        if chars > call.page.chars or start + len(named) >= window.stop:
            break

    return Listing(
        page=call.page,
        total=total,
        window=window,
        noun="symbol",
        build=lambda first, last: per_file(named[first - start : last - start]),
        narrow="Pass a smaller folder, one file or include_kinds.",
        per_file=counts,
    )
