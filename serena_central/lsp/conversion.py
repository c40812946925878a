"""Converts between LSP's structures and this layer's answers: the only place that handles URIs and units of the
negotiated encoding.

Pure but for `text_of`, by which the texts of other files are read; convert many locations in a worker thread.
"""

import logging
import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from serena_central.core.decoding import json_decoder
from serena_central.core.errors import PathError
from serena_central.core.patterns import FileMatcher
from serena_central.core.text import Encoding, Position, Range, Text
from serena_central.lsp.answers import (
    DEEPEST_SYMBOLS,
    Diagnostic,
    DocumentSymbol,
    HierarchyItem,
    Location,
    Replacement,
    Signature,
    SymbolKind,
    WorkspaceEdit,
)
from serena_central.lsp.catalogue import Naming
from serena_central.lsp.narrowing import narrowed
from serena_central.lsp.patterns import NamePatterns
from serena_central.lsp.symbol_filter import ANONYMOUS, named
from serena_central.lsp.types import (
    LspDiagnostic,
    LspHierarchyItem,
    LspLocation,
    LspRange,
    LspSignature,
    LspSymbol,
    LspTextEdit,
    LspWorkspaceEdit,
)

logger = logging.getLogger(__name__)

HEAD = 600
"""Characters behind a variable's name in which it shows that it is a function."""

_KINDS = {"function": SymbolKind.FUNCTION, "class": SymbolKind.CLASS}
_VARIABLES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT})

ERROR = 1
"""The severity of a diagnostic that carries none (LSP 3.17 leaves it to the client)."""

_TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")
_DOUBLED = "|?&"
"""Characters of which two before `=` make an assignment to a name that had no value."""
_SPECIAL = re.compile(r"[%?#\s\0-\x1f]")
"""What a URI's path is not written with, or not ended by."""

_decode_item = json_decoder(LspHierarchyItem).decode


def uri_of(path: Path) -> str:
    return "file://" + quote(os.fsencode(path))


def path_of(uri: str) -> Path | None:
    """The path of a `file:` URI; None for generated or virtual documents."""
    if uri.startswith("file:///") and uri[7:].isascii() and not _SPECIAL.search(uri):
        return Path(uri[7:])  # nearly all, of which an answer may hold hundreds
    parts = urlsplit(uri)
    return Path(os.fsdecode(unquote_to_bytes(parts.path))) if parts.scheme == "file" else None


def lsp_position(text: Text, position: Position, encoding: Encoding) -> dict[str, int]:
    line, character = text.to_lsp(position, encoding)
    return {"line": line, "character": character}


_PLAIN = NamePatterns(Naming())

MANY_SYMBOLS = 400
"""So many are converted in a millisecond."""

LARGE_TEXT = 20_000
"""Characters. Of a text that is not all ASCII each line is measured."""


class Converter:
    """Converts the parts of one answer. Each file's text is read once. Belongs to one task or thread."""

    def __init__(self, encoding: Encoding, text_of: Callable[[Path], Text], names: NamePatterns = _PLAIN) -> None:
        self._encoding: Encoding = encoding
        self._text_of = text_of
        self._names = names
        self._texts: dict[Path, Text | None] = {}
        self._paths: dict[str, Path | None] = {}

    def range(self, text: Text, span: LspRange) -> Range:
        start, end, encoding = span.start, span.end, self._encoding
        return Range(
            text.from_lsp(start.line, start.character, encoding), text.from_lsp(end.line, end.character, encoding)
        )

    def symbols(self, text: Text, symbols: Sequence[LspSymbol], imports_s: float = math.inf) -> list[DocumentSymbol]:
        """`imports_s`: how long it may be looked for imports, at most.

        Raises:
            TooSlow
            RecursionError: they are nested too deeply.
        """
        is_flat = any(symbol.range is None for symbol in symbols)
        found = self._nested(text, symbols) if is_flat else self._symbols(text, symbols)
        _check_depth(found)
        if self._names.imports and not is_flat:
            found = without_imports(found, text, self._names.imports, imports_s)
        return named(found)

    def paths(self, found: Sequence[LspLocation] | LspLocation) -> set[Path]:
        """The files of places."""
        uris = {one.target_uri or one.uri for one in ([found] if isinstance(found, LspLocation) else found)}
        return {path for uri in uris if (path := self._path(uri)) is not None}

    def locations(self, found: Sequence[LspLocation] | LspLocation | None) -> list[Location]:
        """Each place once, in the server's order; places in what is no readable file are left out."""
        if found is None:
            return []
        places: dict[tuple[str, Range], Location] = {}
        for location in [found] if isinstance(found, LspLocation) else found:
            path = self._path(location.target_uri or location.uri)
            text = self._text(path)
            span = location.target_selection_range or location.target_range or location.range
            if path is not None and text is not None and span is not None:
                place = self.range(text, span)
                if (key := (str(path), place)) not in places:
                    places[key] = Location(path, place)
        return list(places.values())

    def workspace_edit(self, found: LspWorkspaceEdit) -> WorkspaceEdit:
        """The proposal with the last word of each file's order: a server may send one file in several parts."""
        edit = WorkspaceEdit()
        for uri, edits in (found.changes or {}).items() if found.document_changes is None else ():
            self._add(edit, uri, edits)
        for change in found.document_changes or ():
            if change.text_document is not None:
                self._add(edit, change.text_document.uri, change.edits)
                continue
            old, new = self._path(change.old_uri), self._path(change.new_uri)
            if change.kind == "rename" and old is not None and new is not None:
                edit.moves.append((old, new))
            else:
                edit.unusable = True
        return edit

    def _add(self, edit: WorkspaceEdit, uri: str, edits: Sequence[LspTextEdit]) -> None:
        path = self._path(uri)
        text = self._text(path)
        if path is None or text is None:
            edit.unusable = True
            return
        places = edit.replacements.setdefault(path, [])
        for one in edits:
            places += narrowed(text, Replacement(self.range(text, one.range), one.new_text))

    def items(self, raws: Iterable[msgspec.Raw]) -> list[HierarchyItem]:
        items = (self.item(raw) for raw in raws)
        return [item for item in items if item is not None]

    def item(self, raw: msgspec.Raw) -> HierarchyItem | None:
        """None for an item in what is no readable file."""
        item = _decode_item(raw)
        path = self._path(item.uri)
        text = self._text(path)
        if path is None or text is None:
            return None
        whole, name = self.range(text, item.range), self.range(text, item.selection_range)
        return HierarchyItem(item.name, item.kind, item.detail or "", path, whole, name, raw.copy())

    def ranges_in(self, path: Path, spans: Iterable[LspRange]) -> list[Range]:
        text = self._text(path)
        return [self.range(text, span) for span in spans] if text is not None else []

    def diagnostics(self, text: Text, found: Iterable[LspDiagnostic]) -> list[Diagnostic]:
        return [
            Diagnostic(
                self.range(text, item.range),
                item.severity or ERROR,
                item.message,
                None if item.code is None else str(item.code),
                item.source,
            )
            for item in found
        ]

    def _symbols(self, text: Text, symbols: Iterable[LspSymbol]) -> list[DocumentSymbol]:
        """Without recursion: sources nest deeper than Python calls."""
        found: list[DocumentSymbol] = []
        levels = [found]
        pending: deque[tuple[DocumentSymbol | None, list[DocumentSymbol], Iterable[LspSymbol]]]
        pending = deque([(None, found, symbols)])
        while pending:
            around, level, nested = pending.popleft()
            for symbol in nested:
                if symbol.range is not None:
                    made = self._symbol(text, symbol, symbol.range)
                    if around is not None and (made.name, made.selection) == (around.name, around.selection):
                        around.kind, made.name = made.kind, ANONYMOUS  # it is the value of what is around it
                    level.append(made)
                    if symbol.children:
                        inside = self._inside(text, made)
                        levels.append(inside)
                        pending.append((made, inside, symbol.children))
        for level in reversed(levels):  # the innermost first
            if any(map(_is_of_tables, level)):
                level[:] = [one for made in level for one in (_tables(text, made) if _is_of_tables(made) else [made])]
        return found

    def _symbol(self, text: Text, symbol: LspSymbol, span: LspRange) -> DocumentSymbol:
        """Without its children."""
        whole = self.range(text, span)
        bare, scope = scoped_name(symbol.name, self._names)
        name = self.range(text, symbol.selection_range) if symbol.selection_range else whole
        if name == whole or name.start == name.end:  # servers that know one range send it twice
            name = _name_in(text, whole, bare)
        if name == whole or name.start != whole.start:
            whole, name = assigned(text, whole, bare) or (whole, name)
        if self._is_nameless(text, symbol.kind, bare, name):
            return DocumentSymbol(ANONYMOUS, symbol.kind, whole, name)
        kind = symbol.kind
        if kind in _VARIABLES:
            kind = _KINDS.get(self._value(text, whole, name), kind)
        return DocumentSymbol(bare, kind, whole, name, symbol.detail or "", [], scope)

    def _is_nameless(self, text: Text, kind: int, bare: str, name: Range) -> bool:
        """What could be the name of a function is none where it is told of a block, or something else stands there."""
        anonymous = self._names.anonymous
        if not anonymous or not anonymous.fullmatch(bare):
            return False
        stands = text.slice(name).strip() or bare
        return kind == SymbolKind.MODULE or not bare.isidentifier() or not stands.startswith(bare)

    def _inside(self, text: Text, symbol: DocumentSymbol) -> list[DocumentSymbol]:
        """Where the children of a symbol belong: in the function that a property has for its value, if it has one."""
        if (
            symbol.kind == SymbolKind.PROPERTY
            and self._value(text, symbol.range, symbol.selection, in_pair=True) == "function"
        ):
            function = DocumentSymbol(ANONYMOUS, SymbolKind.FUNCTION, symbol.range, symbol.selection, children=[])
            symbol.children.append(function)
            return function.children
        return symbol.children

    def _value(self, text: Text, whole: Range, name: Range, *, in_pair: bool = False) -> str:
        """What the value of a variable, or of a property `in_pair` with it, is: "function", "class", or empty."""
        if self._names.values is None:
            return ""
        behind = text.offset(name.end)
        found = self._names.values.search(text.content[behind : min(text.offset(whole.end), behind + HEAD)])
        if found is None or (found["pair"] and not in_pair):
            return ""
        return "class" if found["class"] else "function"

    def _nested(self, text: Text, symbols: Sequence[LspSymbol]) -> list[DocumentSymbol]:
        """The tree that a flat list of SymbolInformation means: by enclosing ranges, else by the container's name."""
        flat: list[tuple[DocumentSymbol, str | None]] = []
        for symbol in symbols:
            span = symbol.range or (symbol.location.range if symbol.location else None)
            if span is not None:
                whole = self.range(text, span)
                name = _name_in(text, whole, symbol.name)
                flat.append((DocumentSymbol(symbol.name, symbol.kind, whole, name, flat=True), symbol.container_name))
        flat.sort(key=lambda entry: (entry[0].range.start, (-entry[0].range.end.line0, -entry[0].range.end.column)))
        roots: list[DocumentSymbol] = []
        around: list[DocumentSymbol] = []
        named: dict[str, DocumentSymbol] = {}
        for symbol, container in flat:
            while around and not around[-1].range.encloses(symbol.range):
                around.pop()
            parent = around[-1] if around else named.get(container or "")
            symbol.children = []
            (parent.children if parent else roots).append(symbol)
            around.append(symbol)
            named[symbol.name] = symbol
        return roots

    def _path(self, uri: str) -> Path | None:
        if uri not in self._paths:
            self._paths[uri] = path_of(uri)
        return self._paths[uri]

    def _text(self, path: Path | None) -> Text | None:
        if path is None:
            return None
        if path not in self._texts:
            try:
                self._texts[path] = self._text_of(path)
            except (PathError, OSError) as error:
                logger.debug("skipped results in %s: %s", path, error)
                self._texts[path] = None
        return self._texts[path]


def _is_of_tables(symbol: DocumentSymbol) -> bool:
    """Whether a symbol is an array of tables that stand apart (TOML's `[[bin]]`): it begins with its first item."""
    if symbol.kind != SymbolKind.ARRAY or not symbol.children:
        return False
    numbered = all(item.name in (str(place), f"[{place}]") for place, item in enumerate(symbol.children))
    return numbered and symbol.range.start == symbol.children[0].range.start


def _tables(text: Text, array: DocumentSymbol) -> list[DocumentSymbol]:
    """The items of an array of tables, each by the array's name, which stands in each of them."""
    return [
        msgspec.structs.replace(item, name=array.name, selection=_name_in(text, item.range, array.name))
        for item in array.children
    ]


def assigned(text: Text, whole: Range, name: str) -> tuple[Range, Range] | None:
    """The definition and its name where a server draws only the function that is assigned to it: `a.name = `,
    `name ||= `. The name is the one before the `=` where the function has the same for its own: that one is seen
    nowhere else."""
    first = text.offset(whole.start)
    begin = max(0, first - HEAD)
    head = text.content[begin:first].rstrip()
    if not head.endswith("="):
        return None
    target = head[:-1]
    if len(target) > 1 and target[-1] in _DOUBLED and target[-2] in _DOUBLED:
        target = target[:-2]
    target = target.rstrip()
    if not target.endswith(name):
        return None
    end = len(target)
    start = end - len(name)
    span = Range(text.position(begin + _owners_at(target, start)), whole.end)
    return span, Range(text.position(begin + start), text.position(begin + end))


def _owners_at(content: str, at: int) -> int:
    """Where `a.b.` begins that ends at an offset; that offset where nothing of the kind does."""
    while content[at - 1 : at] == ".":
        start = at - 1
        while start and (_is_of_word(content[start - 1]) or content[start - 1] == "$"):
            start -= 1
        if start == at - 1:
            break
        at = start
    return at


def _name_in(text: Text, whole: Range, name: str) -> Range:
    """Where a symbol's name stands in its range, as a word: the name itself, or its first word (`run` of `run(int)`).
    The whole range where it does not stand."""
    first, last = text.offset(whole.start), text.offset(whole.end)
    for wanted in (name, *_WORD.findall(name)[:1]):
        at = word_at(text.content, wanted, first, last)
        if at >= 0:
            return Range(text.position(at), text.position(at + len(wanted)))
    return whole


def word_at(content: str, word: str, first: int, last: int) -> int:
    """Where a word stands between two offsets, with no letter, digit or `_` beside it; -1 where it does not. Without an
    expression: to compile one for each name takes most of the time of a conversion."""
    at = content.find(word, first, last)
    while at >= 0:
        end = at + len(word)
        if not (at and _is_of_word(content[at - 1])) and not (end < last and _is_of_word(content[end])):
            return at
        at = content.find(word, at + 1, last)
    return -1


def _is_of_word(char: str) -> bool:
    """Whether it is a letter, a digit or `_`."""
    return char.isalnum() or char == "_"


def take_long(text: Text, symbols: Sequence[LspSymbol]) -> bool:
    """Whether symbols are so many, or stand in such a text, that they are to be converted in a thread."""
    return (len(text.content) > LARGE_TEXT and not text.is_ascii) or _count(symbols) > MANY_SYMBOLS


def _check_depth(symbols: Sequence[DocumentSymbol]) -> None:
    """Raises RecursionError for symbols that what comes after may not get through. The decoder refuses such answers on
    Python 3.11 alone, where its own recursion counts as Python's."""
    level, depth = symbols, 0
    while level:
        depth += 1
        if depth > DEEPEST_SYMBOLS:
            raise RecursionError(f"more than {DEEPEST_SYMBOLS} levels of symbols")
        level = [child for symbol in level for child in symbol.children]


def _count(symbols: Sequence[LspSymbol]) -> int:
    """Of all levels; without recursion, since sources may nest as deep as Python's own stack."""
    count, waiting = 0, list(symbols)
    while waiting:
        count += len(waiting)
        waiting = [child for symbol in waiting for child in symbol.children or ()]
    return count


def scoped_name(name: str, names: NamePatterns) -> tuple[str, tuple[str, ...]]:
    """A symbol's own name, and the containers that the server wrote before it, without their template arguments."""
    decorated = names.decorated.fullmatch(name) if names.decorated else None
    if decorated is not None:
        name = decorated["name"]
    match = names.scoped.fullmatch(name) if names.scoped else None
    if match is None:
        return name, ()
    scope, before = match["scope"], ""
    while scope != before:
        scope, before = _TEMPLATE_ARGUMENTS.sub("", scope), scope
    return match["name"], tuple(scope.split(names.separator) if names.separator else [scope])


def without_imports(
    symbols: Sequence[DocumentSymbol], text: Text, imports: FileMatcher, most_s: float = math.inf
) -> list[DocumentSymbol]:
    """Leaves out the symbols that lie inside the matches of `imports`.

    Raises:
        TooSlow
    """
    return _outside(symbols, [Range(*map(text.position, span)) for span in imports.spans(text.content, most_s)])


def _outside(symbols: Sequence[DocumentSymbol], spans: Sequence[Range]) -> list[DocumentSymbol]:
    kept = [symbol for symbol in symbols if not any(span.encloses(symbol.range) for span in spans)]
    for symbol in kept:
        symbol.children = _outside(symbol.children, spans) if symbol.children else []
    return kept


def plain(contents: Any) -> str:
    """The text of a hover or a documentation: MarkupContent, MarkedString, or a list of them (LSP 3.17)."""
    if contents is None:
        return ""
    if isinstance(contents, str):
        return contents
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(plain, cast("list[Any]", contents))))
    fields = cast("dict[str, Any]", contents) if isinstance(contents, dict) else {}
    value = str(fields.get("value", ""))
    return f"```{fields['language']}\n{value}\n```" if value and "language" in fields else value


def signatures(found: Iterable[LspSignature]) -> list[Signature]:
    return [Signature(item.label, plain(item.documentation)) for item in found]
