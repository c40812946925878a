"""The accounts of a team's users: added, rotated, revoked, and kept up to date with the store.

What was opened with a token ends when the token is refused; sessions end with their user alone. Where several servers
share a database, `other_fronts` says when to look at it again.
"""

import logging
import time
from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import SessionNotFound, StoreError
from serena_central.core.event_kinds import UserAdded, UserRevoked, UserRotated
from serena_central.core.events import EventBus, Severity
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.users import AccountChange, User, Users, addition, new_account, revocation, rotation
from serena_central.standalone.backoff import backoff_s
from serena_central.store.rows import AccountRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

RETRY_S = (0.25, 10.0)
"""First and longest pause while the store can't be read."""


class Accounts:
    """Belongs to the event loop's thread."""

    def __init__(self, users: Users, store: Store, sessions: SessionManager, bus: EventBus) -> None:
        self._users = users
        self._store = store
        self._sessions = sessions
        self._bus = bus
        self._turn = anyio.Lock()
        """Held from before the store is asked until its answer is taken: an older one must not replace a newer one."""
        self.on_refused: list[Callable[[User], None]] = []
        """Called with each user whose token is refused from now on: revoked, or of a token that was rotated."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Reads the accounts; until that was possible, users are not known, and not let in."""
        task_status.started()
        failures = 0
        while True:
            try:
                await self.refresh()
            except StoreError as error:
                failures += 1
                if failures == 1:
                    logger.warning("the users of this server could not be read: %s", error)
                await anyio.sleep(backoff_s(failures, first_s=RETRY_S[0], cap_s=RETRY_S[1]))
            else:
                return

    async def refresh(self) -> None:
        """Knows what the store has now.

        Raises:
            StoreError
        """
        async with self._turn:
            self._take(await self.all())

    async def all(self) -> list[AccountRow]:
        """Revoked ones too, in the order of their names.

        Raises:
            StoreError
        """
        rows = await self._store.saved(AccountRow, lambda queries: queries.accounts())
        return sorted(rows, key=lambda row: row.name)

    async def add(self, name: str, roots: list[str], by: str, *, admin: bool) -> tuple[AccountRow, str]:
        """A new account and its token.

        Raises:
            InvalidArguments, StoreError
        """
        row, token = new_account(name, roots, time.time(), admin=admin)
        row = await self._change(name, addition(row))
        self._bus.publish(UserAdded(message=f"by {by}", user=name, admin=admin, roots=row.roots))
        return row, token

    async def rotate(self, name: str, by: str) -> tuple[AccountRow, str]:
        """The account with another token. The one before is refused from now on, and what it opened ends, but for
        sessions.

        Raises:
            UserNotFound, StoreError
        """
        change, token = rotation(name, time.time())
        row = await self._change(name, change)
        self._bus.publish(UserRotated(message=f"by {by}", user=name))
        return row, token

    async def revoke(self, name: str, by: str) -> AccountRow:
        """Refuses the user's token, and ends the user's sessions.

        Raises:
            UserNotFound, StoreError
        """
        row = await self._change(name, revocation(name, time.time()))
        self._bus.publish(UserRevoked(message=f"by {by}", user=name, severity=Severity.WARNING))
        return row

    async def _change(self, name: str, change: AccountChange) -> AccountRow:
        async with self._turn:
            row, rows = await self._store.change_account(name, change)
            self._take(rows)
        return row

    def _take(self, rows: Iterable[AccountRow]) -> None:
        for user in self._users.take(rows):
            if self._users.of(user.credential) is None:
                self._end_sessions(user.credential)
            for refused in self.on_refused:
                refused(user)

    def _end_sessions(self, credential: str) -> None:
        for session in self._sessions.sessions():
            if session.credential == credential:
                try:
                    self._sessions.terminate(session.id, "an administrator, who revoked its user")
                except SessionNotFound:
                    continue
