"""Which conversation wrote a line: the latest call of a tool in any transcript that put this text into this file.

Found by the text itself, so that it works for every client and every tool that edits, this server's and the clients'
own. It does not see what a person, a formatter or a command wrote.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, cast

import msgspec

from serena_central.transcripts.counting import FoundFile, Root, transcripts_in
from serena_central.transcripts.lines import Lines
from serena_central.transcripts.messages import Message, messages, of_line
from serena_central.transcripts.requests import Dropped

OLD = ("old_string", "old_text", "old_str", "needle", "old_content")
"""Arguments that name what an edit replaces."""

FAILED = b'"is_error":true'

PROMPT_CHARS = 200


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


def author_of(roots: Sequence[Root], path: Path, text: str) -> Author | None:
    """Who wrote the line `text` of the file `path`, None where no transcript tells. Reads all transcripts."""
    wanted = text.strip()
    marker = json.dumps(wanted, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    markers = {marker, json.dumps(wanted)[1:-1].encode(), json.dumps(marker.decode("utf-8", "replace"))[1:-1].encode()}
    best: tuple[str, FoundFile, Message] | None = None
    for found in transcripts_in(roots):
        try:
            for message in _writing(found, path, wanted, tuple(markers)):
                if best is None or message.at >= best[0]:
                    best = message.at, found, message
        except OSError:
            continue
    if best is None:
        return None
    at, found, message = best
    return Author(
        client=found.root.form.client,
        session=_session(found),
        at=at,
        tool=message.tool,
        call=message.call,
        agent=message.agent,
        prompt=_prompt_before(found, message),
        file=found.path,
    )


def _writing(found: FoundFile, path: Path, wanted: str, markers: tuple[bytes, ...]) -> Iterator[Message]:
    """The calls of a transcript that wrote the line, without those that failed."""
    calls: list[Message] = []
    failed: set[str] = set()
    with Path(found.path).open("rb", buffering=0) as file:
        for _, line in Lines(file, 0, _ignore).with_any((*markers, FAILED)):
            for message in of_line(found.root.form.client, line):
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


def _prompt_before(found: FoundFile, call: Message) -> str:
    prompt = ""
    for message in messages(found):
        if message.role == "user" and message.text.strip():
            prompt = message.text.strip().splitlines()[0][:PROMPT_CHARS]
        if message.role == "tool_call" and message.call == call.call and message.at == call.at:
            break
    return prompt


def _session(found: FoundFile) -> str:
    """The session's id, as its transcript is named."""
    path = Path(found.path)
    parts = path.relative_to(found.root.folder).parts
    match found.root.form.client:
        case "claude-code":
            return parts[1] if len(parts) > 2 else path.stem
        case "codex":
            return path.stem[-36:]
        case _:
            return path.stem.removeprefix("session-")


def _ignore(_: Dropped) -> None:
    pass
