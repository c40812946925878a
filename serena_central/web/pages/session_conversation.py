"""The conversation that a session's calls belong to, on the session's page: its transcript, first prompt and cost."""

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import StoreError
from serena_central.core.words import counted
from serena_central.sessions.session import Session
from serena_central.web.pages.page import Section, Visit
from serena_central.web.pages.transcripts import transcript_page
from serena_central.web.transcripts import TranscriptLine, transcript_line
from serena_central.web.usage_reading import read_usage

CALLS = 60
"""The newest calls of the session, which are looked for in transcripts."""

PATIENCE_S = 2.0
"""A page does not wait longer: the first reading of many transcripts takes seconds, and goes on without it."""

EVERY_S = 60.0

NONE = "Not known: no transcript of Claude Code, Codex or Gemini CLI on this machine holds calls of this session."
READING = "Transcripts are being read. Reload the page in a moment."


class Held(msgspec.Struct, frozen=True):
    """A conversation; `how` says by what it is known."""

    line: TranscriptLine
    url: str
    how: str


class Conversations(msgspec.Struct, frozen=True):
    """Those of the session, the surest first; `note` says why there are none."""

    found: list[Held]
    note: str


async def conversations(visit: Visit) -> Conversations:
    session = visit.parts.sessions.get(visit.path["session"])
    try:
        newest = await visit.parts.store.ask(lambda queries: queries.calls_of_session(session.id, CALLS))
    except StoreError as error:
        return Conversations([], f"Calls are not available: {error}")
    began = [(one.tool, one.at - one.duration_ms / 1000) for one in newest]
    found: list[Held] | None = None
    with anyio.move_on_after(PATIENCE_S):
        found = await anyio.to_thread.run_sync(_read, visit, session, began, abandon_on_cancel=True)
    if found is None:
        return Conversations([], READING)
    return Conversations(found, "" if found else NONE)


def _read(visit: Visit, session: Session, began: list[tuple[str, float]]) -> list[Held]:
    from serena_central.transcripts.conversations import KnownCall, conversations_of
    from serena_central.transcripts.roots import all_roots

    calls = [KnownCall(tool, at) for tool, at in began]
    folders = [one for one in (session.working_folder, session.project and session.project.root) if one]
    with read_usage(visit.parts) as (store, _):
        found = conversations_of(
            store, all_roots(visit.parts.places.transcripts), list(session.client_conversations), folders, calls
        )
    shown: list[Held] = []
    for one in found:
        how = ["its client gave its id"] if one.named else []
        if calls:
            how.append(f"{one.calls} of the newest {counted(len(calls), 'call')} are in it")
        line = transcript_line(visit.parts, one.usage)
        shown.append(Held(line, transcript_page(line.client, line.session), "; ".join(how)))
    return shown


SECTION = Section("session/_conversation.html", conversations, every_s=EVERY_S)
