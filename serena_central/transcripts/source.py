"""One transcript of a client while it is read: where reading began, how far it came, what the next reading needs."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec

from serena_central.transcripts.requests import Drop, Found

if TYPE_CHECKING:
    from serena_central.transcripts.reports import SessionUsage


class Transcript(msgspec.Struct, kw_only=True):
    """One transcript below a client's folder. `state` is JSON data of the form's own, kept from reading to reading."""

    path: Path
    root: Path
    state: dict[str, Any] = {}


class Source(Transcript, kw_only=True):
    """`consumed` is the offset from which the next reading continues. `at` is the offset of the line that was found
    last."""

    file: BinaryIO
    consumed: int = 0
    at: int = 0


class Form(NamedTuple):
    """How one client keeps its transcripts. `roots` takes the home folder and the environment; `read` updates the
    source while it yields what it finds.

    Of a transcript that was read: `session` gives the session of a line that states this session itself ("" where it
    states none), "" for one that counts by another transcript; `tool_key` the key of a session's call as
    `Request.tools` has it. `may_hold` tells by a transcript's path and its root whether it can hold lines of a
    session."""

    client: str
    roots: Callable[[Path, Mapping[str, str]], list[Path]]
    is_transcript: Callable[[str], bool]
    read: Callable[[Source, Drop], Iterator[Found]]
    session: Callable[[Transcript, str], str]
    tool_key: Callable[[Transcript, str, str], int]
    may_hold: Callable[[Path, Path, "SessionUsage"], bool]


def named_after(path: Path, root: Path, one: "SessionUsage") -> bool:
    """`Form.may_hold` of clients that name their transcripts, or the folders of these, by the session."""
    return any(one.session in part for part in path.relative_to(root).parts)
