"""One wave: its tasks in their order, what the server saw of them, the checks, and undoing it where it is a
transaction."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from serena_central.agents.plans.ground import Ground, Standing
from serena_central.agents.plans.order import Reach, waits
from serena_central.agents.plans.plan import Approval, Check, Command, Wave, checks_of
from serena_central.agents.plans.plan_run import PlanRun
from serena_central.agents.plans.results import baseline_file, filled, summary, with_results
from serena_central.agents.plans.run_state import CheckRun, TaskRun, WaveRun, WaveState
from serena_central.agents.tasks import TaskView
from serena_central.core.errors import PlanNotKept, SerenaCentralError, TaskNotFound
from serena_central.core.words import counted

LISTED = 5
OUTPUT_CHARS = 1000
"""Of a failed command's output, its end."""

BY = "the plan"

TURN_S = 900.0
"""How long a transaction waits for that of another plan in its project: one of them may have started the other."""

Save = Callable[[str], Awaitable[None]]
Approve = Callable[[PlanRun, Approval], Awaitable[str]]


class Stopped(Exception):
    """The plan does not go on; why."""

    def __init__(self, says: str) -> None:
        super().__init__(says)
        self.says = says


class WaveRunner:
    """Of one run of a plan."""

    def __init__(self, run: PlanRun, ground: Ground, turn: anyio.Lock, save: Save, approved: Approve) -> None:
        """`turn` is held while a transaction's tasks run in the project: which of two broke what would not be known."""
        self._run = run
        self._ground = ground
        self._turn = turn
        self._save = save
        self._approved = approved
        self._root = Path(run.view.project_root)
        self._folder = Path(run.view.folder)

    async def run(self, number: int) -> None:
        """Runs the wave at a place of the plan, as far as it is not done.

        Raises:
            Stopped: something of it failed.
        """
        wave, state = self._run.plan.waves[number], self._run.view.waves[number]
        if state.state is WaveState.DONE and not await self._undone(state):
            return
        state.says, state.notes = "", []
        async with self._alone(state):
            await self._carry_out(number, wave, state)
        problems = [] if wave.allow_failures else _failures(state.tasks)
        if state.transaction:
            problems += _found(state.verified)
        if not problems:
            problems = await self._checks(wave, state) or await self._undone(state)
        if problems:
            await self._failed(number, state, problems)
        state.state, state.says = WaveState.DONE, ""
        await self._share(number, state)

    # --- tasks -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _alone(self, state: WaveRun) -> AsyncGenerator[None]:
        if not state.transaction:
            yield
            return
        if self._turn.locked():
            state.says = "Waits for the transaction of another plan in this project."
            await self._save(state.name)
        taken = False
        with anyio.move_on_after(TURN_S):
            await self._turn.acquire()
            taken = True
        try:
            if not taken:
                state.notes.append("The transaction of another plan ran at the same time: errors may be of its making.")
            yield
        finally:
            if taken:
                self._turn.release()

    async def _carry_out(self, number: int, wave: Wave, state: WaveRun) -> None:
        """Runs what is to be run of the wave's tasks, and looks at what came of it."""
        waited = state.state is WaveState.WAITING
        ran = await self._prepare(number, wave, state)
        if ran:
            state.state = WaveState.RUNNING
            await self._save(state.name)
            await self._tasks(wave, state)
        elif waited:
            return  # for a person, who has seen all
        else:
            for check, one in zip(checks_of(wave), state.checks, strict=True):
                if not isinstance(check, Approval):
                    one.state, one.says = "pending", ""
        if ran or self._needs_errors(wave, state):
            state.verified = await self._ground.verify(self._run.view.id, self._root, state.tasks)
            await self._save(state.name)

    async def _prepare(self, number: int, wave: Wave, state: WaveRun) -> bool:
        """Has the state before the wave known, and what an earlier run left of it undone where that is promised.
        Whether there are tasks to run."""
        for one in state.tasks:
            if one.state == "running":  # its end may be on record although the plan's was not
                try:
                    self._ended(one, await self._ground.wait(one.task))
                except TaskNotFound as error:
                    one.state, one.error = "failed", str(error)
        standing = await self._ground.standing(state.tasks)
        again = [
            one
            for one in state.tasks
            if one.state != "done" or state.state is WaveState.UNDONE or one.task in standing.undone
        ]
        if again:
            await self._begin_again(state, again, standing)
        if self._needs_errors(wave, state):
            # Where nothing of the wave is left, what is there now is the state before it.
            none_left = len(again) == len(state.tasks) and (state.transaction or not standing.in_force)
            file = baseline_file(self._folder, number + 1)
            await self._ground.begin(self._run.view.id, self._root, file, anew=none_left)
        return bool(again)

    async def _begin_again(self, state: WaveRun, again: Sequence[TaskRun], standing: Standing) -> None:
        """Forgets what tasks did that are to be run; in a transaction it is undone."""
        if state.transaction and any(one.task for one in again):
            undone = await self._ground.undo([one for one in again if one.task], BY)
            state.not_undone = undone.refused
            if undone.refused and not self._run.keep_edits:
                raise Stopped(
                    f"Edits of an interrupted run of {state.name} can't be undone: {_refused(undone.refused)}. Put "
                    f"right what they left, then go on: serena-central waves resume {self._run.view.id} --keep-edits"
                )
            state.notes += [f"Kept: {edit}, which can't be undone." for edit in undone.refused]
        for one in again:
            if lost := standing.undone.get(one.task):
                state.notes.append(f"{one.name} ran again: its edits were undone ({', '.join(lost[:LISTED])}).")
            one.task = one.session = one.text = one.error = ""
            one.state, one.verified, one.undone = "pending", {}, []
        for check in state.checks:
            check.state, check.says = "pending", ""
        state.undone = []

    def _needs_errors(self, wave: Wave, state: WaveRun) -> bool:
        return state.transaction or any(isinstance(check, str) for check in checks_of(wave))

    async def _undone(self, state: WaveRun) -> list[str]:
        """Tasks whose work is not there any more."""
        gone = (await self._ground.standing(state.tasks)).undone
        return [
            f"edits of the task {one.name} were undone meanwhile: {', '.join(gone[one.task][:LISTED])}"
            for one in state.tasks
            if one.task in gone
        ]

    async def _tasks(self, wave: Wave, state: WaveRun) -> None:
        reaches, unknown = await self._ground.reaches(self._root, [task.targets for task in wave.tasks])
        state.notes += unknown
        for one in state.tasks:
            one.after = {}
        for wait in waits(reaches):
            state.tasks[wait.task].after[state.tasks[wait.after].name] = wait.because
        over = {one.name: anyio.Event() for one in state.tasks}
        async with anyio.create_task_group() as tasks:
            for index, one in enumerate(state.tasks):
                if one.state == "done":
                    over[one.name].set()
                else:
                    tasks.start_soon(self._task, wave, state, index, reaches[index], over)

    async def _task(self, wave: Wave, state: WaveRun, index: int, reach: Reach, over: dict[str, anyio.Event]) -> None:
        planned, one, plan = wave.tasks[index], state.tasks[index], self._run
        for name in one.after:
            await over[name].wait()
        instruction = filled(planned.instruction, plan.plan, plan.view.waves, self._folder)
        try:
            one.task, one.session = await self._ground.submit(plan.view.id, planned, instruction, self._root)
        except SerenaCentralError as error:
            one.state, one.error = "failed", str(error)
            over[one.name].set()
            return
        self._ground.hold(self._root, one.task, one.session, sorted(reach.own))
        try:
            one.state = "running"
            unsaved = await self._saved(state)
            if unsaved:  # a plan that is resumed would neither wait for it nor undo what it did
                await self._ground.cancel(one.task, BY)
            self._ended(one, await self._ground.wait(one.task))
            if unsaved:
                one.state, one.error = "failed", unsaved
        except BaseException:
            with anyio.CancelScope(shield=True):
                if plan.cancelled_by:
                    await self._ground.cancel(one.task, plan.cancelled_by)
                    self._ended(one, await self._ground.wait(one.task))
                    one.state = "cancelled"
            raise
        finally:
            self._ground.release(one.task)
            over[one.name].set()
        await self._saved(state)  # else with what is saved next: the other tasks are not to be left alone

    async def _saved(self, state: WaveRun) -> str:
        """Saves the state while tasks run; why it can't be, or ""."""
        try:
            await self._save(state.name)
        except PlanNotKept as error:
            return str(error)
        return ""

    def _ended(self, one: TaskRun, found: TaskView) -> None:
        one.state, one.text, one.error = str(found.state), found.text, found.error
        one.verified, one.cost_usd = found.verified, found.cost_usd

    # --- what must hold ----------------------------------------------------------------------------------------------

    async def _checks(self, wave: Wave, state: WaveRun) -> list[str]:
        """The first that fails stops the others."""
        for check, one in zip(checks_of(wave), state.checks, strict=True):
            if one.state == "passed":
                continue
            one.state = "waiting" if isinstance(check, Approval) else "pending"
            one.says = await self._check(check, one, state)
            one.state = "failed" if one.says else "passed"
            await self._save(state.name)
            if one.says:
                return [f"{one.name}: {one.says}"]
        return []

    async def _check(self, check: Check, one: CheckRun, state: WaveRun) -> str:
        """Why it fails; "" where it does not."""
        if isinstance(check, Approval):
            state.state = WaveState.WAITING
            return await self._approved(self._run, check)
        if isinstance(check, Command):
            return await self._command(check)
        seen = state.verified
        if check == "no-unused-symbols":
            found, unknown = await self._ground.unused(self._root, seen.get("files", []))
            return _listed(found) or unknown
        errors = seen.get("broken_references" if check == "no-broken-references" else "new_errors", [])
        if check == "no-broken-references":
            state.notes += [f"{check}: {caveat}" for caveat in seen.get("caveats", ())]
        undetermined = "; ".join(seen.get("undetermined", ()))
        return _listed([_place(error) for error in [*errors, *seen.get("undated", [])]]) or undetermined

    async def _command(self, check: Command) -> str:
        try:
            ended = await self._ground.command(self._root, check.command, check.timeout_s)
        except SerenaCentralError as error:
            return str(error)
        if ended.exit_code == 0:
            return ""
        how = f"exit code {ended.exit_code}" if ended.exit_code is not None else f"not over after {check.timeout_s:g} s"
        output = ended.output[-OUTPUT_CHARS:].strip()
        return f"{how}: {output}" if output else how

    async def _failed(self, number: int, state: WaveRun, problems: Sequence[str]) -> None:
        """Raises Stopped."""
        state.state, state.says = WaveState.FAILED, "; ".join(problems)
        says = f"Wave {state.name}: {state.says.rstrip('.')}."
        if state.transaction:
            if others := state.verified.get("edits_of_others"):
                says += f" Others edited meanwhile, which may be why: {', '.join(others[:LISTED])}."
            done = await self._ground.undo(state.tasks, BY)
            state.undone, state.not_undone = done.undone, done.refused
            for one in state.tasks:
                one.undone = done.of_task.get(one.task, [])
            state.state = WaveState.FAILED if done.refused else WaveState.UNDONE
            says += f" Undone: {counted(len(done.undone), 'edit')}."
            if done.refused:
                says += f" Not undone: {_refused(done.refused)}."
            if beside := state.verified.get("changed_otherwise"):
                says += f" Changed beside the history of edits, and not undone: {', '.join(beside[:LISTED])}."
        await with_results(self._folder, number + 1, self._run.plan.name, state)
        raise Stopped(says)

    async def _share(self, number: int, state: WaveRun) -> None:
        await with_results(self._folder, number + 1, self._run.plan.name, state)
        plan = self._run.plan
        text = summary(plan.name, number + 1, state)
        for where in plan.share:
            try:
                await self._ground.share(self._run.view.id, self._root, where, plan.name, number + 1, text)
            except SerenaCentralError as error:
                state.notes.append(f"Its results are not in {where}: {error}")
        await self._save(state.name)


def _failures(tasks: Sequence[TaskRun]) -> list[str]:
    return [f"the task {one.name} is {one.state}: {one.error}" for one in tasks if one.state != "done"]


def _found(verified: dict[str, Any]) -> list[str]:
    """What a transaction does not permit."""
    found: list[str] = []
    broken = [_place(one) for one in verified.get("broken_references", ())]
    errors = [text for one in verified.get("new_errors", ()) if (text := _place(one)) not in broken]
    for what, places in (
        ("broken references", broken),
        ("new errors", errors),
        ("errors that may be new", [_place(one) for one in verified.get("undated", ())]),
    ):
        if places:
            found.append(f"{what}: {_listed(places)}")
    return found + [f"its errors are not determined: {why}" for why in verified.get("undetermined", ())]


def _place(error: dict[str, Any]) -> str:
    return f"{error['path']}:{error['line']}: {error['message']}"


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
    return "; ".join(places[:LISTED]) + more


def _refused(refused: dict[str, str]) -> str:
    """Without a full stop."""
    told = list(refused.items())[:LISTED]
    return "; ".join(why.rstrip(".") if why.startswith(edit) else f"{edit}: {why.rstrip('.')}" for edit, why in told)
