"""Which conversation wrote a line: the latest call of a tool in any transcript that put this text into this file.

Found by the text itself, so that it works for every client and every tool that edits, this server's and the clients'
own. It does not see what a person, a formatter or a command wrote.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import msgspec

from serena_central.store.usage_store import KnownFile
from serena_central.transcripts.edit_calls import transcript_of
from serena_central.transcripts.messages import Message, messages_with, prompt_before
from serena_central.transcripts.roots import FoundFile, Root, transcripts_in

OLD = ("old_string", "old_text", "old_str", "needle", "old_content")
"""Arguments that name what an edit replaces."""

FAILED = b'"is_error":true', b'"status":"error"'


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """The call that wrote a line. `prompt` is the first line of what was asked before it; `file` its transcript."""

    client: str
    session: str
    at: str
    tool: str
    call: str
    agent: str
    prompt: str
    file: str


def author_of(
    roots: Sequence[Root], path: Path, text: str, known: Mapping[str, KnownFile] | None = None
) -> Author | None:
    """Who wrote the line `text` of the file `path`, None where no transcript tells. Reads all transcripts. `known` is
    what the usage store knows of them."""
    wanted = text.strip()
    marker = json.dumps(wanted, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    markers = {marker, json.dumps(wanted)[1:-1].encode(), json.dumps(marker.decode("utf-8", "replace"))[1:-1].encode()}
    best: tuple[str, FoundFile, Message, str] | None = None
    for found in transcripts_in(roots):
        transcript = transcript_of(found, known or {})
        try:
            for message in _writing(found, path, wanted, tuple(markers)):
                session = found.root.form.session(transcript, message.session)
                if session and (best is None or message.at >= best[0]):
                    best = message.at, found, message, session
        except OSError:
            continue
    if best is None:
        return None
    at, found, message, session = best
    return Author(
        client=found.root.form.client,
        session=session,
        at=at,
        tool=message.tool,
        call=message.call,
        agent=message.agent,
        prompt=prompt_before(found.root.form.client, Path(found.path), message.call, session),
        file=found.path,
    )


def _writing(found: FoundFile, path: Path, wanted: str, markers: tuple[bytes, ...]) -> Iterator[Message]:
    """The calls of a transcript that wrote the line, without those that failed."""
    calls: list[Message] = []
    failed: set[str] = set()
    for message in messages_with(found, (*markers, *FAILED)):
        if message.role == "tool_call" and _writes(message.given, path, wanted):
            calls.append(message)
        elif message.failed:
            failed.add(message.call)
    yield from (one for one in calls if one.call not in failed)


def _writes(given: Any, path: Path, wanted: str) -> bool:
    texts = list(_texts(given))
    name = path.name
    names_file = any(name == PurePath(text).name or f" {name}" in text or f"/{name}" in text for text in texts)
    return names_file and any(wanted == _bare(line) for text in texts for line in text.splitlines())


def _bare(line: str) -> str:
    """A line without its indentation, and without the mark that it has in a patch."""
    return (line[1:] if line.startswith("+") else line).strip()


def _texts(given: Any, depth: int = 0) -> Iterator[str]:
    """All texts in a call's arguments but those that name what is replaced."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict) and depth < 6:
        for name, value in cast("dict[str, Any]", given).items():
            if name not in OLD:
                yield from _texts(value, depth + 1)
    elif isinstance(given, list) and depth < 6:
        for value in cast("list[Any]", given):
            yield from _texts(value, depth + 1)
