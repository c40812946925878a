"""Which tool call of which conversation made an edit of this server: the answer to an edit names it, and a client keeps
that answer in its transcript.

So the two are joined by what both have on record, for every client, whatever time passed between call and edit.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from serena_central.core.decoding import from_json
from serena_central.store.usage_store import KnownFile, ToolUse, UsageStore
from serena_central.transcripts.messages import Message, messages_with
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in
from serena_central.transcripts.source import Transcript

MARKER = b'"e-'

_EDIT = re.compile(r'\\*"edit\\*":\s*\\*"(e-[0-9a-f]{12})\\*"')
"""As an answer has it: data, or JSON in a text, as often as a client has put it into one."""


class EditCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call that made an edit. `session` is the client's own id, `file` its transcript, `call` the call's id there;
    `use` is what the usage store knows of it, None where that is nothing."""

    edit: str
    client: str
    session: str
    at: str
    call: str
    file: str
    use: ToolUse | None = None


def transcript_of(found: FoundFile, known: Mapping[str, KnownFile]) -> Transcript:
    """A transcript with what was found out about it when it was read for its usage."""
    row = known.get(found.path)
    state: dict[str, Any] = from_json(row.state) if row else {}
    return Transcript(path=Path(found.path), root=found.root.folder, state=state)


def calls_of_edits(store: UsageStore, roots: Sequence[Root], tools: Mapping[str, str], since: float) -> list[EditCall]:
    """The calls that made edits, where a transcript tells. `tools` maps the edits' ids to the tools that made them, of
    which the first was made at `since`, Unix time. The store must be up to date.

    Raises:
        StoreError
    """
    if not tools:
        return []
    known = store.files()
    mentions: dict[int, list[EditCall]] = {}
    for found in transcripts_in(roots):
        if found.mtime_ns / 1e9 < since:
            continue
        try:
            mentioned = list(_mentions(found, tools.keys()))
        except OSError:
            continue
        transcript = transcript_of(found, known)
        form = found.root.form
        for edit, message in mentioned:
            session = form.session(transcript, message.session)
            if not session:
                continue
            one = EditCall(
                edit=edit,
                client=form.client,
                session=session,
                at=message.at,
                call=message.call,
                file=found.path,
            )
            mentions.setdefault(form.tool_key(transcript, message.call, session), []).append(one)
    return _makers(mentions, store.tool_uses(list(mentions)), tools)


def _mentions(found: FoundFile, edits: Iterable[str]) -> Iterable[tuple[str, Message]]:
    wanted = set(edits)
    for message in messages_with(found, (MARKER,)):
        if message.role == "tool_result":
            yield from ((edit, message) for edit in set(_EDIT.findall(message.text)) & wanted)


def _makers(
    mentions: Mapping[int, Sequence[EditCall]], uses: Mapping[int, ToolUse], tools: Mapping[str, str]
) -> list[EditCall]:
    """The first call that names an edit has made it. Later ones list it or were copied into another transcript; calls
    of other tools than the edit's have listed it, too."""
    first: dict[str, EditCall] = {}
    for key, calls in mentions.items():
        use = uses.get(key)
        for one in calls:
            if use is not None and not use.tool.endswith(tools[one.edit]):
                continue
            known = first.get(one.edit)
            if known is None or one.at < known.at:
                first[one.edit] = msgspec.structs.replace(one, use=use)
    return list(first.values())
