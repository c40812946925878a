"""Edits of this server with the cost of the conversations that asked for them, for the usage page and /api."""

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread

from serena_central.store.query_results import EditFilter
from serena_central.store.rows import EditRow
from serena_central.web.usage_reading import read_usage
from serena_central.web.web_services import WebServices

if TYPE_CHECKING:
    from serena_central.transcripts.edit_usage import EditUsage


class UsedEdits(NamedTuple):
    """Edits, and what may be missing from their cost: lines, and whole files and folders with the reason."""

    edits: "list[EditUsage]"
    lines_not_read: int
    not_read: list[str]


async def edits_used(parts: WebServices, since: datetime | None) -> UsedEdits:
    """All of them, the newest first, and what of transcripts could not be read.

    Raises:
        StoreError
    """
    rows = await parts.history.all_edits(EditFilter(since=since.timestamp() if since else 0.0))
    return await anyio.to_thread.run_sync(_joined, parts, rows)


def _joined(parts: WebServices, rows: list[EditRow]) -> UsedEdits:
    from serena_central.store.edit_log import logged
    from serena_central.transcripts.edit_usage import by_edit
    from serena_central.transcripts.roots import all_roots

    with read_usage(parts) as (store, done):
        found = by_edit(store, all_roots(parts.places.transcripts), list(map(logged, rows)))
        return UsedEdits(found, store.dropped(), done.unreadable)
