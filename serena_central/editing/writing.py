"""Writes one operation: all new texts beside the old ones, then the renames; and back again if one fails.

Blocks; called in worker threads by `apply`, which holds the files' locks and has written the journal.
"""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from serena_central.core.errors import FileChanged, PathError, WriteFailed
from serena_central.editing.disk import Disk
from serena_central.editing.journal import Step
from serena_central.editing.steps import check_unchanged, commit, keep, stamp_of, state_of, sweep, take_back
from serena_central.files.atomic import make_folders
from serena_central.files.stamp import Stamp

logger = logging.getLogger(__name__)


class PlannedStep(NamedTuple):
    """A step, and the bytes that it writes (None: it deletes)."""

    step: Step
    data: bytes | None
    like: Path | None
    """The file whose mode and owner the new one gets."""


class Writing:
    """One operation on its way to the disk."""

    def __init__(self, disk: Disk, planned: Sequence[PlannedStep], stamps: Sequence[Stamp | None]) -> None:
        self._disk = disk
        self._planned = planned
        self._stamps = stamps
        self._folders: list[Path] = []
        """Folders made on the way."""
        self._done: list[Step] = []

    def run(self) -> dict[Path, Stamp]:
        """Makes all changes; the stamps of the files that it wrote. Raises what `Applier.apply` raises."""
        step = self._planned[0].step
        try:
            for one in self._planned:
                step = one.step
                self._stage(one)
            for one, stamp in zip(self._planned, self._stamps, strict=True):
                step = one.step
                check_unchanged(step, stamp)
                self._done.append(step)  # before it is done: it may fail half-way
                commit(self._disk, step)
        except (OSError, PathError, FileChanged) as error:
            if isinstance(error, FileChanged) and self._done and self._done[-1] is step:
                self._done.pop()  # what lies there is somebody else's
            left = self._take_back()
            if isinstance(error, OSError) or left:
                raise WriteFailed(step.path, reason_of(error), left) from error
            raise
        sweep([one.step for one in self._planned])
        written = [Path(one.step.path) for one in self._planned if one.data is not None]
        made = {path: stamp for path in written if (stamp := stamp_of(path)) is not None}
        for folder in {Path(one.step.path).parent for one in self._planned}:
            self._disk.sync_folder(folder)
        return made

    def _stage(self, one: PlannedStep) -> None:
        """Puts the new text beside the old one, and gives the old one a second name."""
        step = one.step
        if step.fresh is not None and one.data is not None:
            self._make_folder(Path(step.fresh).parent)
            self._disk.write(Path(step.fresh), one.data, one.like)
        if step.kept is not None:
            keep(self._disk, Path(step.path), Path(step.kept))

    def _make_folder(self, folder: Path) -> None:
        make_folders(folder, self._folders)

    def _take_back(self) -> list[str]:
        """Undoes what was done; the files for which that failed."""
        left: list[str] = []
        for step in reversed(self._done):
            try:
                if state_of(step) == "new":
                    take_back(self._disk, step)
            except OSError as error:
                logger.error("%s could not be put back: %s", step.path, error)
                left.append(step.path)
        if not left:
            with suppress(OSError):
                sweep([one.step for one in self._planned])
        for folder in reversed(self._folders):
            with suppress(OSError):
                folder.rmdir()
        return left


def reason_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error)
