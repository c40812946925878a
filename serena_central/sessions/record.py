"""Stores sessions, so that they survive a restart of the server, and restores them.

A session's row is written again after whatever happens to it; the store's writer keeps the newest only. It also keeps
how a conversation of the handshake era began, so that its client can resume under the id it knows.
"""

import logging
import time
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import SessionNotFound, StoreError
from serena_central.core.event_kinds import CallFinished, SessionCreated, SessionEvent, SessionReturned
from serena_central.core.events import Event, EventBus
from serena_central.core.periodic import follow
from serena_central.sessions.manager import TOMBSTONES_KEPT_S, SessionManager
from serena_central.sessions.session import (
    ActiveProject,
    ClientIdentity,
    IdentifiedBy,
    Session,
    SessionState,
    Termination,
)
from serena_central.store.rows import SessionRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

RESTORE_S = 10.0
"""A database that does not answer by then must not hold up the server."""


TAKE_OVER_S = 3.0
"""How long a request of a session that is not known here waits for the database."""


MOST_READ = 10_000
"""Ids of which the database had no row; of others it is asked once more."""

READ_AGAIN_S = 1.0
"""How often the database is asked for what it could not be asked for before."""


class SessionRecorder:
    """Writes sessions as they change. Belongs to the event loop's thread."""

    def __init__(
        self, sessions: SessionManager, store: Store, bus: EventBus, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._bus = bus
        self._clock = clock
        self._unread: set[str] = set()
        """Sessions of which the database, when it could not be asked, may have had a row: theirs waits for that."""
        self._more_unread = anyio.Event()
        self._read: set[str] = set()
        """Sessions that will be new if they begin: the database had no row of theirs."""
        self._restored = True
        """Whether sessions that are not known are new."""
        self._foreign: set[str] = set()
        """Sessions whose rows are another user's, and stay as they are."""
        self._elsewhere: set[str] = set()
        """Sessions that are known, and served by another server with the same database as far as is known: their rows
        are its own, and are read again when they come here."""
        self.news = 0
        """Heard from other servers about sessions: what was read before may be old."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Restores the sessions of an earlier run, then records until cancelled; started() when they are back."""
        # A task would have to be woken for each call; and a session may have ended its first one by then.
        end_tap = self._bus.tap(self._take_at_once, SessionCreated, SessionReturned, CallFinished)
        try:
            with self._bus.subscribe(SessionEvent) as news:
                await self._restore()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._read_late)
                    task_status.started()
                    await follow("recording sessions", news, self._take)
                    tasks.cancel_scope.cancel()
        finally:
            end_tap()

    def _take_at_once(self, event: Event) -> None:
        if isinstance(event, SessionReturned | CallFinished):
            self._elsewhere.discard(event.session or "")
        if isinstance(event, SessionCreated) and event.session is not None:
            given = event.identified_by != IdentifiedBy.TRANSPORT  # else its id is a new one
            known = event.session in self._read if self._store.shared else self._restored
            if given and not known:
                self._unread.add(event.session)
                self._more_unread.set()
            self._read.discard(event.session)
        self._take(event)

    def _take(self, event: Event) -> None:
        if event.session is not None:
            self._record(event.session)

    def remember(self, conversation_id: str, session_id: str, body: bytes) -> None:
        """Keeps the `initialize` request that began a session's newest conversation."""
        try:
            session = self._sessions.get(session_id)
        except SessionNotFound:
            return
        session.transport_id, session.opening = conversation_id, body
        self._record(session_id)

    def forget(self, conversation_id: str, session_id: str) -> None:
        """Drops how a conversation began, because its client has ended it."""
        try:
            session = self._sessions.get(session_id)
        except SessionNotFound:
            return
        if session.transport_id == conversation_id:
            session.transport_id = session.opening = None
            self._record(session_id)

    async def recall(self, conversation_id: str, credential: str) -> bytes | None:
        """How a conversation of this credential began; None for what is unknown, or was killed."""
        try:
            await self._store.writer.flush()
            row = await self._store.ask(lambda queries: queries.session_of_conversation(conversation_id))
        except StoreError as error:
            logger.warning("a client could not be restored: %s", error, extra={"session": conversation_id})
            return None
        if row is None or row.credential != credential or row.terminated_by is not None:
            return None
        return row.initialize

    def heard(self, session_id: str, *, moved: bool = False) -> None:
        """Another server has changed a session, or, if it has `moved`, serves it from now on."""
        self.news += 1
        if moved and self._is_known(session_id):
            session = self._sessions.get(session_id)
            if not session.running and not session.holders:  # else its client comes to both
                self._elsewhere.add(session_id)

    async def take_over(self, session_id: str) -> None:
        """Restores a session that another server with the same database serves, and that now comes to this one. Waits
        for the database only if the session is not served here."""
        if self._is_served(session_id):
            return
        with anyio.move_on_after(TAKE_OVER_S):
            try:
                row = await self._newest(session_id)
            except StoreError as error:
                logger.warning("a session could not be taken over: %s", error, extra={"session": session_id})
                return
            if row is None:
                if len(self._read) >= MOST_READ:  # most of them never began
                    self._read.clear()
                self._read.add(session_id)
            now = self._clock()
            # Meanwhile another request may have begun or restored it.
            if row is not None and row.last_activity >= now - TOMBSTONES_KEPT_S and not self._is_served(session_id):
                if row.terminated_by is None:
                    self._elsewhere.add(session_id)  # until a message of its client is served here
                self._sessions.drop(session_id)
                self._sessions.restore([_session(row, self._sessions.policy.shared_kill_lift_s, now)])

    async def _newest(self, session_id: str) -> SessionRow | None:
        """The row of a session, not older than what other servers said of any meanwhile."""
        while True:
            news = self.news
            row = await self._store.ask(lambda queries: queries.session(session_id))
            if news == self.news:
                return row

    async def _read_late(self) -> None:
        """Reads the rows that could not be read before, until cancelled."""
        while True:
            if self._unread:
                await anyio.sleep(READ_AGAIN_S)  # the database failed
            else:
                self._more_unread = anyio.Event()
                await self._more_unread.wait()
            for session_id in list(self._unread):
                if not self._is_known(session_id):
                    self._unread.discard(session_id)  # nobody began it
                    continue
                try:
                    row = await self._store.ask(lambda queries, wanted=session_id: queries.session(wanted))
                except StoreError:
                    break
                self._unread.discard(session_id)
                try:
                    if row is not None and self._is_known(session_id):
                        self._join(self._sessions.get(session_id), row)
                    self._record(session_id)
                except Exception:
                    logger.exception("what session %s was before is not known", session_id)

    def _join(self, session: Session, row: SessionRow) -> None:
        """Adds what a session was before to what it has become since; one of another credential is ended."""
        if row.credential != session.credential:
            self._sessions.terminate(session.id, "the server: its id is another user's")
            self._foreign.add(session.id)
            return
        earlier = _session(row, self._sessions.policy.shared_kill_lift_s, self._clock())
        session.calls_in_store_before, session.created_at = session.created_at, earlier.created_at
        session.views_in_store = True
        session.calls += earlier.calls
        session.errors += earlier.errors
        session.edits += earlier.edits
        session.modes = session.modes or earlier.modes
        session.modes_chosen = session.modes_chosen or earlier.modes_chosen
        session.active_project = session.active_project or earlier.active_project
        session.worked_on = session.worked_on or earlier.worked_on
        if session.opening is None:
            session.opening, session.transport_id = earlier.opening, earlier.transport_id
        session.termination = session.termination or earlier.termination

    def _is_known(self, session_id: str) -> bool:
        try:
            self._sessions.get(session_id)
        except SessionNotFound:
            return False
        return True

    def _is_served(self, session_id: str) -> bool:
        return self._is_known(session_id) and session_id not in self._elsewhere

    def _record(self, session_id: str) -> None:
        try:
            session = self._sessions.get(session_id)
        except SessionNotFound:
            self._elsewhere.discard(session_id)
            return  # forgotten meanwhile; its last row tells so
        if session_id in self._unread or session_id in self._foreign or session_id in self._elsewhere:
            return
        self._store.writer.put_late(SessionRow, session_id, make=lambda: _row(session, self._sessions.state(session)))

    async def _restore(self) -> None:
        since = self._clock() - TOMBSTONES_KEPT_S
        self._restored = False
        with anyio.move_on_after(RESTORE_S):
            try:
                rows = await self._store.saved(
                    SessionRow, lambda queries: queries.sessions_since(since), since=("last_activity", since)
                )
            except StoreError as error:
                logger.warning("sessions of an earlier run were not restored: %s", error)
                return
            self._restored = True
            lift_s, now = self._sessions.policy.shared_kill_lift_s, self._clock()
            if self._store.shared:
                # The others may be at another server now: each is fetched when it comes here.
                rows = [row for row in rows if row.terminated_by is not None]
            rows.sort(key=lambda row: row.last_activity, reverse=True)
            self._sessions.restore(_session(row, lift_s, now) for row in rows)


def _row(session: Session, state: str) -> SessionRow:
    project, killed = session.project, session.termination
    by = session.identified_by
    return SessionRow(
        id=session.id,
        credential=session.credential,
        era=session.era,
        client_name=session.client_name,
        client_version=session.client_version,
        created_at=session.created_at,
        last_activity=session.last_activity,
        state=state,
        shared=session.shared,
        context=session.context,
        working_folder=session.working_folder,
        explicit_id=session.id if by is IdentifiedBy.EXPLICIT else None,
        transport_id=session.id if by is IdentifiedBy.TRANSPORT else session.transport_id,
        conversation_id=session.id if by is IdentifiedBy.CONVERSATION else None,
        project_root=project.root if project else None,
        project_name=project.name if project else None,
        modes=list(session.modes),
        tool_call_count=session.calls,
        error_count=session.errors,
        edit_count=session.edits,
        project_active=session.active_project is not None,
        initialize=session.opening,
        terminated_by=killed.by if killed else None,
        terminated_at=killed.at if killed else None,
    )


def _session(row: SessionRow, shared_kill_lift_s: float, now: float) -> Session:
    identity = ClientIdentity(
        credential=row.credential,
        era="handshake" if row.era == "handshake" else "modern",
        client_name=row.client_name,
        client_version=row.client_version,
        working_folder=row.working_folder,
        context=row.context,
    )
    session = Session(row.id, _identified_by(row), identity, now=row.created_at)
    session.last_activity = row.last_activity
    # Who was connected when the server went has as long to come back as one that goes now.
    session.disconnected_at = row.last_activity if row.state == SessionState.DISCONNECTED else None
    session.modes = tuple(row.modes)
    session.modes_chosen = bool(row.modes or row.tool_call_count)
    session.calls = row.tool_call_count
    session.errors = row.error_count
    session.edits = row.edit_count
    session.opening, session.transport_id = row.initialize, row.transport_id
    session.views_in_store = True
    session.calls_in_store_before = now
    if row.project_root is not None:
        project = ActiveProject(row.project_name or "", row.project_root)
        if row.project_active:
            session.active_project = project
        else:
            session.worked_on = project
    if row.terminated_by is not None and row.terminated_at is not None:
        until = row.terminated_at + shared_kill_lift_s if row.shared else None
        session.termination = Termination(row.terminated_by, row.terminated_at, until)
    return session


def _identified_by(row: SessionRow) -> IdentifiedBy:
    if row.explicit_id:
        return IdentifiedBy.EXPLICIT
    if row.transport_id:
        return IdentifiedBy.TRANSPORT
    return IdentifiedBy.CONVERSATION if row.conversation_id else IdentifiedBy.SHARED
