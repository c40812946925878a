"""Tools that change text where no symbol helps: replace content, write a file, change lines, replace in many files.

What is named by its text needs no guard: the text is found as it is now, or nothing is changed. What is named by line
numbers, or replaces a whole file, is guarded by what the session last saw of that file.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta

from serena_central.core.text import Text
from serena_central.editing.lines import delete_lines as without_lines
from serena_central.editing.lines import insert_lines
from serena_central.editing.lines import replace_lines as with_other_lines
from serena_central.editing.plan import TextEdit, apply_edits
from serena_central.editing.replacing import Mode, replaced, replacements
from serena_central.files.text import FileText
from serena_central.projects.editing.bulk_replacement import Occurrence
from serena_central.projects.editing.conflicts import WHOLE_FILE
from serena_central.projects.project import Project
from serena_central.tools.answer import Form, Shaped, in_brief, shaped
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.edits.edit_answers import EDIT_ANSWER, answer
from serena_central.tools.edits.symbol_edits import DryRun
from serena_central.tools.files import paths_below
from serena_central.tools.notes import note_names
from serena_central.tools.symbol_answers import ReadSet

FilePath = Annotated[str, Meta(description="File in the project")]
Needle = Annotated[str, Meta(description="Text or pattern to replace")]
Repl = Annotated[str, Meta(description="Replacement; $!1 is the pattern's first group")]
HowToRead = Annotated[Mode, Meta(description="literal, or regex (DOTALL, MULTILINE)")]
FirstLine = Annotated[int, Meta(ge=0, description="First line, 0-based")]
LastLine = Annotated[int, Meta(ge=0, description="Last line, inclusive")]
Lines = Annotated[str, Meta(description="Complete lines")]


@tool("Replace content", answers=EDIT_ANSWER, edits=True, destructive=True, idempotent=False)
async def replace_content(
    call: ToolCall,
    target: Project,
    relative_path: FilePath,
    needle: Needle,
    repl: Repl,
    mode: HowToRead,
    allow_multiple_occurrences: Annotated[bool, Meta(description="Replace every match")] = False,
    dry_run: DryRun = False,
) -> Any:
    """Replaces text in a file: some lines, or text that is not a symbol. A regex with .*? saves quoting the old
    text."""

    def plan(read: FileText) -> str:
        content = read.text.content
        return replaced(content, replacements(content, needle, repl, mode, several=allow_multiple_occurrences))

    path = await _editable(target, relative_path)
    return await answer(call, target, await target.edits.change_text(path, plan, call.author, dry_run=dry_run))


@tool("Write a file", answers=EDIT_ANSWER, edits=True, destructive=True, idempotent=False)
async def create_text_file(
    call: ToolCall,
    target: Project,
    relative_path: FilePath,
    content: Annotated[str, Meta(description="The complete text")],
    dry_run: DryRun = False,
) -> Any:
    """Makes a new file, or gives an existing one another text; the answer says which."""
    await target.fresh()
    path = target.locate_new_file(relative_path)
    edited = await target.edits.create_file(
        path, content, call.author, seen=await ReadSet(call, target).check_file(path), dry_run=dry_run
    )
    told = await answer(call, target, edited, about=WHOLE_FILE)
    if isinstance(told, str):
        return told
    return {"overwritten": not edited.files[0].created, **told}


@tool("Delete lines", answers=EDIT_ANSWER, edits=True, destructive=True, idempotent=False, shown="optional")
async def delete_lines(
    call: ToolCall,
    target: Project,
    relative_path: FilePath,
    start_line: FirstLine,
    end_line: LastLine,
    dry_run: DryRun = False,
) -> Any:
    """Deletes lines of a file by their numbers. Read them first."""
    return await _by_lines(
        call, target, relative_path, lambda text, _: without_lines(text, start_line, end_line), dry_run=dry_run
    )


@tool("Replace lines", answers=EDIT_ANSWER, edits=True, destructive=True, idempotent=False, shown="optional")
async def replace_lines(
    call: ToolCall,
    target: Project,
    relative_path: FilePath,
    start_line: FirstLine,
    end_line: LastLine,
    content: Lines,
    dry_run: DryRun = False,
) -> Any:
    """Replaces lines of a file by their numbers. Read them first."""
    return await _by_lines(
        call,
        target,
        relative_path,
        lambda text, newline: with_other_lines(text, start_line, end_line, content, newline),
        dry_run=dry_run,
    )


@tool("Insert lines", answers=EDIT_ANSWER, edits=True, idempotent=False, shown="optional")
async def insert_at_line(
    call: ToolCall,
    target: Project,
    relative_path: FilePath,
    line: Annotated[int, Meta(ge=0, description="Line to insert before, 0-based")],
    content: Lines,
    dry_run: DryRun = False,
) -> Any:
    """Inserts lines into a file before the line of a number. Read it first."""
    return await _by_lines(
        call, target, relative_path, lambda text, newline: insert_lines(text, line, content, newline), dry_run=dry_run
    )


@tool("Replace in files", answers=EDIT_ANSWER, edits=True, destructive=True, idempotent=False, shown="optional")
async def replace_in_files(
    call: ToolCall,
    target: Project,
    needle: Needle,
    repl: Repl,
    mode: HowToRead,
    relative_path: Annotated[str, Meta(description="File or folder; empty: the whole project")] = "",
    paths_include_glob: Annotated[str, Meta(description="Only matching files, e.g. src/**/*.{ts,tsx}")] = "",
    paths_exclude_glob: Annotated[str, Meta(description="Files to skip; takes precedence")] = "",
    dry_run: Annotated[bool, Meta(description="Change nothing; return occurrences with ids, and the diff")] = False,
    occurrence_ids: Annotated[
        list[str] | None, Meta(description="Only these ids, from a dry run with the same arguments")
    ] = None,
    expected_count: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Change nothing if the number of matches differs")
    ] = None,
) -> Any:
    """Replaces text in all files that hold it, or in none. Make a dry run first."""
    await target.fresh()
    paths = paths_below(target, relative_path, paths_include_glob, paths_exclude_glob)
    done = await target.edits.replace_in_files(
        paths,
        needle,
        repl,
        mode,
        call.author,
        wanted=occurrence_ids,
        expected=expected_count,
        dry_run=dry_run,
    )
    note_names(call, target)
    if done.skipped:
        call.note(f"Not searched: {len(done.skipped)} files that cannot be read as text.")
    told = await answer(call, target, done.edited)
    if not isinstance(told, str):
        return {"count": done.count, **told}
    if not done.occurrences:
        return "The needle does not match in these files."
    return _listing(done.occurrences, told) if dry_run else told


def _listing(occurrences: Sequence[Occurrence], diff: str) -> Shaped:
    def brief() -> dict[str, Any]:
        return in_brief(len(occurrences), Counter(one.path for one in occurrences), occurrences)

    return shaped(
        lambda: {"count": len(occurrences), "occurrences": occurrences, "diff": diff},
        Form("without the diff", lambda: {"count": len(occurrences), "occurrences": occurrences}),
        Form("as counts per folder, with the first ones", brief),
        narrow="Pass relative_path, paths_include_glob or a longer needle.",
    )


async def _by_lines(
    call: ToolCall,
    target: Project,
    relative_path: str,
    edit: Callable[[Text, str], TextEdit],
    *,
    dry_run: bool,
) -> Any:
    path = await _editable(target, relative_path)
    edited = await target.edits.change_text(
        path,
        lambda read: apply_edits(read.text, [edit(read.text, read.newline)]),
        call.author,
        seen=await ReadSet(call, target).check_file(path),
        dry_run=dry_run,
    )
    return await answer(call, target, edited)


async def _editable(target: Project, relative_path: str) -> str:
    await target.fresh()
    path = target.locate_file(relative_path)
    target.edits.check_editable(path)
    return path
