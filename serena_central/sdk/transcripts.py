"""Sessions of coding agents on this machine, what was said in them, and what they cost.

Reads the transcripts of Claude Code, Codex and Gemini CLI, and of this server's tasks; needs no server. Blocks: of many
transcripts the first call takes seconds. Times are Unix seconds, costs dollars.
"""

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo

from serena_central.config.load import load_server_config
from serena_central.core.errors import SerenaCentralError
from serena_central.core.places import Places
from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.counting import Update, omissions, update
from serena_central.transcripts.messages import Message, files_of, messages_of
from serena_central.transcripts.pricing import Prices
from serena_central.transcripts.reports import By, Report, SessionUsage, UsageRow, report, session_usage
from serena_central.transcripts.resuming import Conversation
from serena_central.transcripts.resuming import resume as resume_own
from serena_central.transcripts.roots import all_roots

__all__ = [
    "Conversation",
    "Message",
    "Report",
    "SessionUsage",
    "UnknownSession",
    "UsageRow",
    "messages",
    "resume",
    "sessions",
    "usage",
]


class UnknownSession(SerenaCentralError):
    """No transcript of this session is on this machine."""


def usage(
    by: By = "day", *, since: datetime | None = None, zone: tzinfo | None = None, session: str | None = None
) -> Report:
    """Tokens and cost in groups, as `serena-central usage` shows them; days of `zone`, None for the machine's own. With
    `session`, the id of one, its own: by tool, how often each was called and how often it failed. `not_read` and
    `lines_not_read` of the report say what may be missing from it.

    Raises:
        StoreError, ConfigError, InvalidArguments
    """
    with _read() as (store, done):
        found = report(store, by, since=since, zone=zone, now=datetime.now(UTC), session=session)
        found.lines_not_read, found.not_read = store.dropped(), done.unreadable
        return found


def sessions() -> list[SessionUsage]:
    """All sessions with what they took, the latest first. A `UserWarning` says which transcripts could not be read.

    Raises:
        StoreError, ConfigError
    """
    with _read() as (store, done):
        if lacking := omissions(store, done):
            warnings.warn(" ".join(lacking), stacklevel=2)
        return session_usage(store)


def messages(session: SessionUsage) -> Iterator[Message]:
    """What was said in a session, as a stream: its main conversation, then each of its sub-agents'.

    Raises:
        UnknownSession: its transcript was deleted.
        OSError
    """
    found = files_of(all_roots(Places.of_user().transcripts), session)
    if not found:
        raise UnknownSession(f"No transcript of session {session.session} is left on this machine.")
    yield from messages_of(found, session.session)


def resume(session: str) -> Conversation:
    """A session in this server's own transcripts, as messages of Anthropic's API that a request can continue.

    Raises:
        UnknownSession
        InvalidTranscript: a line of it lacks a required field.
        OSError
    """
    found = resume_own(Places.of_user().transcripts, session)
    if found is None:
        raise UnknownSession(f"No transcript of this server holds session {session}.")
    return found


@contextmanager
def _read() -> Generator[tuple[UsageStore, Update]]:
    """The usage store, up to date, and what was read for that."""
    places = Places.of_user()
    places.create()
    prices = Prices(load_server_config({}).value.prices)
    with UsageStore(places.usage_file) as store:
        yield store, update(store, all_roots(places.transcripts), prices)
