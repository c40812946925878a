"""Searches the text of all transcripts: prompts, answers, arguments and results of tools.

Lines are found in the files' bytes and then read, so that a gigabyte takes seconds; where time runs out, the answer
says how many files were left.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from serena_central.store.usage_store import KnownFile
from serena_central.transcripts.edit_calls import transcript_of
from serena_central.transcripts.messages import Message, messages_with
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in

AROUND = 80
"""Characters shown on each side of a match."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """The first match of a session in a transcript. `text` is what stands around it, on one line; `file` the
    transcript."""

    client: str
    session: str
    at: str
    role: str
    text: str
    file: str


class Hits(msgspec.Struct, kw_only=True):
    """`left` transcripts were not searched, for lack of time or since there were enough hits."""

    hits: list[Hit]
    searched: int = 0
    left: int = 0


def search(
    roots: Sequence[Root], known: Mapping[str, KnownFile], text: str, *, limit: int = 100, seconds: float = 5.0
) -> Hits:
    """Transcripts that hold a text, the latest first; letters of ASCII in any case. `known` is what the usage store
    knows of them."""
    until = time.monotonic() + seconds
    found = Hits(hits=[])
    files = sorted(transcripts_in(roots), key=lambda one: one.mtime_ns, reverse=True)
    for file in files:
        if len(found.hits) >= limit or time.monotonic() > until:
            break
        found.searched += 1
        try:
            found.hits += _hits(file, known, text)
        except OSError:
            continue
    found.left = len(files) - found.searched
    return found


def _hits(file: FoundFile, known: Mapping[str, KnownFile], text: str) -> list[Hit]:
    """The first match of each session in a transcript."""
    form, transcript = file.root.form, transcript_of(file, known)
    hits: dict[str, Hit] = {}
    for message, shown in _matches(file, text):
        session = form.session(transcript, message.session)
        if session and session not in hits:
            hits[session] = Hit(
                client=form.client, session=session, at=message.at, role=message.role, text=shown, file=file.path
            )
        if not message.session:  # no other session is in it
            break
    return list(hits.values())


def _matches(found: FoundFile, text: str) -> Iterator[tuple[Message, str]]:
    wanted = text.lower()
    for message in _candidates(found, wanted):
        shown = message.text or "" if message.given is None else f"{message.tool} {_plain(message.given)}"
        place = shown.lower().find(wanted)
        if place >= 0:
            start, end = max(place - AROUND, 0), place + len(text) + AROUND
            piece = " ".join(shown[start:end].split())
            yield message, f"{'…' * (start > 0)}{piece}{'…' * (end < len(shown))}"


def _candidates(found: FoundFile, wanted: str) -> Iterator[Message]:
    # As JSON has it: non-ASCII letters as they are or as escapes.
    texts = (json.dumps(wanted, ensure_ascii=escapes)[1:-1] for escapes in (True, False))
    needles = {text.encode("utf-8", "surrogatepass") for text in texts}
    return messages_with(found, tuple(needles), any_case=True)


def _plain(given: object) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
