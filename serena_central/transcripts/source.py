"""One transcript of a client while it is read: where reading began, how far it came, what the next reading needs."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from serena_central.transcripts.requests import Drop, Found


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
    source while it yields what it finds. `session` gives the session's id, `tool_key` the key of a call as
    `Request.tools` has it, both of a transcript that was read."""

    client: str
    roots: Callable[[Path, Mapping[str, str]], list[Path]]
    is_transcript: Callable[[str], bool]
    read: Callable[[Source, Drop], Iterator[Found]]
    session: Callable[[Transcript], str]
    tool_key: Callable[[Transcript, str], bytes]
