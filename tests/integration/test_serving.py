"""The tests' own servers: one whose test fails stops as one whose test passes, or the tests that follow would wait for
what it left behind."""

import asyncio
from pathlib import Path

import anyio
import pytest

from tests.support.central import running_central

pytestmark = pytest.mark.anyio


async def test_a_server_whose_block_fails_is_stopped_in_order(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="the test failed")):
        async with running_central(tmp_path):
            raise ValueError("the test failed")
    assert asyncio.all_tasks() == before


async def test_a_server_whose_block_takes_too_long_is_stopped_in_order(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    with anyio.CancelScope() as bound:
        async with running_central(tmp_path):
            bound.cancel()
            await anyio.sleep_forever()
    assert bound.cancelled_caught
    assert asyncio.all_tasks() == before
