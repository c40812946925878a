"""Runs plans: one wave after another, what must hold between them, and what is undone where it does not.

What is needed to resume a plan after the server's end is in its folder before anything follows from it. It knows
sessions by their ids.
"""

import logging
import re
import secrets
import time
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from serena_central.agents.plans.ground import Ground, Undoing
from serena_central.agents.plans.plan import Approval, BadPlan, Plan, Wave, checks_of, read_plan, task_name, wave_index
from serena_central.agents.plans.plan_run import PlanRun
from serena_central.agents.plans.results import Stored, load, remove_if_old, store
from serena_central.agents.plans.run_state import CheckRun, PlanState, PlanView, TaskRun, WaveRun, WaveState
from serena_central.agents.plans.waves import Stopped, WaveRunner
from serena_central.core.clock import UnhurriedClock
from serena_central.core.decoding import converted, from_json
from serena_central.core.errors import InvalidPlan, PlanNotFound, PlanNotKept, PlanRefused
from serena_central.core.event_kinds import PlanMoved
from serena_central.core.events import EventBus, Severity
from serena_central.core.locks import KeyedLocks
from serena_central.core.periodic import contained, repeat
from serena_central.core.words import counted
from serena_central.store.query_results import TaskFilter
from serena_central.store.rows import PlanRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

MOST_RUNNING = 20

DAY_S = 86400.0

WAIT_AGAIN_S = 30.0
"""How long a decision waits for a plan to be where it was when the server ended."""


GOING_ON = (PlanState.RUNNING, PlanState.WAITING)

PLAN_ID = re.compile("p-[0-9a-f]{12}")
"""Names its folder, too."""


def new_plan_id() -> str:
    """As a task's."""
    return "p-" + secrets.token_hex(6)


class PlanRuns:
    """Belongs to the event loop's thread."""

    def __init__(self, *, ground: Ground, bus: EventBus, store: Store, folder: Path) -> None:
        self.ground = ground
        self._bus = bus
        self._store = store
        self._folder = folder
        self._unhurried = UnhurriedClock()
        self._live: dict[str, PlanRun] = {}
        self._changing = KeyedLocks()
        """By plan: held from reading the state of one that does not run until it runs or is saved."""
        self._turns: dict[str, anyio.Lock] = {}
        """By root: what transactions of plans hold while their tasks run."""
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Owns the plans until it is cancelled; those that run then can be resumed."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            try:
                await contained("the deletion of old plans", self.sweep)
                await repeat("the deletion of old plans", self.sweep, every_s=self._store.policy.sweep_s)
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    async def sweep(self) -> None:
        """Deletes the folders of plans that are over and as old as the rows that the database deletes."""
        before = self._unhurried() - self._store.policy.calls_days * DAY_S
        for plan_id in await anyio.to_thread.run_sync(_plans_in, self._folder):
            async with self._changing.holding([plan_id]):
                if plan_id not in self._live:
                    await anyio.to_thread.run_sync(remove_if_old, self._folder / plan_id, before)

    # --- asking ------------------------------------------------------------------------------------------------------

    async def find(self, plan_id: str) -> PlanView:
        """Raises PlanNotFound, StoreError."""
        if plan_id in self._live:
            return self._live[plan_id].kept
        await self._store.writer.flush()
        row = await self._store.ask(lambda queries: queries.plan(plan_id))
        if row is None:
            row = await self._put_again(plan_id)
        return self._live[plan_id].kept if plan_id in self._live else self._view(row)

    async def listed(self, wanted: TaskFilter) -> list[PlanView]:
        """The newest first.

        Raises:
            StoreError
        """
        runs = dict(self._live)
        await self._store.writer.flush()
        rows = await self._store.ask(lambda queries: queries.plans(wanted))
        runs |= self._live  # beside those that have ended meanwhile, whose rows may be older
        return [runs[row.id].kept if row.id in runs else self._view(row) for row in rows]

    async def wait(self, plan_id: str, seconds: float) -> PlanView:
        """Waits until a plan is over or waits for a person, or that long.

        Raises:
            PlanNotFound, StoreError
        """
        run = self._live.get(plan_id)
        if run is not None:
            with anyio.move_on_after(seconds):
                while not run.over.is_set() and run.kept.state is PlanState.RUNNING:
                    await run.moved.wait()
        return await self.find(plan_id)

    # --- doing -------------------------------------------------------------------------------------------------------

    async def start(self, plan: Plan, root: Path, file: str, by: str) -> PlanView:
        """Runs a plan, whose commands a person has allowed.

        Raises:
            PlanRefused
        """
        plan_id = new_plan_id()
        view = PlanView(
            id=plan_id,
            name=plan.name,
            state=PlanState.RUNNING,
            project_root=str(root),
            file=file,
            folder=str(self._folder / plan_id),
            created_at=time.time(),
            ended_at=None,
            called_by=by,
            says="",
            cost_usd=0.0,
            waves=[_new_wave(plan, wave, number) for number, wave in enumerate(plan.waves, 1)],
        )
        return await self._begin(PlanRun(plan, view))

    async def extend(self, plan_id: str, waves: list[dict[str, object]]) -> PlanView:
        """Adds waves to a plan that is done, and runs them.

        Raises:
            PlanNotFound, PlanRefused, InvalidPlan
        """
        async with self._changing.holding([plan_id]):
            run = await self._still_live(plan_id)
            stored = await self._stored(plan_id)
            state = run.view.state if run is not None else stored.view.state
            if state is not PlanState.DONE:
                raise PlanRefused(f"{plan_id} is {state}: waves are added to a plan that is done.")
            values = msgspec.to_builtins(stored.plan)
            values["waves"] = [*values["waves"], *waves]
            try:
                plan = read_plan(values)
            except BadPlan as error:
                raise InvalidPlan(map(str, error.problems)) from error
            number = len(stored.plan.waves)
            stored.view.waves += [_new_wave(plan, wave, at) for at, wave in enumerate(plan.waves[number:], number + 1)]
            return await self._begin(PlanRun(plan, stored.view))

    async def resume(self, plan_id: str, *, keep_edits: bool = False) -> PlanView:
        """Goes on with what is not done, or was undone since. `keep_edits`: what an interrupted transaction left and
        can't be undone stays.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        async with self._changing.holding([plan_id]):
            return await self._resume(plan_id, keep_edits=keep_edits)

    async def _resume(self, plan_id: str, *, keep_edits: bool = False) -> PlanView:
        """Raises PlanNotFound, PlanRefused, StoreError."""
        if (run := await self._still_live(plan_id)) is not None:
            raise PlanRefused(f"{plan_id} is {run.view.state} already.")
        stored = await self._stored(plan_id)
        if stored.view.state is PlanState.DONE:
            raise PlanRefused(f"{plan_id} is done; run the plan again.")
        return await self._begin(PlanRun(stored.plan, stored.view, keep_edits=keep_edits))

    async def decide(self, plan_id: str, by: str, *, approved: bool) -> PlanView:
        """A person's decision, for which the plan waits; also after a restart.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        async with self._changing.holding([plan_id]):
            if plan_id not in self._live and (await self.find(plan_id)).state is PlanState.WAITING:
                await self._wait_again(plan_id)
        run = self._live.get(plan_id)
        if run is None or run.decision is None:
            raise PlanRefused(f"{plan_id} waits for no approval: it is {(await self.find(plan_id)).state}.")
        run.declined_by = "" if approved else by
        decision, run.decision = run.decision, None
        run.view.state, run.view.says = PlanState.RUNNING, ""
        try:
            await self.save(run)
        except PlanNotKept as error:
            raise error.after(
                f"The decision counts, and {plan_id} goes on; a restart of the server forgets it."
            ) from error
        finally:
            decision.set()  # it was made, whether or not it could be written
        return run.kept

    async def cancel(self, plan_id: str, by: str) -> PlanView:
        """Cancels a plan and its tasks, and waits for their end; what they edited stays.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        if plan_id not in self._live:
            async with self._changing.holding([plan_id]):
                await self._cancel_left(plan_id, by)
        if (run := self._live.get(plan_id)) is not None:
            run.cancelled_by = by
            run.scope.cancel()
            await run.over.wait()
        return await self.find(plan_id)

    async def _cancel_left(self, plan_id: str, by: str) -> None:
        """Cancels a plan that does not run, if it is not over.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        if plan_id in self._live or (await self.find(plan_id)).state not in (*GOING_ON, PlanState.INTERRUPTED):
            return
        stored = await self._stored(plan_id)
        if stored.view.state in GOING_ON:
            run = PlanRun(stored.plan, stored.view)
            run.cancelled_by = by
            self._cancelled(run)
            await self.save(run)

    async def undo(self, plan_id: str, by: str, wave: str = "", task: str = "") -> Undoing:
        """Undoes the edits of a plan, of one of its waves, or of one task of that.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        async with self._changing.holding([plan_id]):
            return await self._undo(plan_id, by, wave, task)

    async def _undo(self, plan_id: str, by: str, wave: str, task: str) -> Undoing:
        """Raises PlanNotFound, PlanRefused, StoreError."""
        run = await self._still_live(plan_id)
        found = await self.find(plan_id) if run is None else run.view
        if run is not None or found.state is PlanState.WAITING:
            raise PlanRefused(f"{plan_id} is {found.state}; cancel it first.")
        stored = await self._stored(plan_id)
        chosen = stored.view.waves
        if wave:
            index = wave_index(wave, stored.plan.waves)
            if index is None:
                raise PlanRefused(f"{plan_id} has no wave {wave!r}: {', '.join(one.name for one in chosen)}.")
            chosen = [chosen[index]]
        tasks = [
            one
            for wave_run in chosen
            for at, one in enumerate(wave_run.tasks, 1)
            if one.task and task in ("", one.name, str(at))
        ]
        if task and len(tasks) != 1:
            known = ", ".join(
                f"{one.name} of {wave_run.name}" for wave_run in chosen for one in wave_run.tasks if one.task
            )
            how = "No task that ran is" if not tasks else f"{len(tasks)} tasks are"
            raise PlanRefused(f"{how} named {task!r} there; name one, with its wave: {known or 'none ran'}.")
        done = await self.ground.undo(tasks, by)
        for wave_run in chosen:
            for one in wave_run.tasks:
                undone = done.of_task.get(one.task, []) if one in tasks else []
                one.undone += undone
                wave_run.undone += undone
        try:
            await self.save(PlanRun(stored.plan, stored.view))
        except PlanNotKept as error:
            raise error.after(
                f"{counted(len(done.undone), 'edit')} undone before that, which the plan does not know."
            ) from error
        return done

    async def _still_live(self, plan_id: str) -> PlanRun | None:
        """A plan that goes on; one that is about to end is waited for."""
        run = self._live.get(plan_id)
        if run is None or run.view.state in GOING_ON:
            return run
        await run.over.wait()
        return None

    async def _stored(self, plan_id: str) -> Stored:
        view = await self.find(plan_id)
        found = await anyio.to_thread.run_sync(load, Path(view.folder))
        if found is None or found.view.id != plan_id:
            raise PlanRefused(f"The state of {plan_id} is not in {view.folder} any more; run the plan again.")
        return found

    async def _put_again(self, plan_id: str) -> PlanRow:
        """The row of a plan that is in its folder alone: the database was too slow for it when the server was killed.

        Raises:
            PlanNotFound
        """
        stored = await anyio.to_thread.run_sync(load, self._folder / plan_id) if PLAN_ID.fullmatch(plan_id) else None
        if stored is None:
            raise PlanNotFound(plan_id)
        row = _row(stored.view)
        if plan_id not in self._live:  # whose row is newer
            self._store.writer.put(row)
        return row

    async def _wait_again(self, plan_id: str) -> None:
        """Has a plan wait that waited for a person when the server ended, for the same.

        Raises:
            PlanNotFound, PlanRefused, StoreError
        """
        seen = [one.task for wave in (await self._stored(plan_id)).view.waves for one in wave.tasks]
        await self._resume(plan_id)
        run = self._live.get(plan_id)
        with anyio.move_on_after(WAIT_AGAIN_S):
            while run is not None and run.decision is None and not run.over.is_set():
                await run.moved.wait()
        if run is not None and seen != [one.task for wave in run.view.waves for one in wave.tasks]:
            raise PlanRefused(f"{plan_id} does its work again, since edits were undone. Decide when it waits again.")

    # --- running -----------------------------------------------------------------------------------------------------

    async def _begin(self, run: PlanRun) -> PlanView:
        plan_id, tasks = run.view.id, self._tasks
        if tasks is None:
            raise PlanRefused("The server is stopping.")
        if plan_id in self._live:
            raise PlanRefused(f"{plan_id} is {self._live[plan_id].view.state} already.")
        if len(self._live) >= MOST_RUNNING:
            raise PlanRefused(
                f"{MOST_RUNNING} plans are running, which is the maximum. Try again when one has ended, or cancel one."
            )
        run.view.state, run.view.says, run.view.ended_at = PlanState.RUNNING, "", None
        self._live[plan_id] = run
        try:
            await self.save(run)
            tasks.start_soon(contained, f"the end of plan {run.view.id}", partial(self._carry_out, run))
        except BaseException:
            self._leave(run)
            raise
        return run.kept

    async def _carry_out(self, run: PlanRun) -> None:
        ended = False
        try:
            with run.scope:
                turn = self._turns.setdefault(run.view.project_root, anyio.Lock())
                runner = WaveRunner(run, self.ground, turn, lambda wave="": self.save(run, wave), self._approved)
                for number in range(len(run.plan.waves)):
                    await runner.run(number)
                run.view.state, ended = PlanState.DONE, True
        except Stopped as stopped:
            run.view.state, run.view.says, ended = PlanState.STOPPED, stopped.says, True
        except PlanNotKept as error:
            run.view.state, run.view.says, ended = PlanState.STOPPED, str(error), True
        except OSError as error:  # of the project, or of what the plan keeps beside its state
            run.view.state, ended = PlanState.STOPPED, True
            file = f" ({error.filename})" if error.filename else ""
            run.view.says = f"A file can't be read or written: {error.strerror or error}{file}."
        except Exception as error:
            logger.exception("plan %s failed", run.view.id)
            run.view.state, ended = PlanState.STOPPED, True
            run.view.says = f"Internal error: {type(error).__name__}. See the server's log."
        finally:
            if run.cancelled_by and not ended:
                self._cancelled(run)
                ended = True
            with anyio.CancelScope(shield=True):
                if ended:
                    run.view.ended_at = time.time()
                await self._end(run)

    def _cancelled(self, run: PlanRun) -> None:
        run.view.state, run.view.says = PlanState.CANCELLED, f"Cancelled by {run.cancelled_by}."
        run.view.ended_at = time.time()
        for wave in run.view.waves:
            if wave.state in (WaveState.RUNNING, WaveState.WAITING):
                wave.state, wave.says = WaveState.CANCELLED, ""

    async def _end(self, run: PlanRun) -> None:
        self.ground.end(run.view.id)
        try:
            await self.save(run)
        except PlanNotKept as error:
            logger.warning("the state of plan %s is not kept: %s", run.view.id, error)
            self._store.writer.put(
                _row(run.view)
            )  # rows wait until there is room again; it did not end with the server
        except Exception:
            logger.exception("the state of plan %s is not kept", run.view.id)
        self._leave(run)

    def _leave(self, run: PlanRun) -> None:
        """It does not run any more: whoever waits for it goes on."""
        del self._live[run.view.id]
        run.over.set()
        run.moved.set()

    async def _approved(self, run: PlanRun, check: Approval) -> str:
        """Waits for a person's decision; "" if it is a yes, else who declined."""
        run.view.state, run.view.says = PlanState.WAITING, f"Waits for approval: {check.approval}"
        run.decision = decision = anyio.Event()
        await self.save(run)
        await decision.wait()
        return f"declined by {run.declined_by}" if run.declined_by else ""

    async def save(self, run: PlanRun, wave: str = "") -> None:
        """Keeps the state, and publishes it.

        Raises:
            PlanNotKept
        """
        view = run.view
        async with run.saving:
            view.cost_usd = sum(task.cost_usd or 0.0 for one in view.waves for task in one.tasks)
            run.kept = await self._keep(run.plan, view)
        stopped = view.state is PlanState.STOPPED
        self._bus.publish(
            PlanMoved(
                plan=view.id,
                state=view.state,
                wave=wave,
                project=Path(view.project_root).name,
                message=view.says,
                severity=Severity.WARNING if stopped else Severity.INFO,
            )
        )
        moved, run.moved = run.moved, anyio.Event()
        moved.set()

    async def _keep(self, plan: Plan, view: PlanView) -> PlanView:
        """What is on record now.

        Raises:
            PlanNotKept
        """
        stored = from_json(msgspec.json.encode(Stored(plan, view)), Stored)  # as it is now
        try:
            await anyio.to_thread.run_sync(store, Path(view.folder), stored)
        except OSError as error:
            raise PlanNotKept(view.folder, error) from error
        self._store.writer.put(_row(stored.view))
        await self._store.writer.survives_a_kill()
        return stored.view

    def _view(self, row: PlanRow) -> PlanView:
        own = {name: getattr(row, name) for name in PlanView.__struct_fields__ if name != "created_at"}
        found = converted({**own, "created_at": row.at}, PlanView)
        if found.state is PlanState.RUNNING and self._is_own(found):
            found.state = PlanState.INTERRUPTED
            found.says = "The server ended while it ran; `serena-central waves resume` goes on with what is not done."
        return found

    def _is_own(self, view: PlanView) -> bool:
        """Whether no other server with the same database carries a plan out: that one has its folder."""
        return not self._store.shared or Path(view.folder).is_dir()


def _plans_in(folder: Path) -> list[str]:
    """Ids of plans that have a folder there. Blocks."""
    try:
        return [one.name for one in folder.iterdir() if PLAN_ID.fullmatch(one.name)]
    except FileNotFoundError:
        return []


def _row(view: PlanView) -> PlanRow:
    own = msgspec.to_builtins(view)
    own["at"] = own.pop("created_at")
    return PlanRow(**own)


def _new_wave(plan: Plan, wave: Wave, number: int) -> WaveRun:
    return WaveRun(
        name=wave.name or str(number),
        transaction=plan.is_transaction(wave),
        tasks=[TaskRun(name=task_name(task, at), targets=task.targets) for at, task in enumerate(wave.tasks, 1)],
        checks=[CheckRun(name=check if isinstance(check, str) else _named(check)) for check in checks_of(wave)],
        state=WaveState.PENDING,
    )


def _named(check: object) -> str:
    return f"approval: {check.approval}" if isinstance(check, Approval) else f"command: {getattr(check, 'command', '')}"
