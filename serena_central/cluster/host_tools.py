"""Tools that hosts have beside those of agents: what a server does itself where it opens the projects. Agents are not
offered them. `host_requests` sends them.

Answers are data, however large, since no model reads them.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from serena_central.analysis.analysis_run import Kind
from serena_central.analysis.analysis_runs import MOST_S
from serena_central.editing.change import Author
from serena_central.projects.editing.undo import CLIENT, reverse
from serena_central.projects.project import Project
from serena_central.projects.trust.trust_dialog import LocalTrustDialog, TrustQuestion
from serena_central.projects.warming.warm_up_jobs import MODULE_S
from serena_central.store.rows import EditRow
from serena_central.tools.analysis import LONG_S
from serena_central.tools.answer import Answer, Content
from serena_central.tools.catalogue import Tool, tool, tool_of
from serena_central.tools.context import ToolCall
from serena_central.tools.guidance import introduction_of
from serena_central.tools.refactoring_report import report_on
from serena_central.tools.workflow import list_projects

DATA = "data"


def packed(value: object) -> Content:
    """An answer that `unpacked` gets back."""
    return Content([{"type": DATA, DATA: msgspec.msgpack.encode(value)}])


def unpacked(answer: Answer) -> bytes | None:
    """The MessagePack of an answer; None if it is none of these tools'."""
    blocks = answer.content.blocks if answer.content is not None else ()
    return next((block[DATA] for block in blocks if block.get("type") == DATA), None)


async def _open(call: ToolCall, root: str) -> Project:
    projects = call.services.projects
    return await projects.open(projects.check(Path(root)))


# --- edits ------------------------------------------------------------------------------------------------------------


@tool("Undo an edit", reads=False, journaled=True, answers="{id, files}")
async def undo_edit(call: ToolCall, rows: list[EditRow], symbol: str = "") -> dict[str, Any]:
    """Undoes an edit in all projects that it changed."""
    author = Author(session=call.session.id, client=CLIENT, tool="undo", call=call.id, symbol=symbol)
    done = await reverse(rows, call.services.history, call.services.projects, author)
    return {"id": done.id, "files": done.files}


# --- warm-ups ---------------------------------------------------------------------------------------------------------


@tool("Choose what to warm up")
async def choose_to_warm_up(call: ToolCall, folder: str, modules: list[str], only_default: bool) -> Content:
    """The roots that a folder means, the default one, and names by root."""
    chosen = await call.services.warm_up.by.choose(Path(folder), modules, only_default=only_default)
    names = {str(root): name for root, name in chosen.names.items()}
    default = str(chosen.default) if chosen.default is not None else None
    return packed(([str(root) for root in chosen.roots], default, names))


@tool("Warm a project up", timeout_s=MODULE_S, gives_way=True)
async def warm_up_project(call: ToolCall, root: str) -> Content:
    """Starts its servers and fills its index."""
    return packed(await call.services.warm_up.by.warm(call.services.projects.check(Path(root))))


# --- analyses ---------------------------------------------------------------------------------------------------------


@tool("Analyze a project", timeout_s=MOST_S, gives_way=True)
async def analyze_project(call: ToolCall, root: str, kind: Kind) -> Content:
    """An analysis run."""
    return packed(await call.services.analysis_runs.by.analyze(Path(root), kind))


@tool("Fingerprints of projects")
async def fingerprints_of(call: ToolCall, roots: list[str]) -> Content:
    """Of those that are open."""
    return packed(await call.services.analysis_runs.by.fingerprints(roots))


@tool("Rules that close paths")
async def path_rules_of(call: ToolCall, root: str, roots: list[str]) -> Content:
    """Their fingerprint."""
    return packed(await call.services.analysis_runs.by.rules(Path(root), roots))


@tool("Report on edits", timeout_s=LONG_S, gives_way=True)
async def report_on_edits(call: ToolCall, rows: list[EditRow], among_others: bool) -> Content:
    """The report after a refactoring, on edits that the sender's history has, and its notes; empty where the session
    has changed nothing here, and asked for no findings."""
    if not rows and not call.services.baselines.roots(call.session.id):
        return packed(("", list[str]()))
    whole = {row.id: row for row in rows}

    async def edit(number: str) -> EditRow | None:
        return whole.get(number)

    return packed((await report_on(call, rows, edit, among_others=among_others), call.notes))


# --- sessions ---------------------------------------------------------------------------------------------------------


@tool("List projects of a host")
async def held_projects(call: ToolCall) -> Content:
    """Root → entry of `list_projects`, of those that are open."""
    return packed({one["root"]: one for one in await list_projects(call) if one["open"]})


@tool("Introduce a project")
async def introduce_project(call: ToolCall, root: str) -> Content:
    """What it says to a session that works on it."""
    return packed(await introduction_of(await _open(call, root)))


@tool("Question for trust")
async def trust_question(call: ToolCall, root: str) -> Content:
    """What to ask a person; nothing where nothing is held back."""
    await _open(call, root)
    return packed(await _dialog(call).question(Path(root)))


@tool("Trust a repository", reads=False, idempotent=True)
async def keep_trust(call: ToolCall, question: TrustQuestion, by: str) -> Content:
    """Keeps a person's yes to a question."""
    await _dialog(call).keep(question, by)
    return packed(None)


def _dialog(call: ToolCall) -> LocalTrustDialog:
    return LocalTrustDialog(call.services.trust, call.services.projects)


def _tool(function: Callable[..., Awaitable[Any]]) -> Tool:
    made = tool_of(function)
    assert made is not None
    return made


UNDO = _tool(undo_edit)
CHOOSE, WARM_UP = _tool(choose_to_warm_up), _tool(warm_up_project)
ANALYZE, FINGERPRINTS, PATH_RULES = _tool(analyze_project), _tool(fingerprints_of), _tool(path_rules_of)
REPORT = _tool(report_on_edits)
HELD, INTRODUCE = _tool(held_projects), _tool(introduce_project)
QUESTION, KEEP = _tool(trust_question), _tool(keep_trust)

HOST_TOOLS = (UNDO, CHOOSE, WARM_UP, ANALYZE, FINGERPRINTS, PATH_RULES, REPORT, HELD, INTRODUCE, QUESTION, KEEP)
