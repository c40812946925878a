"""Decoding and checking by msgspec, in any thread.

msgspec 0.22 learns the fields of a type when it first decodes one, and another thread that decodes the same type
meanwhile ends the process (SIGSEGV). So types are learned here, one at a time, before anything is decoded.
"""

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

Content = bytes | bytearray | memoryview | msgspec.Raw

JsonDecoder = msgspec.json.Decoder
MsgpackDecoder = msgspec.msgpack.Decoder

_learning = threading.Lock()
_learned: set[Any] = set()


@overload
def from_json(content: Content | str, kind: type[T]) -> T: ...
@overload
def from_json(content: Content | str, kind: Any = Any) -> Any: ...
def from_json(content: Content | str, kind: Any = Any) -> Any:
    """The value that JSON stands for.

    Raises:
        msgspec.DecodeError
    """
    _learn(kind)
    try:
        return msgspec.json.decode(content, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


@overload
def from_msgpack(content: Content, kind: type[T]) -> T: ...
@overload
def from_msgpack(content: Content, kind: Any = Any) -> Any: ...
def from_msgpack(content: Content, kind: Any = Any) -> Any:
    """The value that MessagePack stands for.

    Raises:
        msgspec.DecodeError
    """
    _learn(kind)
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


@overload
def converted(value: Any, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def converted(value: Any, kind: Any, *, strict: bool = True) -> Any: ...
def converted(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """What a value of plain types stands for; if not `strict`, text may stand for numbers and booleans.

    Raises:
        msgspec.ValidationError
    """
    _learn(kind)
    return msgspec.convert(value, kind, strict=strict)


@overload
def json_decoder(kind: type[T]) -> JsonDecoder[T]: ...
@overload
def json_decoder(kind: Any) -> JsonDecoder[Any]: ...
def json_decoder(kind: Any) -> JsonDecoder[Any]:
    """Decodes many of a kind; any thread may use it. What is no such value raises msgspec.DecodeError,
    UnicodeDecodeError or RecursionError."""
    _learn(kind)
    return JsonDecoder(kind)


@overload
def msgpack_decoder(kind: type[T]) -> MsgpackDecoder[T]: ...
@overload
def msgpack_decoder(kind: Any) -> MsgpackDecoder[Any]: ...
def msgpack_decoder(kind: Any) -> MsgpackDecoder[Any]:
    """Decodes many of a kind; any thread may use it."""
    _learn(kind)
    return MsgpackDecoder(kind)


def _learn(kind: Any) -> None:
    if kind not in _learned:
        with _learning:
            JsonDecoder(kind)
            _learned.add(kind)
