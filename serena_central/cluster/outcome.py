"""What a request to another process of the cluster came to, as bytes: a value, or an error of the tree."""

from collections.abc import Awaitable
from typing import Any

import msgspec

from serena_central.cluster.error_data import ErrorData, error_data, error_of
from serena_central.core.decoding import from_msgpack
from serena_central.core.errors import SerenaCentralError


class CallOutcome(msgspec.Struct, omit_defaults=True):
    """Errors travel as data: pickle can't make them again."""

    value: Any = None
    error: ErrorData | None = None


async def outcome_of(work: Awaitable[Any]) -> bytes:
    """The outcome of what is awaited. Errors that are not of the tree are raised here."""
    try:
        return good_outcome(await work)
    except SerenaCentralError as error:
        return failed_outcome(error)


def good_outcome(value: Any) -> bytes:
    return msgspec.msgpack.encode(CallOutcome(value))


def failed_outcome(error: SerenaCentralError) -> bytes:
    return msgspec.msgpack.encode(CallOutcome(error=error_data(error)))


def value_of(outcome: bytes) -> Any:
    """What a request has returned.

    Raises:
        SerenaCentralError: what the request has raised.
    """
    said = from_msgpack(outcome, CallOutcome)
    if said.error is not None:
        raise error_of(said.error)
    return said.value
