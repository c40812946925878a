"""What is written into transcripts, and by whom: sessions of tasks always, those of clients where the settings say so.

The writer runs from the server's start where clients' sessions are written, else from the first task on.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from serena_central.app.lifespan import Run
from serena_central.tools.context import Services
from serena_central.transcripts.recorded_call import Recorded, RecordedCall

if TYPE_CHECKING:
    from serena_central.agents.task_transcripts import TaskTranscripts
    from serena_central.transcripts.recording import TranscriptRecorder


class Recording:
    """Of one server. `run`s are handed to whoever enters them: `at_start` those of a start, `for_tasks` those that the
    first task needs as well."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cleans = False
        self._recorder: TranscriptRecorder | None = None

    def at_start(self) -> list[Run]:
        settings, places = self._services.settings, self._services.places
        runs: list[Run] = []
        if settings.transcripts or settings.archive_transcripts or places.transcripts.exists():
            runs.append(self._cleanup())
        if settings.transcripts:
            runs.append(self._record())
        return runs

    def for_tasks(self) -> "tuple[TaskTranscripts, list[Run]]":
        from serena_central.agents.task_transcripts import TaskTranscripts

        runs = [] if self._cleans else [self._cleanup()]
        if self._recorder is None:
            runs.append(self._record())
        assert self._recorder is not None
        return TaskTranscripts(self._recorder.put, self._recorder.flush, self._services.places.transcripts), runs

    @property
    def put(self) -> Callable[[Recorded], None] | None:
        """Takes what servers and hooks see of sessions; None where none is written."""
        return None if self._recorder is None else self._put

    def _put(self, one: Recorded) -> None:
        assert self._recorder is not None
        scheduler = self._services.tasks.running
        task = scheduler.records.of_session(one.session) if scheduler else None
        if scheduler is None or task is None:
            if self._services.settings.transcripts:
                self._recorder.put(one)
        elif isinstance(one, RecordedCall) and not scheduler.converses(task.spec.runner):
            # What was said in a task comes from its runner.
            place = task.spec.transcript
            self._recorder.put(replace(one, root=place.root, transcript=place.session))

    def _record(self) -> Run:
        from serena_central.transcripts.recording import TranscriptRecorder

        self._recorder = TranscriptRecorder(self._services.places.transcripts)
        return self._recorder.run

    def _cleanup(self) -> Run:
        from serena_central.transcripts.cleanup import days_kept
        from serena_central.transcripts.daily_cleanup import DailyCleanup
        from serena_central.transcripts.roots import roots_of

        self._cleans = True
        settings, places, claude = self._services.settings, self._services.places, self._services.claude

        def keep_days(root: str) -> int:
            found = claude.of(Path(root)) if root else None
            return days_kept(found.value.get("cleanupPeriodDays") if found else None)

        archive = places.transcript_archive if settings.archive_transcripts else None
        return DailyCleanup(places.transcripts, keep_days, lambda: roots_of(Path.home(), os.environ), archive).run
