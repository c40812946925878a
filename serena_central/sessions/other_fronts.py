"""What other servers with the same database did that this one must know at once: sessions killed or revived there,
users added or revoked, settings changed.

They send notices, which hold ids alone, when their rows are committed. Where no notices come, because the connection
for them is lost or the database knows none, the database is asked every `POLL_S`.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from serena_central.core.errors import ConfigError, SessionNotFound, StoreError
from serena_central.core.event_kinds import (
    SessionKilled,
    SessionReturned,
    SessionRevived,
    SettingChanged,
)
from serena_central.core.events import Event, EventBus
from serena_central.sessions.accounts import Accounts
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.record import SessionRecorder
from serena_central.store.rows import ACCOUNTS, Notice
from serena_central.store.store import Store

if TYPE_CHECKING:
    from serena_central.store.postgresql import Listener

logger = logging.getLogger(__name__)

POLL_S = 2.0
"""How often the database is asked where no notices come; and how often a listening connection is checked."""

KILLED, REVIVED, MOVED, SETTINGS = "killed", "revived", "moved", "settings"
"""Kinds of notices; the first three name a session."""

OVERLAP_S = 60.0
"""Kills are looked for from so long before the last look: clocks differ, and a commit takes its time."""


class OtherFronts:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        store: Store,
        sessions: SessionManager,
        accounts: Accounts,
        recorder: SessionRecorder,
        bus: EventBus,
        *,
        front: str,
        reload_settings: Callable[[], Awaitable[None]],
    ) -> None:
        """`front` is this server's own name."""
        self._store = store
        self._sessions = sessions
        self._accounts = accounts
        self._recorder = recorder
        self._bus = bus
        self._front = front
        self._reload_settings = reload_settings
        self._looked_at = time.time()
        self._revived: set[str] = set()
        """Sessions that were revived here, while the database may still say that they are killed."""
        self._repeating = False
        """What another server did is done here, which is no news to it."""
        self.listening = False
        """Whether notices come."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Tells and learns, until cancelled."""
        untap = self._bus.tap(self._tell)
        task_status.started()
        failing = False
        try:
            while True:
                try:
                    listener = await self._store.listener()
                    if listener is not None:
                        await self._listen(listener)
                    await self.catch_up()
                    failing = False
                except StoreError as error:
                    if not failing:
                        logger.warning("what other servers do is not known for now: %s", error)
                    failing = True
                await anyio.sleep(POLL_S)
        finally:
            untap()

    def _tell(self, event: Event) -> None:
        if self._repeating:
            return
        match event:
            case SessionKilled(session=str(session)):
                self._store.writer.notify(Notice(KILLED, session, self._front))
            case SessionRevived(session=str(session)):
                self._revived.add(session)
                self._store.writer.notify(Notice(REVIVED, session, self._front))
            case SessionReturned(session=str(session)):
                self._store.writer.notify(Notice(MOVED, session, self._front))
            case SettingChanged():
                self._store.writer.notify(Notice(SETTINGS, "", self._front))
            case _:
                pass

    async def _listen(self, listener: "Listener") -> None:
        """Raises: StoreError: the connection is lost."""
        try:
            await self.catch_up()  # with what happened before anybody listened
            self.listening = True
            while True:
                with anyio.move_on_after(POLL_S):
                    await anyio.wait_readable(listener.fileno)
                notices = await anyio.to_thread.run_sync(listener.read, abandon_on_cancel=True)
                if notices is None:
                    await self.catch_up()
                for notice in dict.fromkeys(notices or ()):
                    if not notice.sender or notice.sender != self._front:
                        await self._take(notice)
        finally:
            self.listening = False
            listener.close()

    async def _take(self, notice: Notice) -> None:
        if notice.kind == ACCOUNTS:
            await self._accounts.refresh()
        elif notice.kind == MOVED:
            self._recorder.heard(notice.id, moved=True)
        elif notice.kind == KILLED:
            self._recorder.heard(notice.id)
            row = await self._store.ask(lambda queries: queries.session(notice.id))
            self._kill(notice.id, (row.terminated_by if row is not None else None) or "a person")
        elif notice.kind == REVIVED:
            self._recorder.heard(notice.id)
            self._repeat(self._sessions.revive, notice.id)
        elif notice.kind == SETTINGS:
            try:
                await self._reload_settings()
            except ConfigError as error:
                logger.warning("settings that another server changed were not taken over: %s", error)

    async def catch_up(self) -> None:
        """Learns all but settings and revivals from the database itself."""
        since, now = self._looked_at - OVERLAP_S, time.time()
        await self._accounts.refresh()
        revived = set(self._revived)
        is_written = not revived or await self._store.writer.survives_a_kill()
        for session, by in await self._store.ask(lambda queries: queries.killed_sessions(since)):
            if session not in self._revived:
                self._recorder.heard(session)
                self._kill(session, by)
        if is_written:  # the database says no longer that they are killed
            self._revived -= revived
        self._looked_at = now

    def _kill(self, session: str, by: str) -> None:
        self._repeat(lambda known: self._sessions.terminate(known, by), session)

    def _repeat(self, work: Callable[[str], object], session: str) -> None:
        self._repeating = True
        try:
            work(session)
        except SessionNotFound:
            pass  # it is fetched from the database when it comes here
        finally:
            self._repeating = False
