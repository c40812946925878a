"""Decodes what language servers answer: long lists item by item, with turns for others. One of 175,000 symbols would
keep everybody waiting for a second."""

from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from serena_central.core.pacing import paced

LONG_BYTES = 256 * 1024
"""Decoded in some milliseconds."""


async def decoded(body: msgspec.Raw, shape: Any) -> Any:
    """An answer as its `shape`: a type, or None beside one.

    Raises:
        msgspec.DecodeError: so does UnicodeDecodeError or RecursionError what is no such answer.
    """
    text = memoryview(body)
    decode = _item_decoder(shape) if len(text) > LONG_BYTES and text[0] == ord("[") else None
    if decode is None:
        return msgspec.json.decode(body, type=shape)
    return [decode(item) async for item in paced(msgspec.json.decode(body, type=list[msgspec.Raw]))]


@cache
def _item_decoder(shape: Any) -> Any:
    """Decodes an item of the list that a shape may be; None if it can't be one."""
    for one in (shape, *get_args(shape)):
        if get_origin(one) is list:
            (item,) = get_args(one)
            return msgspec.json.Decoder(item).decode
    return None
