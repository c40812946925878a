"""The history of edits: told as events, kept in the store with what is needed to take them back.

It opens the journal of edits at start, so that what a crash cut off is completed or taken back before anything else is
edited, and so that an edit that was made is known although its row was never written. It knows sessions by name only.
"""

import json
import logging
import time
import zlib
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.errors import StoreError
from serena_central.core.events import EventBus, Severity
from serena_central.editing.apply import Applier
from serena_central.editing.journal import Past
from serena_central.projects.edits import AppliedEdit
from serena_central.store.answers import EditFilter
from serena_central.store.rows import EditRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

MAX_PATCH_BYTES = 2_000_000
"""Compressed; an edit whose patches are larger can't be undone."""

RECOVERED_S = 24 * 3600.0
"""Operations of the journal that are younger get their row, should it be missing."""


class EditHistory:
    """Belongs to the event loop's thread."""

    def __init__(
        self, applier: Applier, store: Store, bus: EventBus, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._applier = applier
        self._store = store
        self._bus = bus
        self._clock = clock
        self._rows: dict[str, EditRow] = {}
        """Edits whose calls are not answered yet."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Mends what a crash left; started() when files may be edited. Runs until cancelled."""
        past = await anyio.to_thread.run_sync(self._applier.open)
        try:
            await self._take_over(past)
            task_status.started()
            await anyio.sleep_forever()
        finally:
            self._applier.close()

    def applied(self, edit: AppliedEdit) -> None:
        """Takes note of an edit. Never waits."""
        row = _row(edit)
        self._rows[edit.author.call] = row
        self._store.writer.put(row)
        added, removed = sum(file.added for file in edit.files), sum(file.removed for file in edit.files)
        names = ", ".join(file.moved_to or file.path for file in edit.files[:3])
        more = f" and {len(edit.files) - 3} more" if len(edit.files) > 3 else ""
        self._bus.publish(
            "edit.applied",
            f"{edit.author.tool}: {names}{more} (+{added} −{removed})",
            session=edit.author.session,
            project=edit.root.rpartition("/")[2],
            edit=edit.id,
            root=edit.root,
            tool=edit.author.tool,
            files=[file.moved_to or file.path for file in edit.files],
            lines_added=added,
            lines_removed=removed,
        )

    def answered(self, call: str, blocks: list[str] | None) -> None:
        """A call that may have edited something was answered: what its repetition would get is kept."""
        row = self._rows.pop(call, None)
        if row is not None and row.repeat is not None and blocks is not None:
            self._store.writer.put(msgspec.structs.replace(row, answer=json.dumps(blocks)))

    async def edits(self, wanted: EditFilter) -> list[EditRow]:
        """Edits that were made, the newest first. Raises StoreError."""
        await self._store.writer.flush()
        return await self._store.ask(lambda queries: queries.edits(wanted))

    async def _take_over(self, past: list[Past]) -> None:
        """Writes rows for edits that the journal knows and the store doesn't."""
        since = self._clock() - RECOVERED_S
        made = (_edit_in(one) for one in past if one.applied)
        found = [edit for edit in made if edit is not None and edit.at >= since]
        if not found:
            return
        try:
            wanted = EditFilter(since=since, limit=len(found) + 10_000)
            known = {row.id for row in await self._store.ask(lambda queries: queries.edits(wanted))}
        except StoreError as error:
            logger.warning("edits of an earlier run were not looked through: %s", error)
            return
        for edit in found:
            if edit.id not in known:
                self._store.writer.put(_row(edit))
                self._bus.publish(
                    "edit.recovered",
                    f"An edit from before a crash was completed: {edit.author.tool}",
                    severity=Severity.WARNING,
                    session=edit.author.session,
                    project=edit.root.rpartition("/")[2],
                    edit=edit.id,
                )


def _edit_in(past: Past) -> AppliedEdit | None:
    try:
        return msgspec.msgpack.decode(past.entry.record, type=AppliedEdit)
    except msgspec.DecodeError:
        return None  # of another version


def _row(edit: AppliedEdit) -> EditRow:
    patches = zlib.compress(msgspec.msgpack.encode(edit.patches), 1)
    files: list[dict[str, Any]] = [msgspec.to_builtins(file) for file in edit.files]
    return EditRow(
        id=edit.id,
        at=edit.at,
        call=edit.author.call,
        tool=edit.author.tool,
        session=edit.author.session,
        client=edit.author.client,
        project_root=edit.root,
        files=files,
        patches=patches if len(patches) <= MAX_PATCH_BYTES else None,
        repeat=edit.author.repeat,
        undoes=edit.undoes,
    )
