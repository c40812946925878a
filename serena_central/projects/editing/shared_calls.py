"""Calls that servers with one database must not make twice: a client whose server died sends its call to another one.

Each server has a journal that the others can't read. So one server alone writes a call to the database, before it
renames the first file. Whether it was made follows from the history of edits, or else from the files themselves; where
both do not tell, no other server makes the call again.
"""

import json
import logging
import time
from pathlib import Path

import anyio
import anyio.to_thread

from serena_central.core.errors import NotReady, OutcomeUnknown, StoreError
from serena_central.editing.journal import Entry
from serena_central.files.text import digest_of
from serena_central.store.rows import SharedCallRow
from serena_central.store.store import Store

logger = logging.getLogger(__name__)

MADE = "This edit was already made as {}, by the front {}. It was not repeated."

WAIT_S = 5.0
"""How long another server may still be making a call."""

POLL_S = 0.1


class SharedCalls:
    """What decides for one server (`front`). As a fence it is called in worker threads."""

    def __init__(self, store: Store, front: str) -> None:
        self._store = store
        self._front = front

    # --- edits of this process ---------------------------------------------------------------------------------------

    def check(self, entry: Entry) -> None:
        """Reserves the call of an operation.

        Raises:
            OutcomeUnknown: another server makes it, or has made it.
            NotReady: the database can't be asked.
        """
        repeat = entry.repeat
        if repeat is None:
            return
        files: list[list[str | None]] = [[step.path, step.new] for step in entry.steps]
        row = SharedCallRow(repeat=repeat, at=time.time(), front=self._front, edit=entry.id, files=files)
        try:
            other = self._store.ask_here(lambda queries: queries.reserve_call(row))
        except StoreError as error:
            raise NotReady(str(error)) from error
        if other is not None:
            raise _unknown(other)

    def still_holds(self, _entry: Entry) -> bool:
        """No other server ends an operation of this one."""
        return True

    def ended(self, entry: Entry, *, applied: bool | None) -> None:
        """Of one that was rolled back, somebody may make the call after all."""
        repeat = entry.repeat
        if repeat is None or applied is not False:
            return
        try:
            self._store.ask_here(lambda queries: queries.release_call(repeat, entry.id))
        except StoreError as error:
            logger.warning("call %s stays reserved: %s", entry.id, error)

    # --- edits of project hosts --------------------------------------------------------------------------------------

    async def sent_to(self, repeat: str, node: str) -> str | None:
        """The node that a call was sent to before, whose journal knows it; None if it is sent for the first time, to
        the given one.

        Raises:
            NotReady: the database can't be asked.
        """
        row = SharedCallRow(repeat=repeat, at=time.time(), front=self._front, node=node)
        try:
            other = await self._store.ask(lambda queries: queries.reserve_call(row))
        except StoreError as error:
            raise NotReady(str(error)) from error
        return None if other is None else other.node

    async def not_made(self, repeat: str) -> None:
        """A call that was sent for the first time was not run: any node may."""
        try:
            await self._store.ask(lambda queries: queries.release_call(repeat, ""))
        except StoreError as error:
            logger.warning("a call stays reserved: %s", error)

    def made_by_host(self, repeat: str, node: str, edit: str) -> None:
        """A host has made a call, whose answer is in the history of edits. Never waits."""
        row = SharedCallRow(repeat=repeat, at=time.time(), front=self._front, edit=edit, node=node)
        self._store.writer.put(row)

    # --- repetitions -------------------------------------------------------------------------------------------------

    async def earlier(self, repeat: str) -> list[str] | None:
        """The answer to a call that another server has made, as blocks; None if none has. Waits while one makes it.

        Raises:
            OutcomeUnknown
            NotReady: the database can't be asked.
        """
        deadline = anyio.current_time() + WAIT_S
        while True:
            try:
                row, made = await self._store.ask(lambda queries: queries.shared_call(repeat))
            except StoreError as error:
                raise NotReady(str(error)) from error
            if row is None:
                return None
            if made is not None and made.answer is not None:
                blocks: list[str] = json.loads(made.answer)
                return blocks
            if row.node:
                return None  # the journal of its host answers
            if made is not None or await anyio.to_thread.run_sync(_is_made, row):
                return [MADE.format(row.edit, row.front)]
            if row.front == self._front:
                return None  # its own journal knows better: it was rolled back
            if anyio.current_time() > deadline:
                raise _unknown(row)
            await anyio.sleep(POLL_S)


def _unknown(row: SharedCallRow) -> OutcomeUnknown:
    return OutcomeUnknown(row.edit, [path for path, _ in row.files if path is not None], row.front)


def _is_made(row: SharedCallRow) -> bool:
    """Whether all files are what the operation made of them."""
    return bool(row.files) and all(path is not None and _digest(path) == made for path, made in row.files)


def _digest(path: str) -> str | None:
    """None where there is no file; "" where it can't be read, which is no digest."""
    try:
        return digest_of(Path(path).read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        return ""
