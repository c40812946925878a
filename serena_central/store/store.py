"""The store as the rest of the server uses it: rows can be put in at any time, queries run in worker threads.

SQLAlchemy takes long to import; that happens here, in a thread, when the start of the server is
over or the store is first asked, not when this module is imported.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.from_thread
from anyio.abc import TaskStatus

from serena_central.config.policies import RetentionPolicy
from serena_central.core.clock import UnhurriedClock
from serena_central.core.errors import StoreError
from serena_central.core.event_kinds import StoreFailed, StoreReplaced
from serena_central.core.events import Event, EventBus, Severity
from serena_central.core.late_imports import import_to_stay
from serena_central.core.start_up import LONGEST_S, StartUp
from serena_central.store.query_results import EditAnswer
from serena_central.store.rows import AccountRow, EventRow
from serena_central.store.saved_rows import AnyRow, saved_answers, saved_rows
from serena_central.store.turns import Turns
from serena_central.store.writer import FLUSH_AFTER_S, Writer

if TYPE_CHECKING:
    from serena_central.store.database import Database
    from serena_central.store.postgresql import Listener
    from serena_central.store.queries import Queries

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

OPEN_S = 5.0
"""How long a call that changes something waits for a database that is being opened: at the start of the server for the
import of its libraries."""

CLOSE_S = 5.0
"""How long closing may take; it waits for queries that still run."""


class Store:
    """`writer` takes rows at once, also before `run`; `ask` waits for the database."""

    def __init__(
        self,
        path: Path,
        bus: EventBus,
        *,
        url: str | None = None,
        shared: bool = False,
        policy: RetentionPolicy | None = None,
        start_up: StartUp | None = None,
    ) -> None:
        """`shared`: other servers write to the same database. `start_up`: the database is not opened before that is
        over, unless somebody asks."""
        self.shared = shared
        self._path = path
        self._url = url
        self._bus = bus
        self.policy = policy or RetentionPolicy()
        self._clock = UnhurriedClock()
        self._loading = threading.Lock()
        self._stopping = threading.Event()
        """Set when nothing more is to be deleted or waited for: the process cannot end before the threads that do."""
        self._database: Database | None = None
        self._is_open = False
        self.before_leaving: Callable[[], None] = lambda: None
        """Called in a worker thread where another file, or none, is at the database's path, before anything is changed
        there."""
        self._start_up = start_up
        waits_s = FLUSH_AFTER_S if start_up is None else LONGEST_S
        self.writer = Writer(lambda rows: self._loaded().write(rows), bus, first_after_s=waits_s)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Records rows and events until cancelled, then flushes. The database is opened concurrently."""
        writing = anyio.CancelScope(shield=True)

        async def write(*, task_status: TaskStatus[None]) -> None:
            with writing:
                await self.writer.run(task_status=task_status)

        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(write)
                end_tap = self._bus.tap(self._record)
                try:
                    task_status.started()
                    await self._look_after()
                finally:
                    end_tap()
                    writing.cancel()  # after the last event was handed over, so that the last flush has them all
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await anyio.to_thread.run_sync(self._close, abandon_on_cancel=True)

    async def ask(self, query: "Callable[[Queries], Answer]") -> Answer:
        """Runs one of the named queries: `await store.ask(lambda queries: queries.projects())`.

        Raises:
            StoreError
        """
        # Whoever gives up waiting need not wait for the thread: a query changes nothing but old rows.
        return await anyio.to_thread.run_sync(lambda: query(self._queries()), abandon_on_cancel=True)

    async def survives_a_kill(self) -> bool:
        """Whether the rows that were put before are in the database now, where a kill of this process does not reach
        them. Waits a moment for that, and longer only while the database is not open yet."""
        if not self._is_open:
            with anyio.move_on_after(OPEN_S):
                await anyio.to_thread.run_sync(self._try_to_open, abandon_on_cancel=True)
        return await self.writer.survives_a_kill()

    async def saved(
        self, kind: type[AnyRow], query: "Callable[[Queries], list[AnyRow]]", *, since: tuple[str, float] | None = None
    ) -> list[AnyRow]:
        """What a start restores, in any order: the rows of a table, or those with at least that value in that column.
        `query` asks for the same where the file has to be opened for that, which takes long.

        Raises:
            StoreError
        """
        rows = None
        if self._url is None and self._database is None:
            rows = await anyio.to_thread.run_sync(saved_rows, self._path, kind, since, abandon_on_cancel=True)
        return await self.ask(query) if rows is None else rows

    async def edit_answers(self, edits: Sequence[str], newest: int) -> dict[str, EditAnswer]:
        """The answers to the calls that made these edits, and to `newest` calls that may be sent again, by edit.

        Raises:
            StoreError
        """
        if self._url is None and self._database is None and (not newest or not self._path.exists()):
            found = await anyio.to_thread.run_sync(saved_answers, self._path, edits, abandon_on_cancel=True)
            if found is not None:
                return found
        return await self.ask(
            lambda queries: queries.edit_answers(edits) | (queries.newest_edit_answers(newest) if newest else {})
        )

    async def started_up(self) -> None:
        """Waits until the start is over, for those who ask then at the earliest."""
        if self._start_up is not None:
            await self._start_up.over()

    async def change_account(
        self, name: str, changed: Callable[[AccountRow | None], AccountRow]
    ) -> tuple[AccountRow, list[AccountRow]]:
        """`Queries.change_account`, which nobody gives up waiting for: it is known whether it was done.

        Raises:
            StoreError, what `changed` raises
        """
        return await anyio.to_thread.run_sync(lambda: self._queries().change_account(name, changed))

    async def listener(self) -> "Listener | None":
        """A new connection that hears of other servers' notices; None where the database has no such thing.

        Raises:
            StoreError
        """
        return await anyio.to_thread.run_sync(lambda: self._loaded().listener(), abandon_on_cancel=True)

    def ask_here(self, query: "Callable[[Queries], Answer]") -> Answer:
        """`ask` for worker threads: blocks.

        Raises:
            StoreError
        """
        return query(self._queries())

    def _queries(self) -> "Queries":
        database = self._loaded()
        from serena_central.store.queries import Queries

        return Queries(database)

    def _loaded(self) -> "Database":
        with self._loading:
            if self._database is None:
                try:
                    import_to_stay("serena_central.store.queries")
                    from serena_central.store.database import Database
                except (ImportError, OSError) as error:  # no descriptors are left, for instance
                    raise StoreError(f"The database's libraries could not be imported: {error}.") from error
                self._database = Database(
                    self._path,
                    self._url,
                    tell=self._tell,
                    stopping=self._stopping.is_set,
                    moved=self.before_leaving,
                )
            return self._database

    def _open(self) -> None:
        self._loaded().open()
        self._is_open = True

    def _try_to_open(self) -> None:
        with suppress(StoreError):  # the writer says so
            self._open()

    def _record(self, event: Event) -> None:
        if event.keep:
            self.writer.put(event_row(event))

    async def _look_after(self) -> None:
        """Opens the database, then deletes what is old from time to time."""
        try:
            await self.started_up()
            self.writer.hasten()
            try:
                await anyio.to_thread.run_sync(self._open, abandon_on_cancel=True)
            except StoreError as error:
                self._bus.publish(StoreFailed(message=str(error), severity=Severity.ERROR))
            while True:
                await self._sweep()
                await anyio.sleep(self.policy.sweep_s)
        finally:
            self._stopping.set()

    async def _sweep(self) -> None:
        turns = Turns(self._stopping)
        try:
            await self.ask(lambda queries: queries.sweep(self.policy, self._clock(), goes_on=turns.goes_on))
        except StoreError as error:
            logger.warning("old rows were not deleted: %s", error)
        except Exception:
            logger.exception("old rows were not deleted")

    def _close(self) -> None:
        with self._loading:
            if self._database is not None:
                self._database.close()

    def _tell(self, note: str) -> None:
        """Called in a worker thread."""
        event = StoreReplaced(message=note, severity=Severity.WARNING)
        anyio.from_thread.run_sync(self._bus.publish, event)


def event_row(event: Event) -> EventRow:
    """As the store keeps it; without the number that the database gives."""
    return EventRow(
        seq=event.seq,
        at=event.at,
        kind=event.kind,
        severity=str(event.severity),
        session=event.session,
        project=event.project,
        server=event.server,
        message=event.message,
        data=event.data,
    )
