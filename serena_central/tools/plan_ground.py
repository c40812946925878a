"""What plans need of tasks, projects, edits and memories; see `agents.plans.ground.Ground`."""

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec

from serena_central.agents.plans.ground import Ended, Standing, Undoing
from serena_central.agents.plans.order import Reach
from serena_central.agents.plans.plan import PlannedTask
from serena_central.agents.plans.results import with_section, write_private
from serena_central.agents.plans.run_state import TaskRun
from serena_central.agents.tasks import TaskView
from serena_central.analysis.error_changes import CodeError, ErrorBaseline
from serena_central.analysis.selection import code_below, dependents
from serena_central.core.decoding import from_json
from serena_central.core.errors import MemoryNotFound, SerenaCentralError, TaskNotFound
from serena_central.core.tracing import new_call_id
from serena_central.editing.change import Author
from serena_central.processes.child import STDERR_TAIL_BYTES, run
from serena_central.processes.environment import HARMLESS, allowed
from serena_central.processes.output import Tail
from serena_central.projects.editing.edit_records import operation_of
from serena_central.projects.editing.undo import undo
from serena_central.projects.project import Project
from serena_central.store.query_results import EditFilter, TaskFilter, next_page
from serena_central.store.rows import EditRow
from serena_central.tools.project_call import check_refusal, command_refusal
from serena_central.tools.task_offer import TaskRequest
from serena_central.tools.task_verification import TaskVerifier, files_of

if TYPE_CHECKING:
    from serena_central.agents.scheduler import Scheduler
    from serena_central.tools.context import Services

LEARN_S = 60.0
"""How long a wave waits until the errors before it are known."""

REACH_S = 20.0
"""How long the order of tasks may take to find out."""

TASKS_AT_ONCE = 1000
"""Of those that a task started, that are read from the store together."""

MOST_FILES_OF_TARGET = 500


class StoredErrors(msgspec.Struct):
    """The errors of a root before a wave."""

    known: dict[str, list[CodeError]]
    names: dict[str, set[str]]


class PlanGround:
    """Of one server."""

    def __init__(self, services: "Services", scheduler: "Scheduler", verifier: TaskVerifier) -> None:
        self._services = services
        self._scheduler = scheduler
        self._verifier = verifier

    # --- tasks -------------------------------------------------------------------------------------------------------

    async def reaches(self, root: Path, targets: Sequence[Sequence[str]]) -> tuple[list[Reach], list[str]]:
        found, notes = [Reach() for _ in targets], list[str]()
        if not any(targets):
            return found, notes
        try:
            project = await self._services.projects.open(root)
            with anyio.fail_after(REACH_S):
                for index, of_task in enumerate(targets):
                    parts = [await self._reach(project, target, notes) for target in of_task]
                    own, around = [one.own for one in parts], [one.dependents for one in parts]
                    found[index] = Reach(frozenset[str]().union(*own), frozenset[str]().union(*around))
        except (SerenaCentralError, TimeoutError) as error:
            notes.append(f"What targets depend on is not determined: {error or f'not within {REACH_S:g} s'}")
        return found, notes

    async def _reach(self, project: Project, target: str, notes: list[str]) -> Reach:
        file, marked, symbol = target.partition("#")
        tree = project.tree.files
        if not marked and (target in tree or any(path.startswith(target.rstrip("/") + "/") for path in tree)):
            inside = [path for path in tree if path == target or path.startswith(target.rstrip("/") + "/")]
            around, _ = await dependents(project, inside[:MOST_FILES_OF_TARGET], frozenset())
            return Reach(frozenset(inside), frozenset(around) - frozenset(inside))
        try:
            hit = await project.find_one(symbol if marked else target, file if marked else "")
            used = await project.navigation.references.of(hit)
        except SerenaCentralError as error:
            notes.append(f"The target {target} is taken as it is written: {error}")
            return Reach(frozenset({target}))
        places = {
            f"{one.path}#{one.holder.name_path}" if one.holder is not None else one.path for one in used.references
        }
        return Reach(frozenset({f"{hit.path}#{hit.name_path}"}), frozenset(places))

    async def check(self, task: PlannedTask, root: Path) -> None:
        await self._services.tasks.check(_request(task, task.instruction), root)

    async def submit(self, plan: str, task: PlannedTask, instruction: str, root: Path) -> tuple[str, str]:
        started = await self._services.tasks.submit(_request(task, instruction), root, plan)
        return started.spec.id, started.spec.session

    async def wait(self, task: str) -> TaskView:
        return await self._scheduler.records.wait(task)

    async def cancel(self, task: str, by: str) -> None:
        await self._scheduler.cancel(task, by)

    def hold(self, root: Path, task: str, session: str, places: Sequence[str]) -> None:
        self._services.tasks.leases.hold(root, task, session, places)

    def release(self, task: str) -> None:
        self._services.tasks.leases.release(task)

    async def _with_children(self, tasks: Sequence[TaskRun]) -> list[TaskView]:
        found: list[TaskView] = []
        for one in tasks:
            with suppress(TaskNotFound):  # what was not on record before a kill was not begun
                found += [await self._scheduler.records.find(one.task)] if one.task else []
        for one in found:  # which grows meanwhile
            page: TaskFilter | None = TaskFilter(parent=one.id, limit=TASKS_AT_ONCE)
            while page is not None:
                below = await self._scheduler.records.listed(page)
                found += below
                page = next_page(page, [(task.created_at, task.id) for task in below])
        return found

    # --- what the server sees ----------------------------------------------------------------------------------------

    async def begin(self, plan: str, root: Path, file: Path, *, anew: bool) -> None:
        baselines = self._verifier.share(plan)
        if not anew and (stored := await anyio.to_thread.run_sync(_read, file)) is not None:
            baselines |= {Path(one): ErrorBaseline(found.known, found.names) for one, found in stored.items()}
            return
        baselines.clear()
        project = await self._services.projects.open(root)
        await project.fresh()
        with anyio.move_on_after(LEARN_S):
            await baselines[root].look(project, code_below(project, ""))
        content = {str(one): StoredErrors(found.known, found.names) for one, found in baselines.items()}
        await anyio.to_thread.run_sync(write_private, file, msgspec.json.encode(content))

    async def verify(self, plan: str, root: Path, tasks: Sequence[TaskRun]) -> dict[str, Any]:
        views = await self._with_children(tasks)
        all_rows = await self._rows(views)
        undone = await self._services.history.undone([row.id for row in all_rows])
        rows = [row for row in all_rows if row.id not in undone and row.undoes is None]
        changed: dict[Path, set[str]] = defaultdict(set)
        for row in rows:
            changed[Path(row.project_root)].update(files_of([row]))
        own = {path for paths in changed.values() for path in paths}
        otherwise = {path for one in views for path in one.verified.get("changed_otherwise", ())} - own
        changed[root] |= otherwise
        undetermined: list[str] = []
        errors = await self._verifier.errors(self._verifier.share(plan), changed, undetermined)
        return {
            "files": sorted(own),
            "edits": [row.id for row in rows],
            "changed_otherwise": sorted(otherwise),
            **errors,
            "tests": [test for one in views for test in one.verified.get("tests", ())],
            "cost_usd": sum(one.cost_usd or 0.0 for one in views),
            "undetermined": undetermined,
            "edits_of_others": await self._edits_of_others(root, views),
        }

    async def _edits_of_others(self, root: Path, views: Sequence[TaskView]) -> list[str]:
        begun = [one.started_at for one in views if one.started_at is not None]
        if not begun:
            return []
        found = await self._services.history.all_edits(EditFilter(project=str(root), since=min(begun)))
        sessions = {one.session for one in views}
        others = [row for row in found if row.session not in sessions]
        undone = await self._services.history.undone([row.id for row in others])
        return [row.id for row in others if row.id not in undone and row.undoes is None]

    async def _rows(self, views: Sequence[TaskView]) -> list[EditRow]:
        """All edits of tasks, the newest first."""
        edits = self._services.history.all_edits
        rows = [row for one in views for row in await edits(EditFilter(session=one.session))]
        return sorted(rows, key=lambda row: row.at, reverse=True)

    async def standing(self, tasks: Sequence[TaskRun]) -> Standing:
        rows = {one.task: await self._rows(await self._with_children([one])) for one in tasks if one.task}
        own = {row.id for of_task in rows.values() for row in of_task}
        undone = await self._services.history.undone(sorted(own))
        made = {task: [row.id for row in of_task if row.undoes is None] for task, of_task in rows.items()}
        in_force = {task: kept for task, ids in made.items() if (kept := [one for one in ids if one not in undone])}
        by_others = {one for one, undoer in undone.items() if undoer not in own}
        gone = {task: lost for task, ids in made.items() if (lost := [one for one in ids if one in by_others])}
        return Standing(in_force, gone)

    async def unused(self, root: Path, files: Sequence[str]) -> tuple[list[str], str]:
        if not files:
            return [], ""
        project = await self._services.projects.open(root)
        here = [path for path in files if path in project.tree.files]
        where = await self._services.validation.extent(project, "", here)
        result = (await self._services.validation.unused(where)).whole
        unknown = f"{result.unasked} symbols were not examined" if result.unasked else ""
        return [f"{one.path}:{one.line}: {one.name_path} is not used" for one in result.found], unknown

    def end(self, plan: str) -> None:
        self._verifier.forget(plan)

    # --- what it does ------------------------------------------------------------------------------------------------

    async def undo(self, tasks: Sequence[TaskRun], by: str) -> Undoing:
        done = Undoing([], {}, {})
        standing = await self.standing(tasks)
        of = {operation_of(edit): task for task, edits in standing.in_force.items() for edit in edits}
        for row in await self._rows(await self._with_children(tasks)):
            operation = operation_of(row.id)
            task = of.pop(operation, None)
            if task is None:
                continue
            try:
                await undo(operation, self._services.history, self._services.projects, by=by)
            except SerenaCentralError as error:
                done.refused[operation] = str(error)
            else:
                done.undone.append(operation)
                done.of_task.setdefault(task, []).append(operation)
        return done

    async def command(self, root: Path, line: str, timeout_s: float) -> Ended:
        check_refusal(command_refusal(self._services.claude, root, line))
        output = Tail(STDERR_TAIL_BYTES)
        ended = await run(
            ["/bin/sh", "-c", line],
            root,
            deadline_s=timeout_s,
            stdout=output,
            environment=allowed(HARMLESS, os.environ),
            merged=True,
        )
        return Ended(None if ended.timed_out else ended.exit_code, output.text)

    async def share(self, plan: str, root: Path, where: str, name: str, number: int, text: str) -> None:
        project = await self._services.projects.open(root)
        author = Author(session=plan, client="serena-central waves", tool="waves", call=new_call_id())
        try:
            if where == "memory":
                memory = f"plans/{name}/wave-{number}"
                try:
                    seen = (await project.memories.read(memory)).digest
                except MemoryNotFound:
                    seen = None
                await project.memories.write(memory, text, author, seen=seen)
            elif "CLAUDE.md" in project.tree.files:
                await project.edits.change_text(
                    "CLAUDE.md", lambda read: with_section(read.text.content, f"{name}, wave {number}", text), author
                )
            else:
                section = with_section("", f"{name}, wave {number}", text)
                await project.edits.create_file("CLAUDE.md", section, author)
        finally:
            self._services.history.answered(author.call, None)


def _request(task: PlannedTask, instruction: str) -> TaskRequest:
    return TaskRequest(
        instruction=instruction,
        agent=task.agent,
        runner=task.runner,
        model=task.model,
        timeout_s=task.timeout_s,
        max_tokens=task.max_tokens,
        max_usd=task.max_usd,
    )


def _read(file: Path) -> dict[str, StoredErrors] | None:
    try:
        return from_json(file.read_bytes(), dict[str, StoredErrors])
    except (OSError, msgspec.MsgspecError):
        return None
