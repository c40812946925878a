"""The history of edits: published as events, and kept in the store with what is needed to undo them.

It opens the journal of edits at start, so that what a crash cut off is completed or rolled back before anything else is
edited, and so that an edit that was made is known although its row was never written. It knows sessions by name only.
"""

import json
import logging
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from serena_central.core.errors import OutcomeUnknown, SerenaCentralError, StoreError
from serena_central.core.event_kinds import EditApplied
from serena_central.core.events import EventBus
from serena_central.core.locks import KeyedLocks
from serena_central.core.lru import Lru
from serena_central.editing.journal import Entry, Journal, Past
from serena_central.editing.transaction import Applier
from serena_central.files.boundary import Access
from serena_central.projects.editing.edit_records import AppliedEdit, edits_in, operation_of
from serena_central.store.edit_log import undoer_in_force
from serena_central.store.query_results import EDIT_PATCHES_KEPT_S, EditAnswer, EditBrief, EditFilter, next_page
from serena_central.store.rows import EditRow
from serena_central.store.store import Store

if TYPE_CHECKING:
    from serena_central.editing.change import Author
    from serena_central.projects.editing.edits import Edited

logger = logging.getLogger(__name__)

AnyEdit = TypeVar("AnyEdit", EditRow, EditBrief)

MAX_PATCH_BYTES = 2_000_000
"""Compressed; an edit whose patches are larger can't be undone."""

PATCHES_KEPT_S = EDIT_PATCHES_KEPT_S
"""How long an edit can be undone."""

CLOSED_FILE = "(closed by a permission rule)"
"""In place of the name of a file that rules close now."""

ROWS_AT_ONCE = 500
"""Edits that are read from the store together: each may hold `MAX_PATCH_BYTES`."""

MOST_TOLD = 1000
"""Edits of which it is known that they were published."""

MOST_RECALLED = 10_000
"""Edits whose calls are recognized when they are sent again, should the journal be lost."""


class Recall(Protocol):
    """Is told after the start what calls of earlier runs did, and later what they were answered."""

    def expect(self, earlier: Mapping[str, str | SerenaCentralError], *, complete: bool) -> None: ...
    def recall(self, answers: Mapping[str, list[str]]) -> None: ...


class EditHistory:
    """Belongs to the event loop's thread."""

    def __init__(
        self,
        applier: Applier,
        store: Store,
        bus: EventBus,
        *,
        recall: Recall,
        access: Callable[[Path], Access],
    ) -> None:
        """`access` gives what rules close in a root now: edits made before are listed without its names."""
        self._access = access
        self._recall = recall
        self._applier = applier
        self._store = store
        self._bus = bus
        self._rows: dict[str, list[EditRow]] = {}
        """Edits whose calls are not answered yet."""
        self._told: Lru[str, bool] = Lru(MOST_TOLD)
        """Edits that were published lately."""
        self.reversed_elsewhere: Callable[[list[EditRow], Author], Awaitable[Edited]] | None = None
        """Undoes the parts of an edit in the process that holds their projects; None: this one does."""

    @property
    def planned(self) -> KeyedLocks:
        """The locks of the files that edits are planned on."""
        return self._applier.planned

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Recovers from a crash; started() when files may be edited. Runs until cancelled."""
        past = await anyio.to_thread.run_sync(self._applier.open)
        try:
            self._recall.expect(_outcomes(past), complete=self._applier.journal.whole)
            task_status.started()
            await self._take_over(past)
            await anyio.sleep_forever()
        finally:
            self._applier.close()

    def applied(self, edit: AppliedEdit) -> None:
        """Takes note of an edit. Never waits."""
        row = _row(edit)
        self._rows.setdefault(edit.author.call, []).append(row)
        self.made_elsewhere(row)

    def made_elsewhere(self, row: EditRow) -> None:
        """Takes note of an edit that this process did not make: a project host did, which may tell it twice. Never
        waits."""
        self._store.writer.put(row)
        if row.id in self._told:
            return
        self._told[row.id] = True
        added, removed = (sum(int(file.get(what, 0)) for file in row.files) for what in ("added", "removed"))
        files: list[str] = [file.get("moved_to") or file["path"] for file in row.files]
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        self._bus.publish(
            EditApplied(
                message=f"{row.tool}: {', '.join(files[:3])}{more} (+{added} −{removed})",
                session=row.session,
                project=row.project_root.rpartition("/")[2],
                edit=row.id,
                root=row.project_root,
                tool=row.tool,
                files=files,
                lines_added=added,
                lines_removed=removed,
            )
        )

    async def amended(self, edit: AppliedEdit) -> None:
        """Takes note of an edit that became more than it was: what a hook changed in its files belongs to it."""
        row = _row(edit)
        rows = self._rows.get(edit.author.call, [])
        for place, known in enumerate(rows):
            if known.id == row.id:
                rows[place] = row
                self._store.writer.put(row)
                return
        known = await self.edit(edit.id, exact=True)  # its call was answered, and the row with the answer may wait
        if known is not None:
            self._store.writer.put(msgspec.structs.replace(known, files=row.files, patches=row.patches))

    def answered(self, call: str, blocks: list[str] | None) -> list[str]:
        """A call has ended; the edits that it made. What its repetition would get is kept."""
        rows = self._rows.pop(call, [])
        for row in rows if blocks is not None else ():
            if row.repeat is not None:
                self._store.writer.put(msgspec.structs.replace(row, answer=json.dumps(blocks)))
        return [row.id for row in rows]

    async def made_by(self, repeat: str) -> list[str]:
        """Ids of the edits that the call with this idempotency key has made.

        Raises:
            StoreError
        """
        await self._written(exact=True)
        return await self._store.ask(lambda queries: queries.edits_of_call(repeat))

    async def edits(self, wanted: EditFilter, *, exact: bool = True) -> list[EditRow]:
        """Edits that were made, the newest first; without `exact` the last ones may lack while a flood is written: for
        who shows them and can look again soon.

        Raises:
            StoreError
        """
        await self._written(exact=exact)
        rows = await self._store.ask(lambda queries: queries.edits(wanted))
        return list(map(self._without_closed, rows))

    async def all_edits(self, wanted: EditFilter) -> list[EditRow]:
        """All edits that were made, whatever limit is wanted, the newest first; without their patches, which are too
        much for memory.

        Raises:
            StoreError
        """
        found: list[EditRow] = []
        page: EditFilter | None = msgspec.structs.replace(wanted, limit=ROWS_AT_ONCE)
        while page is not None:
            rows = await self.edits(page)
            found += [msgspec.structs.replace(row, patches=None) for row in rows]
            page = next_page(page, [(row.at, row.id) for row in rows])
        return found

    async def _written(self, *, exact: bool) -> None:
        writer = self._store.writer
        await (writer.flush() if exact else writer.caught_up())

    async def edit_briefs(self, wanted: EditFilter) -> list[EditBrief]:
        """What edits are sorted by, in the order of `edits`, and not exact.

        Raises:
            StoreError
        """
        await self._written(exact=False)
        rows = await self._store.ask(lambda queries: queries.edit_briefs(wanted))
        return list(map(self._without_closed, rows))

    async def edits_with_ids(self, ids: Sequence[str]) -> list[EditRow]:
        """In this order; without those that are gone.

        Raises:
            StoreError
        """
        rows = await self._store.ask(lambda queries: queries.edits_with_ids(ids))
        return list(map(self._without_closed, rows))

    def _without_closed(self, row: AnyEdit) -> AnyEdit:
        """An edit as people and agents may see it."""
        hides = self._access(Path(row.project_root)).hides
        files = [
            file | {"path": CLOSED_FILE, "moved_to": None} if any(hides(name) for name in _names(file)) else file
            for file in row.files
        ]
        return row if files == row.files else msgspec.structs.replace(row, files=files)

    async def edit(self, edit_id: str, *, exact: bool = False) -> EditRow | None:
        """One edit, with its patches; without `exact` maybe as it was before what was noted of it just now.

        Raises:
            StoreError
        """
        found = None if exact else await self._store.ask(lambda queries: queries.edit(edit_id))
        if found is None:
            await self._store.writer.flush()
            found = await self._store.ask(lambda queries: queries.edit(edit_id))
        return found

    async def parts(self, edit_id: str) -> list[EditRow]:
        """All edits of the operation that one belongs to, with their patches, by id.

        Raises:
            StoreError
        """
        await self._store.writer.flush()
        return await self._store.ask(lambda queries: queries.edits_of_operation(operation_of(edit_id)))

    async def undone_by(self, edit_id: str) -> str | None:
        """The edit that undid this one, unless that was undone itself.

        Raises:
            StoreError
        """
        return (await self.undone([edit_id])).get(edit_id)

    async def undone(self, ids: Sequence[str], *, exact: bool = True) -> dict[str, str]:
        """Of these edits, those that are undone → the edit that undid each; `exact` as for `edits`.

        Raises:
            StoreError
        """
        await self._written(exact=exact)
        undoers: dict[str, list[str]] = {}
        for edit, undoer in await self._store.ask(lambda queries: queries.undoings(list(ids))):
            undoers.setdefault(edit, []).append(undoer)
        return {edit: undoer for edit in ids if (undoer := undoer_in_force(undoers, edit))}

    async def _take_over(self, past: list[Past]) -> None:
        """Writes rows for edits that the journal knows and the store doesn't, and recalls what was answered."""
        journal = self._applier.journal
        ids = [one.entry.id for one in past]
        try:
            stored = await self._store.edit_answers(ids, newest=0 if journal.whole else MOST_RECALLED)
        except StoreError as error:
            logger.warning("answers to calls of an earlier run are not available: %s", error)
            self._recall.recall({})
            return
        self._recall.expect({one.repeat: edit for edit, one in stored.items() if one.repeat}, complete=True)
        self._recall.recall(
            {one.repeat: json.loads(one.answer) for one in stored.values() if one.repeat and one.answer}
        )
        since = time.time() - PATCHES_KEPT_S
        for edit in await anyio.to_thread.run_sync(lambda: _edits_in(past, without=stored)):
            if edit.at >= since:
                self._store.writer.put(_row(edit))
        if not journal.whole:
            await self._add_missing(journal, stored)

    async def _add_missing(self, journal: Journal, stored: Mapping[str, EditAnswer]) -> None:
        """The journal was lost; the next start shall find in it what is known."""
        lost = [
            Past(Entry(edit, [], b"", one.repeat), applied=True, ended=True)
            for edit, one in sorted(stored.items(), key=lambda item: item[1].at)
        ]
        try:
            await anyio.to_thread.run_sync(journal.add_missing, lost)
        except OSError as error:
            logger.warning("the edit journal could not be recovered: %s", error)


def _outcomes(past: Iterable[Past]) -> dict[str, str | SerenaCentralError]:
    """Idempotency key → id of the edit that its call made, or why that is not known. Edits that were rolled back do not
    count."""
    outcomes: dict[str, str | SerenaCentralError] = {}
    for one in past:
        repeat = one.entry.repeat
        if repeat is not None and one.applied is not False:
            files = [step.path for step in one.entry.steps]
            outcomes[repeat] = one.entry.id if one.applied else OutcomeUnknown(one.entry.id, files)
    return outcomes


def _edits_in(past: Iterable[Past], *, without: Collection[str]) -> list[AppliedEdit]:
    made = (one for one in past if one.applied and one.entry.record and one.entry.id not in without)
    edits = [edit for one in made for edit in reversed(edits_in(one))]
    return [edit for edit in edits if edit.amends not in without]


def _names(file: Mapping[str, Any]) -> list[str]:
    return [name for name in (file.get("path"), file.get("moved_to")) if name]


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
        symbol=edit.author.symbol,
    )
