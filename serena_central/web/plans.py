"""Plans over /api: checked, run, listed, waited for, approved, resumed, cancelled and undone."""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from starlette.requests import Request

from serena_central.access.working_folder import working_folder
from serena_central.agents.plans.order import waits
from serena_central.agents.plans.plan import BadPlan, Plan, PlannedTask, parse_plan, problem_in, read_plan, schema
from serena_central.agents.plans.plan_runs import PlanRuns
from serena_central.agents.plans.run_state import PlanView
from serena_central.core.errors import InvalidArguments, InvalidPlan, PlanRefused, SerenaCentralError
from serena_central.projects.root_policy import PERSON
from serena_central.projects.trust.trust_decisions import State
from serena_central.sessions.session import shortened
from serena_central.store.query_results import TaskFilter
from serena_central.web.cursors import Cursors
from serena_central.web.hangup import long_polled
from serena_central.web.query import limit_in
from serena_central.web.responses import body_of
from serena_central.web.web_services import WebServices

PLANS = Cursors("plans", tuple[float, str])

MAX_FILE_CHARS = 4096


class PlanText(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of requests with a plan: the `text` of its file (YAML), or the `plan` as an object. `file` is the file's
    name, for problems. `project` is a name or a root, where the plan names none; without it, the folder that the caller
    works in. `commands`: the digest of the plan's commands that a person has seen and allows."""

    text: str = ""
    plan: dict[str, Any] | None = None
    file: str = ""
    project: str = ""
    commands: str = ""
    called_by: str = ""


class MoreWaves(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/plans/{plan}/waves: waves as a plan file has them."""

    waves: list[dict[str, Any]]


class Resume(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/plans/{plan}/resume. `keep_edits`: what an interrupted transaction left and can't be undone
    stays."""

    keep_edits: bool = False


class Decision(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /api/v1/plans/{plan}/decision."""

    approved: bool


class PlanList(TypedDict):
    plans: list[PlanView]
    next_cursor: str | None


class PlanCheck(TypedDict):
    """What a plan brings: `commands` of its checks, their `digest`, and whether they may run without a person's word.
    `order`: by wave, which task waits for which, and why. `notes`: what of that is not known."""

    name: str
    project_root: str
    commands: list[str]
    digest: str
    allowed: bool
    order: list[dict[str, str]]
    notes: list[str]


class PlanUndone(TypedDict):
    """Edits that were undone, and why others could not be."""

    undone: list[str]
    refused: dict[str, str]


@dataclass(frozen=True)
class Plans:
    """The handlers."""

    parts: WebServices

    async def list_plans(self, request: Request) -> PlanList:
        """The newest first."""
        query, limit = request.query_params, limit_in(request)
        project = query.get("project")
        wanted = TaskFilter(
            project=str(self.parts.projects.find(project, PERSON)) if project else None,
            behind=PLANS.read(request),
            limit=limit + 1,
        )
        found = await (await self._runs()).listed(wanted)
        page = found[:limit]
        cursor = PLANS.write((page[-1].created_at, page[-1].id)) if page and len(found) > limit else None
        return {"plans": page, "next_cursor": cursor}

    async def check_plan(self, request: Request) -> PlanCheck:
        """Nothing is run."""
        plan, root, _ = await self._asked(request)
        order: list[dict[str, str]] = []
        notes: list[str] = []
        ground = (await self._runs()).ground
        for wave, name in zip(plan.waves, (one.name or str(at) for at, one in enumerate(plan.waves, 1)), strict=True):
            reaches, unknown = await ground.reaches(root, [task.targets for task in wave.tasks])
            notes += [f"{name}: {one}" for one in unknown]
            names = [task.name or str(at) for at, task in enumerate(wave.tasks, 1)]
            for wait in waits(reaches):
                found = {"wave": name, "task": names[wait.task], "after": names[wait.after], "because": wait.because}
                order.append(found)
        commands = plan.commands()
        return {
            "name": plan.name,
            "project_root": str(root),
            "commands": commands,
            "digest": digest_of(commands),
            "allowed": not commands or self._trusts(root),
            "order": order,
            "notes": notes,
        }

    async def run_plan(self, request: Request) -> PlanView:
        """Runs a plan. Commands of its checks run only in projects that your settings trust, or if a person has seen
        them."""
        plan, root, asked = await self._asked(request)
        await self._check_commands(plan, root, asked.commands)
        return await (await self._runs()).start(plan, root, asked.file[:MAX_FILE_CHARS], shortened(asked.called_by))

    async def show_plan(self, request: Request) -> Any:
        """With `wait_s` it is answered when the plan is over or waits for a person, or after that long."""
        runs, plan = await self._runs(), request.path_params["plan"]
        return await long_polled(request, self.parts.tasks.closing, partial(runs.find, plan), partial(runs.wait, plan))

    async def add_waves(self, request: Request) -> PlanView:
        """To a plan that is done; they refer to its earlier waves."""
        runs, plan = await self._runs(), request.path_params["plan"]
        await runs.find(plan)
        asked = await body_of(request, MoreWaves)
        if any("command" in one for wave in asked.waves for one in wave.get("checks", ()) if isinstance(one, dict)):
            raise PlanRefused("Waves that are added can't bring commands; write them into the plan.")
        return await runs.extend(plan, asked.waves)

    async def resume_plan(self, request: Request) -> PlanView:
        """Goes on with what is not done, or was undone since."""
        asked = await body_of(request, Resume)
        return await (await self._runs()).resume(request.path_params["plan"], keep_edits=asked.keep_edits)

    async def decide_plan(self, request: Request) -> PlanView:
        """A person's decision, for which the plan waits."""
        runs, plan = await self._runs(), request.path_params["plan"]
        await runs.find(plan)
        asked = await body_of(request, Decision)
        return await runs.decide(plan, self._by(request), approved=asked.approved)

    async def cancel_plan(self, request: Request) -> PlanView:
        """With its tasks; what they edited stays."""
        return await (await self._runs()).cancel(request.path_params["plan"], self._by(request))

    async def undo_plan(self, request: Request) -> PlanUndone:
        """Undoes the edits of a plan, of one of its waves, or of one task."""
        query = request.query_params
        done = await (await self._runs()).undo(
            request.path_params["plan"], self._by(request), wave=query.get("wave", ""), task=query.get("task", "")
        )
        return {"undone": done.undone, "refused": done.refused}

    async def show_plan_schema(self, _request: Request) -> dict[str, Any]:
        """The JSON schema of plan files."""
        return schema()

    # ---

    async def _runs(self) -> PlanRuns:
        return await self.parts.tasks.plans()

    def _by(self, request: Request) -> str:
        return shortened(request.query_params.get("by") or "a person")

    async def _asked(self, request: Request) -> tuple[Plan, Path, PlanText]:
        """Raises InvalidPlan, InvalidArguments, UnknownProject."""
        asked = await body_of(request, PlanText)
        try:
            plan = read_plan(asked.plan) if asked.plan is not None else parse_plan(asked.text, asked.file or "plan")
        except BadPlan as error:
            raise InvalidPlan(map(str, error.problems)) from error
        where = plan.project or asked.project or working_folder(request.scope["headers"]) or ""
        if not where:
            raise InvalidArguments("A plan needs a project: its name or its root.")
        projects = self.parts.projects
        root = projects.check(projects.find(where, PERSON))
        await self._check_tasks(plan, root, asked)
        return plan, root, asked

    async def _check_tasks(self, plan: Plan, root: Path, asked: PlanText) -> None:
        """Raises InvalidPlan: tasks ask for agents or runners that there are not."""
        ground = (await self._runs()).ground
        first: dict[tuple[str, str], tuple[tuple[int, int], PlannedTask]] = {}
        for number, wave in enumerate(plan.waves):
            for at, task in enumerate(wave.tasks):
                first.setdefault((task.agent, task.runner), ((number, at), task))
        problems: list[str] = []
        for (number, at), task in first.values():
            try:
                await ground.check(task, root)
            except SerenaCentralError as error:
                if asked.plan is not None:
                    problems.append(f"waves[{number}].tasks[{at}]: {error}")
                else:
                    key = f"waves.{number}.tasks.{at}"
                    problems.append(str(problem_in(asked.text, asked.file or "plan", key, str(error))))
        if problems:
            raise InvalidPlan(problems)

    async def _check_commands(self, plan: Plan, root: Path, seen: str) -> None:
        commands = plan.commands()
        if not commands or seen == digest_of(commands) or self._trusts(root):
            return
        raise PlanRefused(
            f"This plan runs {len(commands)} commands, which nobody has allowed: {'; '.join(commands[:5])}. "
            "`serena-central waves run` shows them and asks."
        )

    def _trusts(self, root: Path) -> bool:
        """Whether the user's own settings trust whatever is in a root; an approval covers only what was shown."""
        return self.parts.trust.standing(root).state in (State.ALWAYS, State.SETTINGS)


def digest_of(commands: list[str]) -> str:
    """By which a person's word is bound to what was shown."""
    return hashlib.sha256("\0".join(commands).encode()).hexdigest()[:32]
