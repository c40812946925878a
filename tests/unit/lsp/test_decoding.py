"""Long answers are decoded item by item, and give what they give in one go."""

from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from serena_central.core import pacing
from serena_central.lsp import wire
from serena_central.lsp.types import LspLocation, LspSymbol
from serena_central.lsp.wire import decoded

pytestmark = pytest.mark.anyio

RANGE = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}}
PLACE = {"uri": "file:///a", "range": RANGE}
SYMBOL = {"name": "a", "kind": 12, "range": RANGE, "selectionRange": RANGE}


@pytest.mark.parametrize("long", [0, 10**9])
@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([SYMBOL] * 3, list[LspSymbol] | None),
        ([PLACE] * 3, list[LspLocation] | LspLocation | None),
        (PLACE, list[LspLocation] | LspLocation | None),
        ([PLACE, SYMBOL], list[msgspec.Raw] | None),
        ([], list[LspSymbol] | None),
        (None, list[LspSymbol] | None),
        ({"a": [1]}, dict[str, list[int]]),
        ([1, 2], msgspec.Raw),
    ],
)
async def test_long_and_short_answers_are_the_same(
    monkeypatch: pytest.MonkeyPatch, long: int, value: Any, shape: Any
) -> None:
    monkeypatch.setattr(wire, "LONG_BYTES", long)
    body = msgspec.Raw(msgspec.json.encode(value))
    assert await decoded(body, shape) == msgspec.json.decode(body, type=shape)


@pytest.mark.parametrize("long", [0, 10**9])
@pytest.mark.parametrize("text", [b'[{"name": 1}]', b"[1", b'[{"name": "\xff"}]', b'"x"'])
async def test_what_is_no_such_answer_is_refused(monkeypatch: pytest.MonkeyPatch, long: int, text: bytes) -> None:
    monkeypatch.setattr(wire, "LONG_BYTES", long)
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        await decoded(msgspec.Raw(text), list[LspSymbol] | None)


async def test_others_get_turns_while_a_long_answer_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    body = msgspec.Raw(msgspec.json.encode([SYMBOL] * 5000))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        assert len(await decoded(body, list[LspSymbol] | None)) == 5000
        tasks.cancel_scope.cancel()
    assert turns >= 5000
