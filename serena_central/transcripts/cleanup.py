"""Deletes old transcripts of our own, and archives clients' transcripts before the clients delete them.

Only files that this server has written are ever deleted: day files in folders that hold our `project.json`.
"""

import gzip
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from serena_central.core.decoding import from_json
from serena_central.core.errors import StoreError
from serena_central.files.atomic import write_whole
from serena_central.standalone.lock import locked
from serena_central.transcripts.own_files import day_files, project_folders, root_of
from serena_central.transcripts.reader import InvalidTranscript
from serena_central.transcripts.resuming import chain
from serena_central.transcripts.roots import Root, transcripts_in

logger = logging.getLogger(__name__)

KEEP_DAYS = 30
"""Where no setting says otherwise (`cleanupPeriodDays` of Claude Code's settings)."""

NEVER = 99_999
"""The value of `cleanupPeriodDays` that keeps everything."""

ARCHIVED_DAYS = 20
"""Clients' transcripts of this age are archived: ten days before Claude Code deletes them by default."""

PINNED = "pinned.json"


def clean_up(folder: Path, keep_days: Callable[[str], int], now: datetime) -> list[Path]:
    """Deletes day files that were not written for as long as their project's are kept, and returns them. Files with
    lines of pinned sessions, or of those that these continue, stay; all of a project, where a session can't be read.

    Raises:
        StoreError: which sessions are pinned is not known; nothing is deleted.
    """
    pins = pinned(folder)
    deleted: list[Path] = []
    for project in project_folders(folder):
        days = keep_days(root_of(project) or "")
        if days >= NEVER:
            continue
        limit = (now - timedelta(days=days)).timestamp()
        old = [file for file in day_files(project) if file.stat().st_mtime < limit]
        try:
            kept = {link.session.encode() for pin in pins for link in chain(project, pin)} if old else set[bytes]()
        except InvalidTranscript as error:
            logger.warning(
                "no transcripts in %s are deleted: what a pinned session continues is unknown: %s", project, error
            )
            continue
        for file in old:
            if not _holds_any(file, kept):
                file.unlink()
                deleted.append(file)
    return deleted


def days_kept(setting: object) -> int:
    """By the value of `cleanupPeriodDays`."""
    return setting if isinstance(setting, int) and not isinstance(setting, bool) else KEEP_DAYS


def pinned(folder: Path) -> set[str]:
    """Ids of the sessions that are kept.

    Raises:
        StoreError: that can't be read.
    """
    path = folder / PINNED
    try:
        return set(from_json(path.read_bytes(), list[str]))
    except FileNotFoundError:
        return set()
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(
            f"{path} names the sessions whose transcripts are kept, and can't be read: {error}. Nothing is deleted "
            "meanwhile. Repair it (a JSON list of ids), or remove it to keep none."
        ) from error


def pin(folder: Path, session: str, *, on: bool = True) -> None:
    """Keeps a session's transcript whatever its age, or no longer. Safe from all threads and processes.

    Raises:
        StoreError
        OSError
    """
    with locked(folder / f"{PINNED}.lock"):
        known = pinned(folder)
        changed = known | {session} if on else known - {session}
        write_whole(folder / PINNED, msgspec.json.encode(sorted(changed)))


def archive(roots: Iterable[Root], folder: Path, now: datetime) -> list[Path]:
    """Compresses clients' transcripts that will soon be deleted by their client into `folder`, where each keeps its
    whole path: a client may have several folders. Returns the new files; the originals stay."""
    limit = (now - timedelta(days=ARCHIVED_DAYS)).timestamp()
    made: list[Path] = []
    for found in transcripts_in(roots):
        source = Path(found.path)
        goal = folder / found.root.form.client / f"{source.relative_to(source.anchor)}.gz"
        if found.mtime_ns / 1e9 >= limit or (goal.exists() and goal.stat().st_mtime_ns >= found.mtime_ns):
            continue
        goal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = goal.with_name(f".{goal.name}.tmp")
        try:
            with source.open("rb") as original, gzip.open(fresh, "wb") as compressed:
                shutil.copyfileobj(original, compressed, 1_000_000)
        except OSError:
            fresh.unlink(missing_ok=True)
            continue
        os.utime(fresh, ns=(found.mtime_ns, found.mtime_ns))
        fresh.replace(goal)
        made.append(goal)
    return made


def _holds_any(file: Path, sessions: set[bytes]) -> bool:
    if not sessions:
        return False
    with file.open("rb") as lines:
        return any(session in line for line in lines for session in sessions)
