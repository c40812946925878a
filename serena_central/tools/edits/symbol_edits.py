"""Tools that change code by symbol: replace a definition, insert before or after one."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.errors import EditRefused
from serena_central.core.text import Range, Text
from serena_central.editing.placement import Style, inserted_after, inserted_before, replaced, widened, with_comment_for
from serena_central.editing.plan import TextEdit
from serena_central.projects.editing.edits import Meant, Site
from serena_central.projects.project import Project
from serena_central.symbols.symbol import kind_numbers
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.edits.edit_answers import EDIT_ANSWER, answer
from serena_central.tools.symbol_answers import ReadSet
from serena_central.tools.symbols import InFile, NamePath

DryRun = Annotated[bool, Meta(description="Only return the diff")]
Definition = Annotated[
    str,
    Meta(
        description="The complete definition including its signature; first line unindented, the others as in the file"
    ),
]
Code = Annotated[str, Meta(description="Code; indented to match the symbol if its first line is unindented")]

SET_APART = kind_numbers(["Class", "Method", "Interface", "Function", "Struct", "Constructor"])
"""Kinds that are set apart from their neighbours by a blank line."""


@tool(
    "Replace a symbol's definition",
    answers=EDIT_ANSWER,
    edits=True,
    destructive=True,
    idempotent=False,
    also=("replace_symbol_definition",),
    aliases={"name_path_pattern": "name_path"},
)
async def replace_symbol_body(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    body: Definition,
    relative_path: InFile = "",
    dry_run: DryRun = False,
) -> Any:
    """Replaces the whole definition of a symbol. Look at it first (find_symbol with include_body)."""

    async def find() -> Meant:
        hit = await target.find_one(name_path, relative_path, one_definition=True)
        return Meant(hit.path, hit.name_path, await ReadSet(call, target).check(hit))

    meant, edited = await target.edits.change_symbol(
        target.named_file(relative_path),
        find,
        lambda site: _replacement(target, site, body),
        call.author,
        way="replace",
        dry_run=dry_run,
    )
    return await answer(call, target, edited, about=meant.name_path)


@tool(
    "Insert after a symbol",
    answers=EDIT_ANSWER,
    edits=True,
    idempotent=False,
    aliases={"name_path_pattern": "name_path"},
)
async def insert_after_symbol(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    body: Code,
    relative_path: InFile = "",
    dry_run: DryRun = False,
) -> Any:
    """Inserts code behind the definition of a symbol, as lines of their own."""
    return await _insert(call, target, name_path, relative_path, dry_run, body, inserted_after)


@tool(
    "Insert before a symbol",
    answers=EDIT_ANSWER,
    edits=True,
    idempotent=False,
    aliases={"name_path_pattern": "name_path"},
)
async def insert_before_symbol(
    call: ToolCall,
    target: Project,
    name_path: NamePath,
    body: Code,
    relative_path: InFile = "",
    dry_run: DryRun = False,
) -> Any:
    """Inserts code before a symbol and its doc comment, as lines of their own: also imports, before the first one."""
    return await _insert(call, target, name_path, relative_path, dry_run, body, inserted_before)


async def _insert(
    call: ToolCall,
    target: Project,
    name_path: str,
    relative_path: str,
    dry_run: bool,
    body: str,
    place: Callable[[Text, Range, str, Style], TextEdit],
) -> Any:
    """Nothing is overwritten, so that it doesn't matter what the session knows of the symbol."""

    async def find() -> Meant:
        hit = await target.find_one(name_path, relative_path, one_definition=True)
        target.edits.check_editable(hit.path)
        return Meant(hit.path, hit.name_path)

    _, edited = await target.edits.change_symbol(
        target.named_file(relative_path),
        find,
        lambda site: _insertion(target, site, body, place),
        call.author,
        dry_run=dry_run,
    )
    return await answer(call, target, edited)


def _replacement(target: Project, site: Site, body: str) -> TextEdit:
    site.check_whole()
    own = site.hit.symbol
    style = _style(target, site)
    span = widened(site.text, own.range, _statement(site), own.name, body)
    span = with_comment_for(site.text, span, body, style.language)
    words = set(re.findall(r"\w+", body))
    lost = sorted({name for name in site.others_in(span) if words.isdisjoint(re.findall(r"\w+", name))})
    if lost:
        raise EditRefused(
            f"Nothing was changed: the definition of {site.hit.name_path} in {site.hit.path}:{span.start.line0} also "
            f"defines {', '.join(lost)}, which the body lacks. Pass the complete definition (find_symbol with "
            "include_body)."
        )
    return replaced(site.text, span, body, style)


def _insertion(
    target: Project, site: Site, body: str, place: Callable[[Text, Range, str, Style], TextEdit]
) -> TextEdit:
    """What is inserted as lines of its own must not leave the container of its neighbour (`class A { f() {} }`)."""
    statement = _statement(site)
    edit = place(site.text, statement, body, _style(target, site))
    holder = site.container
    if holder is None or not holder.range.encloses(statement):
        return edit
    start, end, first, last = holder.range.start, holder.range.end, statement.start, statement.end
    head = site.text.line(first.line0)[: first.column].lstrip()
    closes = site.text.slice(Range(last, end)).strip(" \t;,") if end.line0 == last.line0 else ""
    is_one_line = start < first and start.line0 == first.line0 == end.line0
    is_before = edit.range.start < first and (edit.range.start <= start < first or head.startswith("{"))
    is_behind = edit.range.start > last and (is_one_line or bool(closes))
    if is_before or is_behind:
        raise EditRefused(
            f"Nothing was changed: {site.hit.name_path} and {holder.name}, which contains it, share line "
            f"{(first if is_before else last).line0} of {site.hit.path}. Code is inserted as lines of its own, which "
            f"would be outside of {holder.name}. Replace {holder.name} (replace_symbol_body), or edit the line as text "
            "(replace_content)."
        )
    return edit


def _statement(site: Site) -> Range:
    """The symbol's definition with what the statement has before and behind it."""
    known = site.declared.statement if site.declared else None
    return known or site.hit.symbol.range


def _style(target: Project, site: Site) -> Style:
    language = target.languages.language_of(site.hit.path)
    # A heading that touches the text above is a part of that.
    set_apart = language == "markdown" or site.hit.symbol.kind in SET_APART
    return Style(site.read.newline, language, set_apart)
