"""Tasks over /api: started, listed, waited for, cancelled, and their output."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request

from serena_central.access.working_folder import working_folder
from serena_central.agents.tasks import TaskView
from serena_central.core.errors import InvalidArguments
from serena_central.projects.root_policy import PERSON
from serena_central.sessions.session import shortened
from serena_central.store.query_results import TaskFilter
from serena_central.tools.task_offer import TaskRequest
from serena_central.web.api_answers import TaskList, TaskOutputLines
from serena_central.web.cursors import Cursors
from serena_central.web.hangup import long_polled
from serena_central.web.query import limit_in
from serena_central.web.responses import body_of
from serena_central.web.web_services import WebServices

TASKS = Cursors("tasks", tuple[float, str])


class RunTask(TaskRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /api/v1/tasks. `project` is a name or a root; without it, the folder that the caller works in.
    `called_by`: the session on whose behalf it is asked for."""

    project: str = ""
    called_by: str = ""


@dataclass(frozen=True)
class Tasks:
    """The handlers."""

    parts: WebServices

    async def run_task(self, request: Request) -> TaskView:
        """Accepts a task; it runs when there is a place for it."""
        asked = await body_of(request, RunTask)
        where = asked.project or working_folder(request.scope["headers"]) or ""
        if not where:
            raise InvalidArguments("A task needs a project: its name or its root.")
        projects = self.parts.projects
        root = projects.check(projects.find(where, PERSON))
        plain = TaskRequest(**{name: getattr(asked, name) for name in TaskRequest.__struct_fields__})
        task = await self.parts.tasks.submit(plain, root, shortened(asked.called_by))
        scheduler = await self.parts.tasks.scheduler()
        return await scheduler.records.find(task.spec.id)

    async def list_tasks(self, request: Request) -> TaskList:
        """The newest first."""
        query, limit = request.query_params, limit_in(request)
        project = query.get("project")
        wanted = TaskFilter(
            state=query.get("state"),
            project=str(self.parts.projects.find(project, PERSON)) if project else None,
            parent=query.get("parent"),
            behind=TASKS.read(request),
            limit=limit + 1,
        )
        found = await (await self.parts.tasks.scheduler()).records.listed(wanted)
        page = found[:limit]
        cursor = TASKS.write((page[-1].created_at, page[-1].id)) if page and len(found) > limit else None
        return {"tasks": page, "next_cursor": cursor}

    async def show_task(self, request: Request) -> Any:
        """With `wait_s` it is answered when the task is over, or after that long."""
        scheduler, task = await self.parts.tasks.scheduler(), request.path_params["task"]
        find, wait = partial(scheduler.records.find, task), partial(scheduler.records.wait, task)
        return await long_polled(request, self.parts.tasks.closing, find, wait)

    async def cancel_task(self, request: Request) -> TaskView:
        """With all tasks that it started; answered when their processes are gone."""
        by = shortened(request.query_params.get("by") or "a person")
        return await (await self.parts.tasks.scheduler()).cancel(request.path_params["task"], by)

    async def compact_task(self, request: Request) -> TaskView:
        """Before its next request to the model."""
        return await (await self.parts.tasks.scheduler()).compact(request.path_params["task"])

    async def show_output(self, request: Request) -> TaskOutputLines:
        """Lines of its output behind the number `after`."""
        after = int(request.query_params.get("after", 0))
        scheduler = await self.parts.tasks.scheduler()
        return {"lines": await scheduler.records.output(request.path_params["task"], after, limit_in(request))}
