"""Trying a language server out: it greets and is gone again, or the reason why it does not is told."""

import sys
from pathlib import Path

import anyio
import psutil
import pytest

from serena_central.core.errors import ServerStartFailed
from serena_central.lsp import trial
from serena_central.lsp.locate import Launch
from serena_central.lsp.trial import try_out
from tests.support.fakes import FAKE_SPEC

pytestmark = pytest.mark.anyio

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


async def test_a_server_that_greets_is_ended_again(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with anyio.fail_after(60):
        await try_out(FAKE_SPEC, Launch([sys.executable, str(FAKE)], version="1.2"), tmp_path)
    assert not list(tmp_path.iterdir())
    assert set(psutil.Process().children(recursive=True)) <= before


async def test_last_words_are_the_reason(tmp_path: Path) -> None:
    dying = Launch([sys.executable, "-c", "import sys; sys.exit('no such component')"])
    with pytest.raises(ServerStartFailed, match="no such component"):
        await try_out(FAKE_SPEC, dying, tmp_path)


async def test_one_that_never_greets_is_given_up_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "TRIAL_S", 0.5)
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(ServerStartFailed, match="did not complete the handshake"):
        await try_out(FAKE_SPEC, Launch([sys.executable, "-c", "import time; time.sleep(3600)"]), tmp_path)
    assert set(psutil.Process().children(recursive=True)) <= before


async def test_a_program_that_can_not_be_started_is_a_failed_start(tmp_path: Path) -> None:
    with pytest.raises(ServerStartFailed):
        await try_out(FAKE_SPEC, Launch(["/nonexistent/server"]), tmp_path)
