"""Errors of the tree as data, for another process: pickle would call their constructors with what it does not have."""

from typing import Any

import msgspec

from serena_central.core import errors
from serena_central.core.decoding import converted
from serena_central.core.errors import SerenaCentralError


class ErrorData(msgspec.Struct):
    """An error of the tree: its class, its message and its attributes."""

    kind: str
    message: str
    state: dict[str, Any]


def error_data(error: SerenaCentralError) -> ErrorData:
    return ErrorData(
        type(error).__name__,
        str(error.args[0]) if error.args else "",
        {name: _plain(value) for name, value in vars(error).items()},
    )


def error_of(data: ErrorData) -> SerenaCentralError:
    """The error that data was made of; of a class that is not known here one of the root's."""
    kind = getattr(errors, data.kind, SerenaCentralError)
    error: SerenaCentralError = kind.__new__(kind, data.message)
    for name, value in data.state.items():
        setattr(error, name, error_of(converted(value["error"], ErrorData)) if _is_error(value) else value)
    return error


def _plain(value: Any) -> Any:
    if isinstance(value, SerenaCentralError):
        return {"error": msgspec.to_builtins(error_data(value))}
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return str(value)


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"error"} and isinstance(value["error"], dict)
