"""Messages between the syntax reader and its worker process."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from serena_central.core.text import Position, Range
from serena_central.lsp.answers import DocumentSymbol

Kind = Literal["code", "string", "comment"]

PARSED_BYTES = 5_000_000
"""The longest text that is parsed: half a second's work. Longer ones are data."""

SKIMMED_BYTES = 32_000_000
"""The longest text of a language whose texts may lose that much: generated headers of macros have 25 MB."""

SKIMMED = frozenset({"c"})
"""LSP identifiers of languages of whose texts bodies and macros are left out before they are parsed (`skimming`)."""


class Claimed(msgspec.Struct, frozen=True, array_like=True):
    """What a language server says of a symbol, in code points."""

    name: str
    range: Range
    name_at: Position


class Built(msgspec.Struct, frozen=True, array_like=True):
    """The name of a type of which a declaration makes an object. `is_likely`: its constructor runs even if nothing is
    known of the type, since values in braces stand right behind the name."""

    type: str
    is_likely: bool


class Declared(msgspec.Struct, frozen=True, array_like=True):
    """What the syntax says of a symbol's range, in code points."""

    is_whole: bool = False
    """The range is a whole declaration, or one but for what leads it."""
    statement: Range | None = None
    """The statement that declares nothing but the symbol, or its list item: `export const a = 1;` for `a = 1`."""
    removal: Range | None = None
    """What has to be deleted with it: the statement, one separator, and the comment that ends its line."""
    is_alone: bool = False
    """It is the only statement of a Python block, which may not be empty."""
    kept: str = ""
    """Why it can't be deleted."""
    shifts: str = ""
    """What deleting it would change silently."""
    calls: Position | None = None
    """Where it calls something that it calls where it stands: not in a function that is its value."""
    built: list[Built] = []
    """Objects that it makes without such a call, in C++."""


class SyntaxEdit(msgspec.Struct, frozen=True, array_like=True):
    """One replacement in a text; `range` in code points. `is_deletion`: all else has to stay what it is."""

    range: Range
    new_text: str
    is_deletion: bool


class Request(msgspec.Struct, array_like=True):
    """`identifier` is LSP's for the language; `source` is valid UTF-8. With `name` its places are asked for, with
    `claimed` whether it is a declaration, with `edit` what that breaks, with `structure` what a text of Python consists
    of, else the text's symbols, `packed` or not. The source is left out on the way if the request is `again` about that
    of the one before it in its batch."""

    identifier: str
    source: bytes
    name: str = ""
    claimed: Claimed | None = None
    edit: SyntaxEdit | None = None
    packed: bool = False
    again: bool = False
    structure: bool = False


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """The symbols of a text as the index keeps them: `columns.compressed`, whether they are cut, and their
    `lookup_names`."""

    compressed: bytes = b""
    cut: bool = False
    names: dict[str, int] = {}


class Shorthand(msgspec.Struct, frozen=True, array_like=True):
    """One word for a field and a value, as in `{ name }`. `start`: where the field stands if both are written (in Rust
    before `ref`). `binds`: it is a pattern, which declares the value; None where it may be either, in a macro."""

    start: Position
    binds: bool | None


class Decorator(msgspec.Struct, frozen=True, array_like=True):
    """What is `called`, and what it is given as its argument `name`: "" for what is no plain string."""

    called: str
    name: str | None = None


class Function(msgspec.Struct, frozen=True, array_like=True):
    """A function of Python that a word names, or of which it is a parameter that has no value of its own. Its name and
    those of the `classes` around it, the innermost first, by their first characters; None in another function."""

    name: str
    decorators: list[Decorator]
    """The first ones."""
    has_parameter: bool
    classes: list[str] | None


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """A place of a name, in code points, and what it stands in. `demands`: it declares a member of an interface or a
    type literal of TypeScript, which each value that is given for such a type must have. `is_tag`: it is all that names
    an element of JSX."""

    range: Range
    kind: Kind
    shorthand: Shorthand | None = None
    function: Function | None = None
    demands: bool = False
    is_tag: bool = False


class Tried(msgspec.Struct, frozen=True, array_like=True):
    """The body of a `try` in Python, by its first and last line (0-based), and the names in what is `handled`; None if
    everything is."""

    first0: int
    last0: int
    handled: list[str] | None


class Imported(msgspec.Struct, frozen=True, array_like=True):
    """A module that a statement of Python imports, or `names` of it. `first0` and `last0` are the statement's lines
    (0-based), `level` is the number of dots before the module."""

    first0: int
    last0: int
    level: int
    module: str
    names: list[str]


class PythonStructure(msgspec.Struct, frozen=True, array_like=True):
    """`declared`: names that are defined, assigned or imported, each with the classes around it (`Outer/Inner`).
    `is_broken`: the text is no Python 3, or parts of it can't be parsed."""

    tried: list[Tried] = []
    imported: list[Imported] = []
    declared: list[tuple[str, str]] = []
    is_broken: bool = False


class Answer(msgspec.Struct, array_like=True):
    symbols: list[DocumentSymbol] = []
    occurrences: list[Occurrence] = []
    cut: bool = False
    """The text nests too deeply, so that parts of it were left out."""
    declared: Declared = Declared()
    damage: str = ""
    packed: Packed = Packed()
    error: str = ""
    structure: PythonStructure = PythonStructure()


def framed(messages: Sequence[Request] | Sequence[Answer]) -> bytes:
    """One batch: a length (4 bytes, big-endian), then msgpack."""
    body = msgspec.msgpack.encode(messages)
    return len(body).to_bytes(4) + body


def without_repetition(requests: Sequence[Request]) -> list[Request]:
    """The requests of a batch, each source once in a row: an edit asks twice about its file."""
    sent: list[Request] = []
    before: bytes | None = None
    for request in requests:
        is_again = request.source == before
        sent.append(msgspec.structs.replace(request, source=b"", again=True) if is_again else request)
        before = request.source
    return sent


def with_repetition(requests: Sequence[Request]) -> Sequence[Request]:
    """The requests as they were before `without_repetition`; changes them."""
    for before, request in pairwise(requests):
        if request.again:
            request.source = before.source
    return requests


def longest(identifier: str) -> int:
    """How many bytes a text in the language of an LSP identifier may have to be read by syntax."""
    return SKIMMED_BYTES if identifier in SKIMMED else PARSED_BYTES
