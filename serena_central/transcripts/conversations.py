"""Which conversations of a client a session of this server belongs to: those whose ids it was given, and those whose
transcripts hold its calls.

A window may have several: Claude Code begins another one on /clear, and its MCP servers live on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from serena_central.store.usage_store import UsageStore
from serena_central.transcripts.edit_calls import transcript_of
from serena_central.transcripts.messages import messages_with
from serena_central.transcripts.reports import SessionUsage, session_usage
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in

APART_S = 5.0
"""Between the time of a call in a transcript and the one at which it began here."""


class KnownCall(msgspec.Struct, frozen=True):
    """A call that a session made; `began_at` is Unix time."""

    tool: str
    began_at: float


class KnownConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A client's session. `named`: the client or its hooks said its id; `calls` of those that were looked for stand in
    its transcript."""

    usage: SessionUsage
    named: bool
    calls: int


def conversations_of(
    store: UsageStore, roots: Sequence[Root], ids: Sequence[str], folders: Sequence[str], calls: Sequence[KnownCall]
) -> list[KnownConversation]:
    """The conversations of a session, the surest first. `ids` are those that the session was given, `folders` where it
    works. The store must be up to date.

    Raises:
        StoreError
    """
    sessions = session_usage(store)
    held = _held(store, roots, sessions, folders, calls)
    most = max(held.values(), default=0)
    found = [
        KnownConversation(usage=one, named=one.session in ids, calls=held.get((one.client, one.session), 0))
        for one in sessions
        # Another window in the same folder may have called the same tool at the same time.
        if one.session in ids or 2 * held.get((one.client, one.session), 0) > most > 0
    ]
    return sorted(found, key=lambda one: (one.calls, one.named, one.usage.last_at), reverse=True)


def _held(
    store: UsageStore,
    roots: Sequence[Root],
    sessions: Sequence[SessionUsage],
    folders: Sequence[str],
    calls: Sequence[KnownCall],
) -> Mapping[tuple[str, str], int]:
    """Client and session → how many of the calls stand in its transcripts."""
    if not calls:
        return {}
    since = min(one.began_at for one in calls) - APART_S
    wanted = {(one.client, one.session) for one in sessions if one.last_at >= since and _touches(one.project, folders)}
    known = store.files()
    held: dict[tuple[str, str], set[KnownCall]] = {}
    for found in transcripts_in(roots):
        if found.mtime_ns / 1e9 < since:
            continue
        form, transcript = found.root.form, transcript_of(found, known)
        alone = form.session(transcript, "")
        if alone and (form.client, alone) not in wanted:
            continue
        try:
            for session, mine in _calls_in(found, calls).items():
                name = form.client, form.session(transcript, session)
                if name in wanted:
                    held.setdefault(name, set()).update(mine)
        except OSError:
            continue
    return {name: len(found) for name, found in held.items()}


def _calls_in(found: FoundFile, calls: Sequence[KnownCall]) -> dict[str, set[KnownCall]]:
    """Session that lines state → calls that stand in them."""
    held: dict[str, set[KnownCall]] = {}

    for message in messages_with(found, sorted({one.tool.encode() for one in calls})):
        if message.role != "tool_call":
            continue
        try:
            at = datetime.fromisoformat(message.at).timestamp()
        except ValueError:
            continue
        near = [
            one
            for one in calls
            if one not in held.get(message.session, ())
            and abs(one.began_at - at) <= APART_S
            and message.tool.endswith(one.tool)
        ]
        if near:
            nearest = min(near, key=lambda one: abs(one.began_at - at))
            held.setdefault(message.session, set()).add(nearest)
    return held


def _touches(project: str, folders: Sequence[str]) -> bool:
    """Whether one lies in the other."""
    return any(Path(project).is_relative_to(one) or Path(one).is_relative_to(project) for one in folders)
