"""Tools on memories. A session may replace what it has seen; what another one wrote meanwhile is shown to it first."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from msgspec import Meta

from serena_central.core.errors import MemoryChanged, ToolRefused, listed
from serena_central.core.quoting import framed, quoted
from serena_central.core.words import counted
from serena_central.editing.replacing import Mode
from serena_central.projects.memories import GLOBAL, checked_name
from serena_central.projects.project import Project
from serena_central.tools.answer import Listing
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.symbol_answers import NAME_CHARS

Name = Annotated[str, Meta(description="Name, e.g. backend/conventions; global/… for all projects")]


@tool("Write a memory", about="notes", reads=False, journaled=True, destructive=True)
async def write_memory(
    call: ToolCall,
    target: Project,
    memory_name: Name,
    content: Annotated[str, Meta(description="Markdown")],
) -> str:
    """Saves information for later conversations about this project. Keep memories short, one topic each."""
    name = _changeable(call, memory_name)
    with _seeing(call, target):
        written = await target.memories.write(name, content, call.author, seen=_seen(call, target, name))
    _note(call, target, name, written.digest)
    return f"Memory {quoted(name)} was written."


@tool("Read a memory", about="notes")
async def read_memory(call: ToolCall, target: Project, memory_name: Name) -> str:
    """Text of a memory. Read it if its name is relevant to the task."""
    memory = await target.memories.read(memory_name)
    _note(call, target, memory.name, memory.digest)
    of = "all projects" if memory.name.startswith(GLOBAL) else f"the project {quoted(target.name)}"
    return framed(memory.content, f"The memory {quoted(memory.name)} of {of}")


@tool(
    "List memories",
    answers="{memories, read_only_memories?}",
    about="notes",
    paged=True,
    if_empty="There are none yet. write_memory keeps what later sessions need; onboarding explains how to begin.",
)
async def list_memories(
    call: ToolCall, target: Project, topic: Annotated[str, Meta(description="Only memories below this topic")] = ""
) -> Listing:
    """Names of the project's memories and of the global ones."""
    names, left_out = await target.memories.names(topic)
    if left_out:
        entries = counted(left_out, "entry", "entries")
        call.note(f"Skipped: {entries} in the memory folders that are links or have names that are not valid.")

    def build(first: int, last: int) -> dict[str, list[str]]:
        kept = [name for name in names[first:last] if not target.memories.changeable(name)]
        return {"memories": names[first:last], **({"read_only_memories": kept} if kept else {})}

    for trouble in target.memories.troubles():
        call.note(trouble)
    if topic and not names and (known := (await target.memories.names(""))[0]):
        call.note(f"There is none below {quoted(topic)}. Memories: {listed(known)}.")
    return Listing(
        page=call.page,
        total=len(names),
        window=call.page.window(len(names), NAME_CHARS),
        noun="memory",
        plural="memories",
        build=build,
        narrow="Pass a topic.",
        per_file=Counter(names),
    )


@tool("Delete a memory", about="notes", reads=False, journaled=True, destructive=True)
async def delete_memory(call: ToolCall, target: Project, memory_name: Name) -> str:
    """Deletes a memory. Only if the user asks for it or its content is outdated."""
    name = _changeable(call, memory_name)
    with _seeing(call, target):
        await target.memories.delete(name, call.author, seen=_seen(call, target, name))
    call.session.memories_seen.pop((str(target.root), name), None)
    return f"Memory {quoted(name)} was deleted."


@tool("Rename a memory", about="notes", reads=False, journaled=True, destructive=True)
async def rename_memory(
    call: ToolCall,
    target: Project,
    old_name: Name,
    new_name: Annotated[str, Meta(description="New name; a different topic moves it")],
) -> str:
    """Renames a memory, or moves it to another topic."""
    old, new = _changeable(call, old_name), _changeable(call, new_name)
    await target.memories.rename(old, new, call.author)
    seen = call.session.memories_seen.pop((str(target.root), old), None)
    if seen is not None:
        _note(call, target, new, seen)
    return f"Memory {quoted(old)} was renamed to {quoted(new)}."


@tool("Edit a memory", about="notes", reads=False, journaled=True, destructive=True)
async def edit_memory(
    call: ToolCall,
    target: Project,
    memory_name: Name,
    needle: Annotated[str, Meta(description="Text or pattern to replace")],
    repl: Annotated[str, Meta(description="Replacement; $!1 is the pattern's first group")],
    mode: Annotated[Mode, Meta(description="literal, or regex (DOTALL, MULTILINE)")],
    allow_multiple_occurrences: Annotated[bool, Meta(description="Replace every match")] = False,
) -> str:
    """Replaces text inside a memory."""
    name = _changeable(call, memory_name)
    with _seeing(call, target):
        written = await target.memories.edit(
            name, needle, repl, mode, call.author, several=allow_multiple_occurrences, seen=_seen(call, target, name)
        )
    _note(call, target, name, written.digest)
    return f"Memory {quoted(name)} was changed."


def _changeable(call: ToolCall, memory_name: str) -> str:
    """The checked name of a memory that the caller may change.

    Raises:
        InvalidArguments: no name.
        ToolRefused: agents of all users read it.
    """
    name = checked_name(memory_name)
    if name.startswith(GLOBAL) and call.services.users.is_restricted(call.session.credential):
        raise ToolRefused(
            f"Nothing was changed: the memory {quoted(name)} is read by the agents of all users, and administrators "
            "write it. Use a memory of the project."
        )
    return name


MOST_SEEN = 500
"""Memories that a session is known to have seen; the oldest are forgotten, and then shown again before a change."""


def _seen(call: ToolCall, target: Project, name: str) -> str | None:
    return call.session.memories_seen.get((str(target.root), name))


def _note(call: ToolCall, target: Project, name: str, digest: str) -> None:
    seen = call.session.memories_seen
    seen.pop((str(target.root), name), None)
    seen[str(target.root), name] = digest
    if len(seen) > MOST_SEEN:
        del seen[next(iter(seen))]


@contextmanager
def _seeing(call: ToolCall, target: Project) -> Generator[None]:
    """Around a change: a refusal shows the session what is there now, so that it may try again."""
    try:
        yield
    except MemoryChanged as error:
        _note(call, target, error.name, error.digest)
        raise
