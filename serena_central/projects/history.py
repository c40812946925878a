"""The history of edits: told as events, kept in the store with what is needed to take them back.

It opens the journal of edits at start, so that what a crash cut off is completed or taken back before anything else is
edited, and so that an edit that was made is known although its row was never written. It knows sessions by name only.
"""

import json
import logging
import math
import time
import zlib
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.errors import StoreError
from serena_central.core.events import EventBus
from serena_central.editing.apply import Applier
from serena_central.editing.journal import Past
from serena_central.projects.edits import AppliedEdit
from serena_central.store.answers import EDIT_PATCHES_KEPT_S, EditFilter
from serena_central.store.rows import EditRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

MAX_PATCH_BYTES = 2_000_000
"""Compressed; an edit whose patches are larger can't be undone."""

PATCHES_KEPT_S = EDIT_PATCHES_KEPT_S
"""How long an edit can be undone."""

RECALLED_S = 600.0
"""How far back a new run looks for edits whose calls may be repeated, or whose rows were never written."""

MOST_RECALLED = 5000

ALREADY = "This edit was made already, as {}, before the server was restarted. It was not made again."


class EditHistory:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        applier: Applier,
        store: Store,
        bus: EventBus,
        *,
        recall: Callable[[dict[str, list[str]]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`recall` is told, once after the start, what repeatable calls of the run before were answered."""
        self._recall = recall
        self._applier = applier
        self._store = store
        self._bus = bus
        self._clock = clock
        self._rows: dict[str, list[EditRow]] = {}
        """Edits whose calls are not answered yet."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Mends what a crash left; started() when files may be edited. Runs until cancelled."""
        past = await anyio.to_thread.run_sync(self._applier.open)
        try:
            task_status.started()
            await self._take_over(past)
            await anyio.sleep_forever()
        finally:
            self._applier.close()

    def applied(self, edit: AppliedEdit) -> None:
        """Takes note of an edit. Never waits."""
        row = _row(edit)
        self._rows.setdefault(edit.author.call, []).append(row)
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

    def answered(self, call: str, blocks: list[str] | None) -> bool:
        """A call has ended; whether it edited something. What its repetition would get is kept."""
        rows = self._rows.pop(call, [])
        for row in rows if blocks is not None else ():
            if row.repeat is not None:
                self._store.writer.put(msgspec.structs.replace(row, answer=json.dumps(blocks)))
        return bool(rows)

    async def edits(self, wanted: EditFilter) -> list[EditRow]:
        """Edits that were made, the newest first. Raises StoreError."""
        await self._store.writer.flush()
        return await self._store.ask(lambda queries: queries.edits(wanted))

    async def edit(self, edit_id: str) -> EditRow | None:
        """One edit, with its patches. Raises StoreError."""
        found = await self._store.ask(lambda queries: queries.edit(edit_id))
        if found is None:
            await self._store.writer.flush()
            found = await self._store.ask(lambda queries: queries.edit(edit_id))
        return found

    async def undone_by(self, edit_id: str) -> str | None:
        """The edit that took this one back, unless that was taken back itself. Raises StoreError."""
        await self._store.writer.flush()
        for undoer in await self._store.ask(lambda queries: queries.undoers(edit_id)):
            if await self.undone_by(undoer) is None:
                return undoer
        return None

    async def _take_over(self, past: list[Past]) -> None:
        """Writes rows for edits that the journal knows and the store doesn't, and recalls what was answered."""
        made = [edit for one in past if one.applied and (edit := _edit_in(one)) is not None]
        # Back from the newest, not from now: the clock may have been set forward since.
        newest = max((edit.at for edit in made), default=math.inf)
        since = min(self._clock(), newest) - RECALLED_S
        young = [edit for edit in made if edit.at >= since]
        answers: dict[str, list[str]] = {}
        try:
            rows = await self._store.ask(lambda queries: queries.edits(EditFilter(since=since, limit=MOST_RECALLED)))
        except StoreError as error:
            logger.warning("edits of an earlier run are not known: %s", error)
            rows = []
        known = {row.id for row in rows}
        for edit in young:
            if edit.id not in known:
                row = _row(edit)
                rows.append(row)
                self._store.writer.put(row)
        for row in rows:
            if row.repeat is not None:
                answers[row.repeat] = json.loads(row.answer) if row.answer else [ALREADY.format(row.id)]
        self._recall(answers)


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
