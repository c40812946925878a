"""Tools that start sub-agents and ask about them; off unless the server's own settings enable them."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from serena_central.core.errors import InvalidArguments
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.task_offer import TaskRequest

if TYPE_CHECKING:
    from serena_central.agents.tasks import TaskView

WAIT_S = 86_400.0


class TaskAnswer(msgspec.Struct, omit_defaults=True):
    """`text` is the sub-agent's own final text, `verified` what the server saw of its work."""

    task: str
    state: str
    text: str = ""
    error: str = ""
    position: int | None = None
    usage: dict[str, int] = {}
    cost_usd: float | None = None
    verified: dict[str, Any] = {}


@tool(
    "Run a task",
    answers="{task, state, text?, error?, usage?, cost_usd?, verified?}",
    about="notes",
    reads=False,
    edits=True,
    journaled=False,
    idempotent=False,
    shown="optional",
    open_world=True,
    needs="task_tool",
    timeout_s=WAIT_S,
)
async def task(
    call: ToolCall,
    instruction: Annotated[str, Meta(description="All that the sub-agent needs: it sees nothing of this conversation")],
    agent: Annotated[str, Meta(description="Agent definition to use")] = "",
    project: Annotated[str, Meta(description="Default: the one you work in")] = "",
    background: Annotated[bool, Meta(description="Answer at once; ask task_result later")] = False,
) -> TaskAnswer:
    """Runs a sub-agent on an instruction and answers its final text. Several calls at once run side by side."""
    tasks = call.services.tasks
    root = call.services.projects.find(project, call.opener) if project else call.session.rules_root
    root = call.services.projects.check(root)
    scheduler = await tasks.scheduler()
    started = await tasks.submit(TaskRequest(instruction=instruction, agent=agent), root, call.session.id)
    if background:
        return _answer(await scheduler.records.find(started.spec.id))
    try:
        async with scheduler.waiting(call.session.id):
            return _answer(await scheduler.records.wait(started.spec.id))
    finally:
        scheduler.abandon(started.spec.id)


@tool(
    "Ask about a task",
    answers="As task",
    about="notes",
    reads=False,
    shown="optional",
    needs="task_tool",
    timeout_s=WAIT_S,
)
async def task_result(
    call: ToolCall,
    task: Annotated[str, Meta(description="Its id")],
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_S - 10, description="Wait for its end")] = 0.0,
    cancel: Annotated[bool, Meta(description="Cancel it and its own tasks")] = False,
) -> TaskAnswer:
    """State and result of a task that this session started in the background."""
    scheduler = await call.services.tasks.scheduler()
    found = await scheduler.records.find(task)
    if found.called_by != call.session.id:
        raise InvalidArguments(f"{task} was not started by this session.")
    if cancel:
        return _answer(await scheduler.cancel(task, call.session.client_name))
    if not wait_s:
        return _answer(found)
    async with scheduler.waiting(call.session.id):
        return _answer(await scheduler.records.wait(task, wait_s))


def _answer(found: "TaskView") -> TaskAnswer:
    return TaskAnswer(
        task=found.id,
        state=str(found.state),
        text=found.text,
        error=found.error,
        position=found.position,
        usage=found.usage,
        cost_usd=found.cost_usd,
        verified=found.verified,
    )
