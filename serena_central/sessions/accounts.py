"""The accounts of a team's users: added, rotated, revoked, and kept up to date with the store.

Whoever is revoked loses sessions and streams at once. Where several servers share a database, `other_fronts` says when
to look at it again.
"""

import logging
import time
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

from serena_central.core.errors import InvalidArguments, SessionNotFound, StoreError, UserNotFound
from serena_central.core.event_kinds import UserAdded, UserRevoked, UserRotated
from serena_central.core.events import EventBus, Severity
from serena_central.sessions.manager import SessionManager
from serena_central.sessions.users import Users, new_account, rotated
from serena_central.standalone.backoff import backoff_s
from serena_central.store.rows import AccountRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

RETRY_S = (0.25, 10.0)
"""First and longest pause while the store can't be read."""


class Accounts:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        users: Users,
        store: Store,
        sessions: SessionManager,
        bus: EventBus,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._users = users
        self._store = store
        self._sessions = sessions
        self._bus = bus
        self._clock = clock
        self.on_lost: list[Callable[[str], None]] = []
        """Called with each credential that has lost its access."""

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
        for credential in self._users.take(await self.all()):
            self._end(credential)

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
        row, token = new_account(name, roots, self._clock(), admin=admin)
        if any(one.name == name and one.revoked_at is None for one in await self.all()):
            raise InvalidArguments(
                f"There is a user {name!r} already. `serena-central users rotate` gives a new token."
            )
        await self._write(row)
        self._bus.publish(UserAdded(message=f"by {by}", user=name, admin=admin, roots=row.roots))
        return row, token

    async def rotate(self, name: str, by: str) -> tuple[AccountRow, str]:
        """The account with another token; the one before is refused from now on.

        Raises:
            UserNotFound, StoreError
        """
        row, token = rotated(await self._valid(name), self._clock())
        await self._write(row)
        self._bus.publish(UserRotated(message=f"by {by}", user=name))
        return row, token

    async def revoke(self, name: str, by: str) -> AccountRow:
        """Refuses the user's token, and ends the user's sessions.

        Raises:
            UserNotFound, StoreError
        """
        found = await self._valid(name)
        found.revoked_at = self._clock()
        await self._write(found)
        self._bus.publish(UserRevoked(message=f"by {by}", user=name, severity=Severity.WARNING))
        return found

    async def _valid(self, name: str) -> AccountRow:
        for row in await self.all():
            if row.name == name and row.revoked_at is None:
                return row
        raise UserNotFound(name)

    async def _write(self, row: AccountRow) -> None:
        await self._store.write([row])
        await self.refresh()

    def _end(self, credential: str) -> None:
        for session in self._sessions.sessions():
            if session.credential == credential:
                try:
                    self._sessions.terminate(session.id, "an administrator, who revoked its user")
                except SessionNotFound:
                    continue
        for lost in self.on_lost:
            lost(credential)
