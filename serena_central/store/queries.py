"""The named questions to the database, each on one snapshot. Blocks; `store` runs them in worker threads."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    update,
)

from serena_central.config.policies import RetentionPolicy
from serena_central.store.list_queries import ListQueries, owned, preceding, rows_of
from serena_central.store.query_results import (
    EDIT_PATCHES_KEPT_S,
    BriefCall,
    CallFilter,
    EditAnswer,
    StoredCall,
    TaskFilter,
    ToolDurations,
)
from serena_central.store.rows import (
    AccountRow,
    CallDetailRow,
    CallStepRow,
    CallTotalRow,
    EditRow,
    EventRow,
    HostEditRow,
    HostedRootRow,
    MemoryTotalRow,
    PlanRow,
    ProjectRow,
    Row,
    ServerRunRow,
    SessionRow,
    SharedCallRow,
    SymbolViewRow,
    TaskRow,
    ToolCallRow,
)
from serena_central.store.spans import SPANS_S, totals_kept_since
from serena_central.store.statements import execute_all, insert_if_new, place_root
from serena_central.store.tables import METADATA

DAY_S = 86_400

SWEEP_ROWS = 1000
"""Rows deleted in one transaction, so that the writer never waits long behind the sweep."""

SWEEP_PAIRS = 20
"""Projects with a tool each, whose old totals are deleted in one transaction."""

IDS_ASKED = 500
"""In one statement: databases bound the number of its parameters."""

(
    _SESSION, _VIEW, _CALL, _DETAIL, _EDIT, _EVENT, _PROJECT, _RUN, _CALL_TOTAL, _CALL_STEP, _MEMORY_TOTAL, _TASK,
    _PLAN, _ACCOUNT, _SHARED_CALL, _HOSTED_ROOT, _HOST_EDIT,
) = (
    METADATA.tables[kind.table]
    for kind in (
        SessionRow, SymbolViewRow, ToolCallRow, CallDetailRow, EditRow, EventRow, ProjectRow, ServerRunRow,
        CallTotalRow, CallStepRow, MemoryTotalRow, TaskRow, PlanRow, AccountRow, SharedCallRow, HostedRootRow,
        HostEditRow,
    )
)  # fmt: skip

_ALL_ACCOUNTS = select(_ACCOUNT).order_by(_ACCOUNT.columns.name)


class Queries(ListQueries):
    """Every method raises StoreError when the database can't be used."""

    def sessions_since(self, last_activity: float) -> list[SessionRow]:
        """Sessions to restore after a restart, killed ones too, the latest first."""
        columns = _SESSION.columns
        chosen = select(_SESSION).where(columns.last_activity >= last_activity)
        return self._rows(SessionRow, chosen.order_by(columns.last_activity.desc()))

    def killed_sessions(self, since: float) -> list[tuple[str, str]]:
        """Ids of sessions that were killed since then (Unix seconds), and by whom."""
        columns = _SESSION.columns
        chosen = select(columns.id, columns.terminated_by).where(columns.terminated_at >= since)
        return self._database.read(lambda connection: [(one[0], one[1]) for one in connection.execute(chosen)])

    def session(self, session_id: str) -> SessionRow | None:
        found = self._rows(SessionRow, select(_SESSION).where(_SESSION.columns.id == session_id))
        return found[0] if found else None

    def session_of_conversation(self, transport_id: str) -> SessionRow | None:
        """The session that a conversation of the handshake era belonged to last; its id may be another."""
        chosen = select(_SESSION).where(_SESSION.columns.transport_id == transport_id)
        found = self._rows(SessionRow, chosen.order_by(_SESSION.columns.last_activity.desc()).limit(1))
        return found[0] if found else None

    def symbol_views(self, session_id: str) -> list[SymbolViewRow]:
        return self._rows(SymbolViewRow, select(_VIEW).where(_VIEW.columns.session == session_id))

    def accounts(self) -> list[AccountRow]:
        """All users, revoked ones too, in the order of their names."""
        return self._rows(AccountRow, _ALL_ACCOUNTS)

    def change_account(
        self, name: str, changed: Callable[[AccountRow | None], AccountRow], *others: Row
    ) -> tuple[AccountRow, list[AccountRow]]:
        """Writes what `changed` makes of a user's account (None: there is none), and `others`, while nobody else can
        change it. What it raises is raised, and nothing written. Returns that account, and all there are then."""
        chosen = select(_ACCOUNT).where(_ACCOUNT.columns.name == name).with_for_update()

        def change(connection: Connection) -> tuple[AccountRow, list[AccountRow]]:
            before = rows_of(AccountRow, connection, chosen)
            row = changed(before[0] if before else None)
            if not before and not insert_if_new(connection, row):  # another server has just added it
                row = changed(rows_of(AccountRow, connection, chosen)[0])
            execute_all(connection, [row, *others])
            return row, rows_of(AccountRow, connection, _ALL_ACCOUNTS)

        return self._database.change(change)

    def is_owner(self, credential: str, session_id: str, at: float) -> bool:
        """Whether a session was this credential's at that time (Unix seconds)."""
        own = _SESSION.columns
        chosen = select(own.id).where(own.id == session_id, own.credential == credential, own.created_at <= at)
        return self._first(chosen) is not None

    def calls_of_session(self, session_id: str, limit: int = 100) -> list[ToolCallRow]:
        """The newest first."""
        columns = _CALL.columns
        chosen = select(_CALL).where(columns.session == session_id).order_by(columns.at.desc()).limit(limit)
        return self._rows(ToolCallRow, chosen)

    def brief_calls(self, session_id: str, since: float, before: float, limit: int) -> list[BriefCall]:
        """Of one session, the newest first."""
        columns = _CALL.columns
        chosen = select(columns.at, columns.duration_ms, columns.outcome).where(columns.session == session_id)
        chosen = chosen.where(columns.at >= since, columns.at < before).order_by(columns.at.desc()).limit(limit)
        rows = self._database.read(lambda connection: connection.execute(chosen).all())
        return [BriefCall(*row) for row in rows]

    def tools_of_session(self, session_id: str, before: float, limit: int) -> list[ToolDurations]:
        """What a session called until then, with the durations of the newest `limit` calls of each tool."""
        columns = _CALL.columns
        own = columns.session == session_id, columns.at < before
        failed = func.count().filter(columns.outcome != "ok")
        counts = select(columns.tool, func.count(), failed).where(*own).group_by(columns.tool)
        nth = func.row_number().over(partition_by=columns.tool, order_by=columns.at.desc()).label("nth")
        numbered = select(columns.tool, columns.duration_ms, nth).where(*own).subquery()
        newest = select(numbered.c.tool, numbered.c.duration_ms).where(numbered.c.nth <= limit)

        def read(connection: Connection) -> list[ToolDurations]:
            durations: dict[str, list[float]] = {}
            for tool, duration_ms in connection.execute(newest.order_by(numbered.c.nth.desc())):
                durations.setdefault(tool, []).append(duration_ms)
            return [
                ToolDurations(tool=tool, calls=calls, errors=errors, durations_ms=durations.get(tool, []))
                for tool, calls, errors in connection.execute(counts)
            ]

        return self._database.read(read)

    def call(self, call_id: str) -> StoredCall | None:
        """One call with its details."""
        found = self._rows(ToolCallRow, select(_CALL).where(_CALL.columns.id == call_id))
        return self._with_details(found)[0] if found else None

    def calls(self, wanted: CallFilter) -> list[StoredCall]:
        """Calls with their details, the newest first."""
        columns = _CALL.columns
        newest_first = columns.at.desc(), columns.id.desc()
        chosen = select(_CALL).where(columns.at >= wanted.since).order_by(*newest_first).limit(wanted.limit)
        if wanted.owner is not None:
            chosen = chosen.where(owned(columns.session, columns.at, wanted.owner))
        for name in ("session", "project", "tool"):
            value = getattr(wanted, name)
            if value is not None:
                chosen = chosen.where(columns[name] == value)
        if wanted.failed:
            chosen = chosen.where(columns.outcome != "ok")
        if wanted.before is not None:
            chosen = chosen.where(columns.at < wanted.before)
        if wanted.behind is not None:
            chosen = chosen.where(preceding(columns, wanted.behind))
        return self._with_details(self._rows(ToolCallRow, chosen))

    def _with_details(self, calls: Sequence[ToolCallRow]) -> list[StoredCall]:
        details: dict[str, CallDetailRow] = {}
        for start in range(0, len(calls), IDS_ASKED):
            ids = [one.id for one in calls[start : start + IDS_ASKED]]
            found = self._rows(CallDetailRow, select(_DETAIL).where(_DETAIL.columns.id.in_(ids)))
            details |= {one.id: one for one in found}
        return [StoredCall(one, details.get(one.id)) for one in calls]

    def edit(self, edit_id: str) -> EditRow | None:
        found = self._rows(EditRow, select(_EDIT).where(_EDIT.columns.id == edit_id))
        return found[0] if found else None

    def edits_of_operation(self, operation: str) -> list[EditRow]:
        """The edit of this id, and those of the other roots of its operation: `e-1`, `e-1.2`."""
        own = _EDIT.columns.id
        both = (own == operation) | own.startswith(f"{operation}.", autoescape=True)
        return self._rows(EditRow, select(_EDIT).where(both).order_by(own))

    def edit_answers(self, ids: Sequence[str]) -> dict[str, EditAnswer]:
        """Those of these edits that are on record, by id."""
        found: dict[str, EditAnswer] = {}
        for start in range(0, len(ids), IDS_ASKED):
            found |= self._answers(_EDIT.columns.id.in_(ids[start : start + IDS_ASKED]))
        return found

    def newest_edit_answers(self, limit: int) -> dict[str, EditAnswer]:
        """Of the newest edits whose calls may be sent again."""
        return self._answers(_EDIT.columns.repeat.is_not(None), limit)

    def _answers(self, condition: ColumnElement[bool], limit: int | None = None) -> dict[str, EditAnswer]:
        columns = _EDIT.columns
        chosen = select(columns.id, columns.at, columns.repeat, columns.answer).where(condition)
        chosen = chosen.order_by(columns.at.desc()).limit(limit)
        rows = self._database.read(lambda connection: connection.execute(chosen).all())
        return {row.id: EditAnswer(at=row.at, repeat=row.repeat, answer=row.answer) for row in rows}

    def edits_of_call(self, repeat: str) -> list[str]:
        """Ids of the edits with an idempotency key."""
        chosen = select(_EDIT.columns.id).where(_EDIT.columns.repeat == repeat).order_by(_EDIT.columns.id)
        return list(self._database.read(lambda connection: connection.execute(chosen).scalars().all()))

    def shared_call(self, repeat: str) -> tuple[SharedCallRow | None, EditAnswer | None]:
        """A call that some server makes or has made, and what is on record of its edit."""
        found = self._rows(SharedCallRow, select(_SHARED_CALL).where(_SHARED_CALL.columns.repeat == repeat))
        return (found[0], self.edit_answers([found[0].edit]).get(found[0].edit)) if found else (None, None)

    def reserve_call(self, row: SharedCallRow) -> SharedCallRow | None:
        """Writes the row of a call, unless another server has one or it was sent to a node: that row is returned."""
        columns = _SHARED_CALL.columns

        def reserve(connection: Connection) -> bool:
            if insert_if_new(connection, row):
                return True
            own = columns.repeat == row.repeat, columns.front == row.front, columns.node == ""
            changed = connection.execute(update(_SHARED_CALL).where(*own).values(edit=row.edit, files=row.files))
            return changed.rowcount > 0

        return None if self._database.change(reserve) else self.shared_call(row.repeat)[0]

    def release_call(self, repeat: str, edit: str) -> None:
        """Deletes the row of a call whose operation was rolled back."""
        columns = _SHARED_CALL.columns
        own = columns.repeat == repeat, columns.edit == edit
        self._database.change(lambda connection: connection.execute(delete(_SHARED_CALL).where(*own)))

    def hosted_roots(self) -> list[HostedRootRow]:
        return self._rows(HostedRootRow, select(_HOSTED_ROOT))

    def place_root(self, root: str, node: str, host: str) -> int:
        """Makes a host the one that may write a root, from now on; returns its epoch."""
        row = HostedRootRow(root=root, epoch=1, node=node, host=host)
        return self._database.change(lambda connection: place_root(connection, row))

    def holder(self, root: str) -> HostedRootRow | None:
        found = self._rows(HostedRootRow, select(_HOSTED_ROOT).where(_HOSTED_ROOT.columns.root == root))
        return found[0] if found else None

    def begin_host_edit(self, row: HostEditRow, host: str) -> bool:
        """Writes the row of an edit if `host` is the one that may write its root. Whoever places the root meanwhile
        waits, and then finds the row."""
        columns = _HOSTED_ROOT.columns
        held = select(columns.host).where(columns.root == row.root).with_for_update(read=True)

        def begin(connection: Connection) -> bool:
            if connection.execute(held).scalar() != host:
                return False
            insert_if_new(connection, row)
            return True

        return self._database.change(begin)

    def host_edits(self, root: str) -> list[HostEditRow]:
        """Edits that hosts of a root have begun and not ended."""
        return self._rows(HostEditRow, select(_HOST_EDIT).where(_HOST_EDIT.columns.root == root))

    def end_host_edits(self, edits: Sequence[str]) -> None:
        self._database.change(
            lambda connection: connection.execute(delete(_HOST_EDIT).where(_HOST_EDIT.columns.id.in_(edits)))
        )

    def undoings(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Pairs of an edit and one that undid it, of these and, in turn, of those that undid them."""
        columns = _EDIT.columns
        pairs: dict[str, str] = {}  # by the one that undid it: each undoes one other
        while ids:
            part, ids = ids[:IDS_ASKED], ids[IDS_ASKED:]
            chosen = select(columns.undoes, columns.id).where(columns.undoes.in_(part)).order_by(columns.at)
            found = self._database.read(lambda connection, chosen=chosen: connection.execute(chosen).all())
            ids = [*ids, *(row.id for row in found if row.id not in pairs)]
            pairs |= {row.id: row.undoes for row in found}
        return [(edit, undoer) for undoer, edit in pairs.items()]

    def task(self, task_id: str) -> TaskRow | None:
        found = self._rows(TaskRow, select(_TASK).where(_TASK.columns.id == task_id))
        return found[0] if found else None

    def tasks(self, wanted: TaskFilter) -> list[TaskRow]:
        """The newest first."""
        chosen = _newest(_TASK, wanted)
        if wanted.parent is not None:
            chosen = chosen.where(_TASK.columns.parent == wanted.parent)
        return self._rows(TaskRow, chosen)

    def change_tasks(self, changes: Mapping[str, Mapping[str, Any]], states: Collection[str]) -> None:
        """Changes columns of tasks, by id, as far as they are in one of these states: what else somebody has made of
        them meanwhile stays."""
        columns = _TASK.columns

        def change(connection: Connection) -> None:
            for task_id, values in changes.items():
                own = columns.id == task_id, columns.state.in_(states)
                connection.execute(update(_TASK).where(*own).values(**values))

        self._database.change(change)

    def plan(self, plan_id: str) -> PlanRow | None:
        found = self._rows(PlanRow, select(_PLAN).where(_PLAN.columns.id == plan_id))
        return found[0] if found else None

    def plans(self, wanted: TaskFilter) -> list[PlanRow]:
        """The newest first."""
        return self._rows(PlanRow, _newest(_PLAN, wanted))

    def task_costs(self, since: float, until: float) -> list[tuple[str, str, str, float]]:
        """Id, root, the runner's session ("" where there is none) and dollars of each task that began in that time, as
        far as its cost is known."""
        columns = _TASK.columns
        chosen = select(columns.id, columns.project_root, columns.resume_id, columns.cost_usd).where(
            columns.at >= since, columns.at < until, columns.cost_usd.is_not(None)
        )
        rows = self._database.read(lambda connection: connection.execute(chosen).all())
        return [(task, root, session or "", cost) for task, root, session, cost in rows]

    def projects(self) -> list[ProjectRow]:
        """Every project that is known, the last used first."""
        return self._rows(ProjectRow, select(_PROJECT).order_by(_PROJECT.columns.last_used_at.desc()))

    def sweep(self, policy: RetentionPolicy, now: float, *, goes_on: Callable[[], bool] = lambda: True) -> int:
        """Deletes what is older than the policy keeps, gives space back, and returns the number of rows.

        `goes_on` is asked before each transaction, and may take its time; once it is False, the next sweep deletes the
        rest.
        """
        calls_before = now - policy.calls_days * DAY_S
        kept = totals_kept_since(calls_before, now)
        old = {
            _EVENT: _EVENT.columns.at < now - policy.events_days * DAY_S,
            _CALL: _CALL.columns.at < calls_before,
            _DETAIL: _DETAIL.columns.at < calls_before,
            _EDIT: _EDIT.columns.at < calls_before,
            _MEMORY_TOTAL: or_(
                *(
                    and_(_MEMORY_TOTAL.columns.span == span, _MEMORY_TOTAL.columns.since < since)
                    for span, since in kept.items()
                )
            ),
            _VIEW: _VIEW.columns.seen_at < calls_before,
            _SESSION: _SESSION.columns.last_activity < calls_before,
            _TASK: _TASK.columns.at < calls_before,
            # One that waits for a person is on the list, however long it waits.
            _PLAN: and_(_PLAN.columns.at < calls_before, _PLAN.columns.ended_at.is_not(None)),
            _SHARED_CALL: _SHARED_CALL.columns.at < calls_before,
            _RUN: and_(_RUN.columns.started_at < calls_before, _RUN.columns.ended_at.is_not(None)),
        }
        self._delete_patches(now - EDIT_PATCHES_KEPT_S, goes_on)
        deleted = sum(self._delete_in_parts(table, condition, goes_on) for table, condition in old.items())
        deleted += self._delete_totals(kept, goes_on)
        self._database.vacuum(goes_on)
        return deleted

    def _delete_totals(self, kept: Mapping[int, float], goes_on: Callable[[], bool]) -> int:
        """Deletes totals of calls by the beginning of their key, so that none is read in vain; `kept` maps spans to the
        moment since when theirs are kept. The totals of all calls of a day are kept for good."""
        pairs = [
            {"of_tool": tool, "in_project": project}
            for project in ("", *self.projects_on_record())
            for tool in ("", *self.tools_on_record(project))
        ]
        total = 0
        for table in (_CALL_TOTAL, _CALL_STEP):
            columns = table.columns
            own = columns.project == bindparam("in_project"), columns.tool == bindparam("of_tool")
            for span, since in kept.items():
                statement = delete(table).where(columns.span == span, *own, columns.since < since)
                of_span = pairs[1:] if (table, span) == (_CALL_TOTAL, SPANS_S[-1]) else pairs
                for start in range(0, len(of_span), SWEEP_PAIRS):
                    if not goes_on():
                        return total
                    part = of_span[start : start + SWEEP_PAIRS]
                    total += self._database.change(
                        lambda connection, one=statement, part=part: connection.execute(one, part).rowcount
                    )
        return total

    def _delete_patches(self, before: float, goes_on: Callable[[], bool]) -> None:
        """Deletes the patches of edits that can't be undone any more, in the order of time."""
        columns = _EDIT.columns
        expired = columns.at < before, columns.patches.is_not(None)
        first = float("-inf")
        while goes_on():
            part = select(columns.at).where(columns.at >= first, *expired).order_by(columns.at).limit(SWEEP_ROWS)
            found = self._database.read(lambda connection, part=part: connection.execute(part).scalars().all())
            if not found:
                break
            statement = update(_EDIT).where(columns.at >= found[0], columns.at <= found[-1], *expired)
            self._database.change(lambda connection, one=statement: connection.execute(one.values(patches=None)))
            first = found[-1]

    def _delete_in_parts(self, table: Table, condition: ColumnElement[bool], goes_on: Callable[[], bool]) -> int:
        """Looks for old rows without the writer's lock, which the writer needs meanwhile: not every table has an index
        for that. What of them is new when they are deleted stays."""
        keys = table.primary_key.columns
        part = select(*(key.label(f"old_{key.name}") for key in keys)).where(condition).limit(SWEEP_ROWS)
        statement = delete(table).where(*(key == bindparam(f"old_{key.name}") for key in keys), condition)
        total = 0
        while goes_on():
            rows = self._database.read(lambda connection: connection.execute(part).mappings().all())
            found = [dict(row) for row in rows]
            if not found:
                break
            total += self._database.change(
                lambda connection, found=found: connection.execute(statement, found).rowcount
            )
            if len(found) < SWEEP_ROWS:
                break
        return total


def _newest(table: Table, wanted: TaskFilter) -> Select[Any]:
    """Rows of tasks or plans, the newest first."""
    columns = table.columns
    chosen = select(table).order_by(columns.at.desc(), columns.id.desc()).limit(wanted.limit)
    if wanted.state is not None:
        chosen = chosen.where(columns.state == wanted.state)
    if wanted.project is not None:
        chosen = chosen.where(columns.project_root == wanted.project)
    if wanted.behind is not None:
        chosen = chosen.where(preceding(columns, wanted.behind))
    return chosen
