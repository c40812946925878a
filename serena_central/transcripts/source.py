"""One transcript of a client while it is read: where reading began, how far it came, what the next reading needs."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from serena_central.transcripts.requests import Drop, Found


class Source(msgspec.Struct, kw_only=True):
    """`consumed` is the offset from which the next reading continues; `state` is JSON data of the form's own, kept
    with it. `at` is the offset of the line that was found last."""

    path: Path
    root: Path
    file: BinaryIO
    consumed: int = 0
    state: dict[str, Any] = {}
    at: int = 0


class Form(NamedTuple):
    """How one client keeps its transcripts. `roots` takes the home folder and the environment; `read` updates the
    source while it yields what it finds."""

    client: str
    roots: Callable[[Path, Mapping[str, str]], list[Path]]
    is_transcript: Callable[[str], bool]
    read: Callable[[Source, Drop], Iterator[Found]]
