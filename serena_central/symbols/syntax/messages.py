"""What the syntax reader asks its worker process, and what that answers."""

from typing import Literal

import msgspec

from serena_central.core.text import Range
from serena_central.lsp.answers import DocumentSymbol

Kind = Literal["code", "string", "comment"]


class Request(msgspec.Struct, array_like=True):
    """`identifier` is LSP's for the language; `source` is valid UTF-8. With `name` its places are asked for."""

    identifier: str
    source: bytes
    name: str = ""


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """A place of a name, in code points, and what it stands in."""

    range: Range
    kind: Kind


class Answer(msgspec.Struct, array_like=True):
    symbols: list[DocumentSymbol] = []
    occurrences: list[Occurrence] = []
    cut: bool = False
    """There is more in the text than was looked at, because it nests too deeply."""
    error: str = ""


def framed(message: Request | Answer) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4) + body
