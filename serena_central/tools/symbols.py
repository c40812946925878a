"""Tools that read symbols: overviews, definitions, implementations, and a summary of one symbol."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import anyio
from msgspec import Meta

from serena_central.core.errors import (
    DeadlineExceeded,
    Inapplicable,
    InvalidArguments,
    LanguageServerError,
    PathNotFound,
    SymbolNotFound,
    TooManyMatches,
    Unsupported,
    listed,
)
from serena_central.core.quoting import quoted
from serena_central.core.text import Range
from serena_central.core.words import counted
from serena_central.files.pattern import Pattern
from serena_central.projects.navigation.symbol_views import PossibleReferences, References, SymbolView
from serena_central.projects.project import Project
from serena_central.projects.superrepo.sibling_hierarchies import implementations_in
from serena_central.projects.superrepo.sibling_references import Declarations, declarations
from serena_central.symbols.index import Hit
from serena_central.symbols.indexing.incompleteness import Incompleteness
from serena_central.symbols.kinds import kind_name, kind_numbers
from serena_central.symbols.symbol import FileSymbols
from serena_central.tools.answer import Form, Shaped, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.listing import Listing
from serena_central.tools.read_set import ReadSet
from serena_central.tools.trust import read_by_syntax
from serena_central.tools.unasked_modules import note_unasked

NESTED_LANGUAGES = frozenset({"java", "kotlin"})
"""Languages where a file's top level is uninformative: one class, named like the file."""

REGEX_S = 5.0
"""Deadline in seconds of a regex over one file; only a pathological regex exceeds it."""

FEW = 10
"""Callers and callees shown by get_symbol_context."""

FILES_LISTED = 500

SYMBOL_CHARS = 100
"""No symbol of an answer is shorter: its keys alone are as long."""

FILE_CHARS = 14
"""Nor a file's part of an overview, without its path: `"":{"Enum":[""]}`."""

NAME_CHARS = 4
"""Nor a name, with its quotes and comma."""

FEW_LANGUAGES = 5
"""Of those that were not searched."""

FEW_NAMES = 3
"""Of names that are not UTF-8."""

NamePath = Annotated[str, Meta(description="name, Class/method or ns::Class.method, /Class (top level), name[1]")]
InFile = Annotated[str, Meta(description="File that defines it; optional if the name path is unique")]
Kinds = Annotated[list[int | str], Meta(description="Only these LSP kinds: name or number")]
NotKinds = Annotated[list[int | str], Meta(description="Not these kinds; takes precedence")]
Body = Annotated[bool, Meta(description="Include the source of each symbol")]
Info = Annotated[bool, Meta(description="Include signature and documentation; not with include_body")]


def location(span: Range) -> dict[str, int]:
    """A definition's place in an answer: 0-based lines, 0-based start column in characters."""
    return {"start_line": span.start.line0, "end_line": span.end.line0, "start_column": span.start.column}


def note_gaps(call: ToolCall, gaps: Iterable[Incompleteness]) -> None:
    for gap in gaps:
        call.note(str(gap))


def note_tree(call: ToolCall, project: Project) -> None:
    if project.tree.note:
        call.note(project.tree.note)
    note_names(call, project)


def note_ignored(call: ToolCall, project: Project) -> None:
    """Says that next to all that there is is left out."""
    if project.tree.ignored_by:
        call.note(
            f"Skipped: all top-level folders, ignored by {project.tree.ignored_by}. To include them, put "
            "`ignored_paths: ['!/*']` into .serena/project.yml."
        )


def note_names(call: ToolCall, project: Project) -> None:
    """Says what is left out: next to all that there is, or files for their names."""
    note_ignored(call, project)
    if names := project.tree.not_utf8:
        entries = counted(len(names), "entry", "entries")
        call.note(
            f"Skipped: {entries} whose names are not UTF-8 ({listed(names[:FEW_NAMES])}). list_dir shows them, and "
            "read_file accepts such names."
        )


async def note_data(call: ToolCall, project: Project, within: str) -> None:
    """Says of an empty answer which files were not searched: those of data or markup, and what tools have built."""
    if outputs := project.tree.outputs():
        call.note(
            f"Skipped: {listed(outputs[:FEW_NAMES])}{' and more' if len(outputs) > FEW_NAMES else ''}, marked as "
            "build output (CACHEDIR.TAG, .rustc_info.json, CMakeCache.txt). "
            "`ignored_paths: ['!FOLDER']` includes a folder."
        )
    if found := await project.read_by_name_alone(within):
        files = ", ".join(f"{number} {title}" for title, number in found.most_common(FEW_LANGUAGES))
        more = f" and {len(found) - FEW_LANGUAGES} more languages" if len(found) > FEW_LANGUAGES else ""
        call.note(
            f"Not searched: data, markup and languages with few files: {files}{more}. To search one, set "
            "relative_path to one of its files, or name its language in the project's setting `languages`."
        )


def note_answer(call: ToolCall, note: str | None, outside: int = 0) -> None:
    """Says why a language server's answer may lack something, and how much of it is not shown."""
    if note:
        call.note(f"Possibly incomplete: {note}")
    if outside:
        call.note(f"{outside} more lie outside the project's files.")


def note_references(call: ToolCall, found: References) -> None:
    note_gaps(call, found.gaps)
    note_answer(call, found.note, found.outside)
    note_answer(call, found.caveat)
    if found.possible is not None:
        note_possible(call, found.possible)


def note_possible(call: ToolCall, possible: PossibleReferences) -> None:
    """Says what else may refer to a symbol, so that an empty answer is not taken for "unused"."""
    name = possible.name
    if possible.total:
        places = [f"{one.path}:{one.line}" + (f" in {one.within}" if one.within else "") for one in possible.first]
        more = f" and {possible.total - len(places)} more" if possible.total > len(places) else ""
        common = (
            f" Built-in types also have a member {name}, so many of these may be unrelated." if possible.common else ""
        )
        call.note(
            f"Possible references, in addition to those above: {counted(possible.total, 'place')} in code where the "
            "language "
            f"server cannot rule out that {name} means this symbol: {', '.join(places)}{more}.{common}"
        )
    if possible.unexamined:
        call.note(f"{name} occurs in {counted(possible.unexamined, 'further place')} that were not examined.")


def as_json(view: SymbolView) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name_path": view.name_path,
        "kind": kind_name(view.kind),
        "relative_path": view.path,
        "body_location": location(view.range),
    }
    if view.body is not None:
        answer["body"] = view.body
    if view.info:
        answer["info"] = view.info
    if view.children:
        answer["children"] = _children(view.children)
    return answer


def _children(views: Sequence[SymbolView]) -> dict[str, list[dict[str, Any]]]:
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for view in views:
        child: dict[str, Any] = {"name": view.name, "body_location": location(view.range)}
        if view.children:
            child["children"] = _children(view.children)
        by_kind[kind_name(view.kind)].append(child)
    return by_kind


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
    note_gaps(call, gaps)
    note_tree(call, target)

    def overview(path: str, file: FileSymbols) -> dict[str, Any]:
        nested = target.languages.language_of(path) in NESTED_LANGUAGES
        return _overview(file, -1, depth if depth >= 0 else int(nested))

    single = target.locate(relative_path) in files and len(files) == 1
    if single:
        ((path, file),) = files.items()
        await ReadSet(call, target).record_names(path)
        return shaped(
            lambda: overview(path, file),
            Form("without nested symbols", lambda: _overview(file, -1, 0)),
            Form("as counts per kind", lambda: Counter(kind_name(file.symbols[p].kind) for p in file.children(-1))),
            narrow="Use find_symbol with depth=1 for one symbol.",
        )
    filled = {path: file for path, file in files.items() if file.symbols}
    if not filled:
        await note_data(call, target, relative_path)
    return _per_file(
        call,
        filled,
        overview,
        Form("without nested symbols", lambda: {path: _overview(file, -1, 0) for path, file in filled.items()}),
    )


def _per_file(
    call: ToolCall,
    files: Mapping[str, FileSymbols],
    build: Callable[[str, FileSymbols], Any],
    *shorter: Form,
) -> Listing:
    paths = list(files)
    shortest = min(map(len, paths), default=0) + FILE_CHARS
    at_least = sum(map(len, paths)) + FILE_CHARS * len(paths)
    return Listing(
        page=call.page,
        total=len(paths),
        window=call.page.window(len(paths), shortest),
        noun="file",
        build=lambda first, last: {path: build(path, files[path]) for path in paths[first:last]},
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
    hits = [hit for hit in found.hits if is_wanted(hit.symbol.kind, include, exclude)]
    if 0 <= max_matches < len(hits):
        counts = Counter(hit.path for hit in hits)
        raise TooManyMatches(len(hits), max_matches, dict(counts.most_common(FILES_LISTED)))
    note_gaps(call, found.gaps)
    note_tree(call, target)
    if not hits:
        await _note_nothing(call, target, name_path_pattern, relative_path, found.hits, substring=substring_matching)
    return await _listed(call, target, hits, body=include_body, info=include_info, depth=depth)


async def _note_nothing(
    call: ToolCall,
    target: Project,
    pattern: str,
    relative_path: str,
    of_other_kinds: Sequence[Hit],
    *,
    substring: bool,
) -> None:
    """Says of an empty answer why it is empty, or what may be meant."""
    if of_other_kinds:
        kinds = Counter(kind_name(hit.symbol.kind) for hit in of_other_kinds)
        call.note(f"Matches of other kinds: {', '.join(f'{number} {kind}' for kind, number in kinds.most_common())}.")
        return
    if relative_path and target.tree.is_ignored(target.locate(relative_path)):
        call.note(f"{quoted(relative_path)} is ignored and was not searched for symbols. read_file can read it.")
    if not target.named_file(relative_path):
        await note_data(call, target, relative_path)
    for note in read_by_syntax(target).values():
        call.note(note)

    async def near() -> str:
        close = await target.near(pattern, relative_path)
        if not close and (call.notes or substring):  # what they say explains it better
            return ""
        says = f"No symbol matches {quoted(pattern)}."
        if close:
            says += f" Close matches: {', '.join(close)}."
        if not substring:
            says += " substring_matching=true also finds names that contain it."
        return f"{says} search_for_pattern finds text."

    call.if_empty.append(near)


async def _listed(
    call: ToolCall, target: Project, hits: Sequence[Hit], *, body: bool = False, info: bool = False, depth: int = 0
) -> Listing:
    """An answer of symbols. Those that this page can't show are counted, and not looked at."""
    window = call.page.window(len(hits), SYMBOL_CHARS)
    views: list[SymbolView | None] = []
    for hit in hits[window.start : window.stop]:
        try:
            views.append(await _view(call, target, hit, body=body, info=info, depth=depth))
        except (SymbolNotFound, PathNotFound):
            views.append(None)  # it was taken out while the answer was made

    def seen(first: int, last: int) -> list[SymbolView]:
        return [view for view in views[first - window.start : last - window.start] if view is not None]

    def bare() -> list[dict[str, Any]]:
        return [as_json(view.bare) for view in views if view is not None]

    shorter: list[Form] = []
    if len(views) == len(hits):
        shorter.append(Form("without bodies, info and children", bare))
    if len(hits) * NAME_CHARS <= call.page.chars:
        shorter.append(Form("as names per file", lambda: per_file((hit.path, hit.name_path) for hit in hits)))

    return Listing(
        page=call.page,
        total=len(hits),
        window=window,
        noun="symbol",
        build=lambda first, last: [as_json(view) for view in seen(first, last)],
        narrow="Pass relative_path or a longer name path to narrow it.",
        per_file=Counter(hit.path for hit in hits),
        shorter=shorter,
        brief=lambda first, last: [as_json(view.bare) for view in seen(first, last)],
        shown=lambda first, last: ReadSet(call, target).record_bodies(seen(first, last)),
    )


async def _view(call: ToolCall, target: Project, hit: Hit, *, body: bool, info: bool, depth: int) -> SymbolView:
    """The symbol, without its information where its language server can't tell it."""
    try:
        return await target.view(hit, body=body, info=info, depth=depth)
    except LanguageServerError as error:
        call.note(f"Without info: {error}")
        return await target.view(hit, body=body, depth=depth)


async def find_declarations(_call: ToolCall, projects: Sequence[Project], arguments: Mapping[str, Any]) -> Declarations:
    """Over several projects: which of them declares the symbol, so that all can be asked for its users."""
    return await declarations(projects, arguments["name_path"], arguments["relative_path"])


def note_alone(call: ToolCall, target: Project) -> None:
    """Says that an answer about one module is not about its siblings."""
    repo = call.services.super_repos.of(target.root)
    if repo is not None and any(module.root != target.root for module in repo.modules.values()):
        call.note(
            f'Only {quoted(target.name)} was searched. project="*" also searches the other modules of the super-repo.'
        )


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
    call: ToolCall, target: Project, name_path: NamePath, relative_path: InFile = "", include_info: Info = False
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
    return await _listed(call, target, hits, info=include_info)


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
    position = text.position(first + await _one_group(regex, text.content[first:last], path))
    hits, outside, note = await target.navigation.definition(path, position)
    note_answer(call, note)
    if not hits:
        places = [f"{place.path}:{place.range.start.line0}" for place in outside]
        if places:
            return {"outside_project": places}
        raise SymbolNotFound(regex, f"what is defined for {path}:{position.line0}")
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
        raise InvalidArguments(f"The regex matches {len(matches)} places in {path}; it must match exactly one.")
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
    used = await target.navigation.references(hit)
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
        nodes, note = await target.navigation.hierarchy(hit, "outgoing", 1)
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
    names = [
        (path, file.name_path(place))
        for path, file in files.items()
        for place, symbol in enumerate(file.symbols)
        if is_wanted(symbol.kind, include, frozenset())
    ]
    if not names and not target.named_file(relative_path):
        await note_data(call, target, relative_path)
    return Listing(
        page=call.page,
        total=len(names),
        window=call.page.window(len(names), NAME_CHARS),
        noun="symbol",
        build=lambda first, last: per_file(names[first:last]),
        narrow="Pass a smaller folder, one file or include_kinds.",
        per_file=Counter(path for path, _ in names),
    )


def per_file(entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Path → what belongs to it."""
    grouped: dict[str, list[str]] = {}
    for path, entry in entries:
        grouped.setdefault(path, []).append(entry)
    return grouped
