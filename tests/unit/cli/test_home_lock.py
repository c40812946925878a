"""The check that a home is still the server's own. What follows where it is not: integration/test_moved_home.py."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from serena_central.cli import home_lock
from serena_central.cli.home_lock import HomeLock
from serena_central.core.places import Places
from serena_central.core.rest import rest

pytestmark = pytest.mark.anyio


async def test_a_home_whose_file_system_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers = threading.Event(), threading.Event()

    def hang(**_named: Any) -> None:
        asked.set()
        answers.wait(30)
        raise OSError

    monkeypatch.setattr(home_lock, "CHECK_S", 0.01)
    rest.stir()
    try:
        with anyio.fail_after(20):
            async with HomeLock(cast("Places", SimpleNamespace(lock_file=SimpleNamespace(stat=hang))), -1).checked():
                while not asked.is_set():
                    await anyio.sleep(0.01)
    finally:
        answers.set()
