"""The memories of a project: their list on its page, and a page for each: read, edit, delete, history.

What is saved goes the way of all memories (projects/memories.py): refused if the memory is not any more what the
browser was shown.
"""

import msgspec

from serena_central.core.errors import MemoryNotFound, SerenaCentralError
from serena_central.core.event_kinds import EditApplied, ProjectEvent
from serena_central.core.tracing import new_call_id
from serena_central.editing.change import Author
from serena_central.projects.project import Project
from serena_central.store.query_results import EditFilter
from serena_central.web.pages.edits import EditLine, edit_lines
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.page import Page, Section, Visit, link
from serena_central.web.pages.projects import ONE, known
from serena_central.web.pages.references import project_named, project_page
from serena_central.web.responses import NotFound

PATH = f"{ONE}/memory"

LISTED = 100
"""On the page of the project."""

MOST_CHARS = 30_000
"""Of a memory that can be edited here; a longer one is shown as far as this."""

HISTORY = 10

SESSION, CLIENT = "dashboard", "dashboard"


class MemoryLink(msgspec.Struct, frozen=True):
    name: str
    url: str


class MemoryList(msgspec.Struct, frozen=True):
    """Empty with a `note` where it can't be told. `new_url` leads to a form for another one."""

    memories: list[MemoryLink]
    more: int
    new_url: str
    note: str


class MemoryShown(msgspec.Struct, frozen=True, kw_only=True):
    """`digest` is of the content that is shown, "" for a memory that does not exist; `note` says why it can't be
    changed here."""

    root: str
    project: str
    project_url: str
    name: str
    content: str
    digest: str
    note: str
    history: list[EditLine]


ON_HOST = "The project is held by a project host: agents read its memories there, this page does not."


def memory_page(root: str, name: str) -> str:
    return link(PATH, root=root, name=name)


async def memories(visit: Visit) -> MemoryList:
    root = visit.query.get("root", "")
    known(visit, root)
    project, new_url = visit.parts.projects.opened(root), link(PATH, root=root)
    if project is None:
        on_hosts = visit.parts.cluster is not None
        return MemoryList([], 0, "", ON_HOST if on_hosts else "The project is not open. Warm it up to see them.")
    try:
        names = (await project.memories.names()).names
    except SerenaCentralError as error:
        return MemoryList([], 0, "", f"They can't be listed: {error}")
    links = [MemoryLink(name, memory_page(root, name)) for name in names[:LISTED]]
    return MemoryList(links, max(0, len(names) - LISTED), new_url, "")


async def memory(visit: Visit) -> MemoryShown:
    project, name = _project(visit, visit.query.get("root", "")), visit.query.get("name", "")
    content, digest, note, history = "", "", "", list[EditLine]()
    if name:
        try:
            found = await project.memories.read(name)
            content, digest = found.content[:MOST_CHARS], found.digest
            if len(found.content) > MOST_CHARS:
                note = f"Only the first {MOST_CHARS:,} characters are shown. Edit the file, or let an agent edit it."
        except MemoryNotFound:
            note = ""
        wanted = EditFilter(project=str(project.root), file=project.memories.file_of(name), limit=HISTORY)
        history = await edit_lines(await visit.parts.history.edits(wanted, exact=False), visit)
        if not note and not project.memories.changeable(name):
            note = "This memory is read-only, by the settings of the project."
    return MemoryShown(
        root=str(project.root),
        project=project.name,
        project_url=project_page(str(project.root)),
        name=name,
        content=content,
        digest=digest,
        note=note,
        history=history,
    )


def _project(visit: Visit, root: str) -> Project:
    one = known(visit, root)
    project = visit.parts.projects.opened(root)
    if project is None:
        raise NotFound(f"{one.name} is not open. Warm it up on its page to see its memories.")
    return project


# --- actions ----------------------------------------------------------------------------------------------------------


async def _write(visit: Visit, form: Form) -> str:
    project, name = _project(visit, one_value(form, "root")), one_value(form, "name")
    content = one_value(form, "content").replace("\r\n", "\n")
    author = _author("write_memory")
    try:
        written = await project.memories.write(name, content, author, seen=one_value(form, "digest") or None)
    finally:
        visit.parts.history.answered(author.call, None)
    return f"The memory {written.name} was saved."


async def _delete(visit: Visit, form: Form) -> str:
    project, name = _project(visit, one_value(form, "root")), one_value(form, "name")
    author = _author("delete_memory")
    try:
        await project.memories.delete(name, author, seen=one_value(form, "digest") or None)
    finally:
        visit.parts.history.answered(author.call, None)
    return f"The memory {name} was deleted. Its history can undo that."


def _author(tool: str) -> Author:
    return Author(session=SESSION, client=CLIENT, tool=tool, call=new_call_id())


ACTIONS: dict[str, Action] = {"/memories/write": _write, "/memories/delete": _delete}

SECTION = Section("project/_memories.html", memories, (ProjectEvent, EditApplied), every_s=60)

PAGE = Page(
    path=PATH,
    title="Memory",
    template="memory.html",
    sections={"memory": Section("memory/_memory.html", memory)},
    in_navigation=False,
    names=project_named,
    live=False,
)
