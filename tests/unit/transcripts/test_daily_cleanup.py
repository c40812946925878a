"""The cleanup of transcripts beside a clock that is set."""

import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from serena_central.core.clock import UnhurriedClock
from serena_central.transcripts.cleanup import KEEP_DAYS
from serena_central.transcripts.daily_cleanup import DailyCleanup
from serena_central.transcripts.records import UserMessage
from serena_central.transcripts.writer import TranscriptWriter

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("passed_days", "kept"), [(0, True), (KEEP_DAYS + 1, False)])
async def test_transcripts_are_as_old_as_what_has_passed_however_the_clock_is_set(
    tmp_path: Path, passed_days: int, *, kept: bool
) -> None:
    writer = TranscriptWriter(tmp_path, "/home/u/proj")
    writer.append(UserMessage(session_id=uuid4(), timestamp=datetime.now(UTC), content="x"))
    writer.close()
    [file] = writer.folder.glob("*.jsonl")
    ahead_s = passed_s = 0.0
    clock = UnhurriedClock(lambda: time.time() + ahead_s, lambda: time.monotonic() + passed_s)
    ahead_s, passed_s = 365 * 86_400, passed_days * 86_400
    cleanup = DailyCleanup(tmp_path, lambda _: KEEP_DAYS, list, None, clock=clock)

    with anyio.fail_after(60):
        await cleanup.clean()

    assert file.exists() == kept
