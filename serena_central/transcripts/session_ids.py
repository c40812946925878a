"""Ids of the sessions in transcripts that this server writes: kept over restarts, new after a day of silence and when
the client begins another conversation in the same window (`--new`, `/clear`, `/new`).
"""

from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import msgspec

from serena_central.core.decoding import from_json
from serena_central.files.atomic import write_whole
from serena_central.transcripts.records import At

IDLE = timedelta(hours=24)
"""A conversation that was silent for longer is another one."""

FILE = "sessions.json"


class _Known(msgspec.Struct, rename="camel"):
    session_id: UUID
    last_activity: At
    conversation: str = ""


class SessionIds:
    """Of one project's folder of transcripts. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._known: dict[str, _Known] | None = None
        self._saved: dict[str, datetime] = {}

    def current(self, key: str, now: datetime, conversation: str = "") -> UUID:
        """The id of a window that is active now. `conversation` is the client's own id of what goes on in it, "" where
        that is not known: another one begins a new session."""
        known = self._loaded()
        found = known.get(key)
        another = found is not None and bool(conversation and found.conversation) and conversation != found.conversation
        begun = found is None or another or now - found.last_activity > IDLE
        if found is None or begun:
            found = known[key] = _Known(uuid4(), now)
        if conversation and conversation != found.conversation:
            found.conversation, begun = conversation, True
        found.last_activity = max(found.last_activity, now)
        # Written when something begins, and then from time to time: a crash must not cost the id, minutes don't matter.
        if begun or now - self._saved.get(key, now - IDLE) > timedelta(minutes=10):
            self._save(now)
            self._saved[key] = now
        return found.session_id

    def _loaded(self) -> dict[str, _Known]:
        if self._known is None:
            try:
                self._known = from_json(self._path.read_bytes(), dict[str, _Known])
            except (OSError, msgspec.DecodeError):
                self._known = {}
        return self._known

    def _save(self, now: datetime) -> None:
        known = self._loaded()
        for key in [key for key, one in known.items() if now - one.last_activity > IDLE]:
            del known[key]
        write_whole(self._path, msgspec.json.encode(known))
