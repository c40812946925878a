"""Once a day: deletes old transcripts of our own, and archives those of clients where the settings say so."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from serena_central.core.clock import UnhurriedClock
from serena_central.core.periodic import repeat
from serena_central.transcripts.cleanup import archive, clean_up
from serena_central.transcripts.roots import Root

logger = logging.getLogger(__name__)

DAY_S = 86_400.0


class DailyCleanup:
    """Of the transcripts in `folder`. `keep_days` tells how long a project's are kept; `roots` gives the folders of
    clients' transcripts, which are compressed into `archive_folder` unless that is None. `clock` is Unix time, and no
    hurry: what is deleted stays so."""

    def __init__(
        self,
        folder: Path,
        keep_days: Callable[[str], int],
        roots: Callable[[], list[Root]],
        archive_folder: Path | None,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._folder = folder
        self._keep_days = keep_days
        self._roots = roots
        self._archive_folder = archive_folder
        self._clock = clock or UnhurriedClock()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """At once, and then each day, until it is cancelled."""
        task_status.started()
        try:
            await self.clean()
        except Exception:
            logger.exception("the cleanup of transcripts failed; the next one is in a day")
        await repeat("the cleanup of transcripts", self.clean, every_s=DAY_S)

    async def clean(self) -> None:
        """Deletes and archives now.

        Raises:
            StoreError, OSError
        """
        deleted, archived = await anyio.to_thread.run_sync(self._clean, abandon_on_cancel=True)
        if deleted or archived:
            logger.info("%d old transcripts were deleted, %d of clients archived", len(deleted), len(archived))

    def _clean(self) -> tuple[list[Path], list[Path]]:
        # Clients delete by the clock on the wall, whatever it says.
        archived = archive(self._roots(), self._archive_folder, datetime.now(UTC)) if self._archive_folder else []
        return clean_up(self._folder, self._keep_days, datetime.fromtimestamp(self._clock(), UTC)), archived
