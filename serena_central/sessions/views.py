"""What each session has seen of symbols, as hashes of their bodies; conflict detection compares with it.

Kept in memory and written behind to the store, so that it survives a restart of the server; what an edit depends on is
written before it. It knows no files: tools that show a symbol to a session record it here, and edits ask.
"""

import logging
import time
from collections.abc import Callable, Mapping

from serena_central.core.errors import StoreError
from serena_central.sessions.session import SeenPlace, Session
from serena_central.store.rows import SymbolViewRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

VIEWS_PER_SESSION = 2000
"""Maximum of symbols remembered per session, the last seen ones: half a megabyte."""


class SymbolViews:
    """Keeps `Session.views`. Belongs to the event loop's thread."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def secure(self, session: Session) -> None:
        """What a session saw so far, and the session itself, survive a kill of the server from now on, unless the store
        fails."""
        if not session.secured:
            session.secured = True
            session.secured = await self._store.writer.survives_a_kill() and session.secured

    def saw(self, session: Session, root: str, path: str, hashes: Mapping[str, str], *, in_full: bool = True) -> None:
        """A session was shown symbols of a file: name path → hash. Those whose bodies it was not shown (`in_full`) are
        remembered only if it knows nothing of them yet: it may still have an older body in mind."""
        for name_path, body_hash in hashes.items():
            place = SeenPlace(root, path, name_path)
            if in_full or place not in session.views:
                self._set(session, place, body_hash)
        while len(session.views) > VIEWS_PER_SESSION:
            self._remove(session, next(iter(session.views)))

    def forget(self, session: Session, root: str, path: str) -> None:
        """What a session saw of a file counts no more: it was shown something newer whose symbols are not known."""
        for place in [place for place in session.views if place.path == path and place.root == root]:
            self._remove(session, place)

    async def seen(self, session: Session, root: str, path: str, name_path: str) -> str | None:
        """The hash of what a session last saw of a symbol; None if it never did."""
        await self.load(session)
        return session.views.get(SeenPlace(root, path, name_path))

    async def seen_within(self, session: Session, root: str, path: str, name_path: str) -> dict[str, str]:
        """Name path → hash of what a session last saw of a symbol, and of those in it."""
        await self.seen(session, root, path, name_path)
        return {
            place.name_path: body_hash
            for place, body_hash in session.views.items()
            if place.path == path
            and place.root == root
            and (place.name_path == name_path or place.name_path.startswith(f"{name_path}/"))
        }

    def known(self, session: Session, root: str, path: str, name_path: str) -> str | None:
        """Like `seen`, for who has asked that in the same call."""
        return session.views.get(SeenPlace(root, path, name_path))

    def _set(self, session: Session, place: SeenPlace, body_hash: str) -> None:
        changed = session.views.get(place) != body_hash
        session.views[place] = body_hash
        session.views.move_to_end(place)
        if changed:
            session.secured = False
            self._store.writer.put(
                SymbolViewRow(
                    session=session.id,
                    project_root=place.root,
                    relative_path=place.path,
                    name_path=place.name_path,
                    body_hash=body_hash,
                    seen_at=self._clock(),
                )
            )

    def _remove(self, session: Session, place: SeenPlace) -> None:
        del session.views[place]
        session.secured = False
        self._store.writer.remove(SymbolViewRow, session.id, *place)

    async def load(self, session: Session) -> None:
        """Reads what an earlier run of the server wrote, unless that is done; what was seen since then is newer."""
        if not session.views_in_store:
            return
        try:
            rows = await self._store.ask(lambda queries: queries.symbol_views(session.id))
        except StoreError as error:
            logger.warning("the read history of a session is not available: %s", error, extra={"session": session.id})
            rows = []
        for row in sorted(rows, key=lambda row: row.seen_at, reverse=True):
            place = SeenPlace(row.project_root, row.relative_path, row.name_path)
            if place not in session.views:
                session.views[place] = row.body_hash
                session.views.move_to_end(place, last=False)
        session.views_in_store = False
