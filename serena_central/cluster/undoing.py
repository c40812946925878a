"""Undo across the boundary: the host that holds a project undoes an edit by the patches that the front has kept, so
that also a host on another node can, which knows nothing of the edit. Agents are not offered it."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from serena_central.core.decoding import converted, from_json
from serena_central.core.errors import ClusterError, SeveralHosts
from serena_central.editing.change import Author
from serena_central.projects.editing.edits import ChangedFile, Edited
from serena_central.projects.editing.undo import CLIENT, reverse
from serena_central.sessions.session import ClientIdentity, IdentifiedBy, Session
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Answer
from serena_central.tools.catalogue import Tool, tool, tool_of
from serena_central.tools.context import ToolCall
from serena_central.tools.tool_run import ToolReply, ToolRun

OnHost = Callable[[str, Tool, ToolRun, ToolReply], Awaitable[Answer]]
"""Has the host of a root carry out a run."""


@tool("Undo an edit", reads=False, journaled=True, answers="{id, files}")
async def undo_edit(call: ToolCall, rows: list[EditRow], symbol: str = "") -> dict[str, Any]:
    """Undoes an edit in all projects that it changed."""
    author = Author(session=call.session.id, client=CLIENT, tool="undo", call=call.id, symbol=symbol)
    done = await reverse(rows, call.services.history, call.services.projects, author)
    return {"id": done.id, "files": done.files}


_made = tool_of(undo_edit)
assert _made is not None
UNDO: Tool = _made
"""What hosts have beside the tools of all."""


async def undone_on_hosts(
    rows: list[EditRow], author: Author, on_host: OnHost, unit_of: Callable[[str], str]
) -> Edited:
    """`unit_of` is the root of the host that holds a project.

    Raises:
        SeveralHosts: the edit changed projects of several hosts.
        SerenaCentralError: as `undo` and a tool's run.
    """
    units = {unit_of(row.project_root) for row in rows}
    if len(units) > 1:
        raise SeveralHosts(author.tool, sorted(units))
    identity = ClientIdentity(credential="", era="modern", client_name=CLIENT)
    session = Session(author.session, IdentifiedBy.EXPLICIT, identity, now=time.time())
    run = ToolRun(
        id=author.call,
        tool=UNDO.name,
        arguments={"rows": rows, "symbol": author.symbol, "project": None, "semantic_context": None},
        session=session,
        began=anyio.current_time(),
        person=True,
    )
    answer = await on_host(units.pop(), UNDO, run, ToolReply())
    if answer.data is None:
        raise ClusterError("The project host did not say what it undid.")
    done = from_json(answer.data.encode())
    return Edited(id=done["id"], files=converted(done["files"], list[ChangedFile]))
