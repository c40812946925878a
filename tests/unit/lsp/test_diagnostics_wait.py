"""How long diagnostics are waited for, by what their server has sent so far."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from serena_central.lsp.diagnostics_wait import FULL_S, LEAST_S, Patience

pytestmark = pytest.mark.anyio

FILE, OTHER = Path("/root/a.sh"), Path("/root/b.sh")


class Clock:
    """The event loop's time, by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("serena_central.lsp.diagnostics_wait.anyio.current_time", lambda: self.now)

    async def waits(self, patience: Patience, path: Path, seconds: float, *, hears: Path | None = None) -> None:
        """A wait of so long that ends in vain; in the middle of it something is heard of a file."""
        with anyio.CancelScope() as scope, patience.waiting(path):
            self.now += seconds / 2
            if hears is not None:
                patience.heard(hears)
            self.now += seconds / 2
            scope.cancel()
            await anyio.lowlevel.checkpoint()


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def test_a_server_that_sends_nothing_is_waited_for_less_with_each_wait(clock: Clock) -> None:
    patience = Patience()
    assert patience.left_s(FILE) == FULL_S
    await clock.waits(patience, FILE, FULL_S)
    assert patience.left_s(OTHER) == FULL_S / 2
    await clock.waits(patience, OTHER, 5 * FULL_S)
    assert patience.left_s(FILE) == LEAST_S
    patience.heard(FILE)
    assert patience.left_s(FILE) == FULL_S


async def test_a_file_that_a_talkative_server_never_mentions_is_waited_for_less(clock: Clock) -> None:
    patience = Patience()
    await clock.waits(patience, FILE, FULL_S, hears=OTHER)
    await clock.waits(patience, FILE, FULL_S, hears=OTHER)
    patience.heard(OTHER)
    assert patience.left_s(FILE) == FULL_S / 4
    assert patience.left_s(OTHER) == FULL_S


async def test_a_wait_that_was_answered_is_not_held_against_the_server(clock: Clock) -> None:
    patience = Patience()
    with patience.waiting(FILE):
        clock.now += FULL_S
    assert patience.left_s(FILE) == FULL_S
